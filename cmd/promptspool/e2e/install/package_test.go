//go:build linux

package install

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/metrics/partstest"
)

// packageOf builds the Debian package of a version as a release does: with the same packager,
// from the same section of its settings. The binary is the one that is shipped.
func packageOf(t *testing.T, version string) (path string) {
	t.Helper()
	text, err := os.ReadFile(harness.Top + "/cmd/promptspool/deploy/release/goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var release struct{ NFPMs []map[string]any }
	if err := yaml.Unmarshal(text, &release); err != nil || len(release.NFPMs) != 1 {
		t.Fatal(err, release)
	}
	binary, err := harness.PlainBinary()
	if err != nil {
		t.Fatal(err)
	}

	// What GoReleaser itself adds or reads, the packager does not know.
	settings := release.NFPMs[0]
	program := map[string]any{
		"src":       binary,
		"dst":       fmt.Sprint(settings["bindir"], "/promptspool"),
		"file_info": map[string]any{"mode": 0o755},
	}
	settings["contents"] = append(settings["contents"].([]any), program)
	settings["name"], settings["arch"], settings["version"] = "promptspool", runtime.GOARCH, version
	settings["mtime"] = "2026-01-02T03:04:05Z"
	settings["deb"] = map[string]string{"compression": "none"} // which takes most of the time
	for _, key := range []string{"bindir", "formats", "file_name_template"} {
		delete(settings, key)
	}

	text, err = yaml.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "promptspool.deb")
	cmd := exec.Command("go", "tool", "-modfile", "cmd/promptspool/deploy/release/go.mod",
		"nfpm", "package", "--packager", "deb", "--config", "/dev/stdin", "--target", path)
	cmd.Dir, cmd.Stdin = harness.Top, bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	return path
}

// machine is this machine with changes of its own: what a command in it changes stays in the
// test's folder. It has no other file systems than the root, and looks as if systemd ran.
type machine struct {
	*testing.T
	dir string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	partstest.Need(t, "root", "mount", "unshare", "dpkg", "systemd-analyze", "man")
	m := machine{t, t.TempDir()}
	for _, name := range []string{"changed", "work", "root"} {
		if err := os.Mkdir(filepath.Join(m.dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}

	m.write("/run/systemd/system/here", "")
	m.write("/usr/bin/systemctl", "#!/bin/sh\necho \"$@\" >>/systemctl\n")

	return m
}

// changed returns the path of a file that was changed.
func (m machine) changed(path string) string { return filepath.Join(m.dir, "changed", path) }

func (m machine) write(path, text string) {
	m.Helper()
	if err := os.MkdirAll(filepath.Dir(m.changed(path)), 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(m.changed(path), []byte(text), 0o755); err != nil {
		m.Fatal(err)
	}
}

// asked returns what systemctl was told since the last time.
func (m machine) asked() string {
	m.Helper()
	said, err := os.ReadFile(m.changed("/systemctl"))
	if err != nil && !os.IsNotExist(err) {
		m.Fatal(err)
	}
	if err := os.RemoveAll(m.changed("/systemctl")); err != nil {
		m.Fatal(err)
	}

	return string(said)
}

// script returns a program that runs a command in the machine, and passes its arguments on.
// The mounts end with it.
func (m machine) script(command string) string {
	m.Helper()
	path := harness.WriteFile(m.T, "in", fmt.Sprintf(`#!/bin/sh
exec unshare --mount sh -euc '
	mount -t overlay overlay -o lowerdir=/,upperdir=%[1]s/changed,workdir=%[1]s/work %[1]s/root
	mount -t proc proc %[1]s/root/proc
	mount --bind /dev %[1]s/root/dev
	cd %[1]s/root
	pivot_root . .
	umount --lazy . # with all that other tests have mounted
	exec %[2]s "$@"' sh "$@"
`, m.dir, command))
	if err := os.Chmod(path, 0o700); err != nil {
		m.Fatal(err)
	}

	return path
}

// run runs a command in the machine and returns what it printed.
func (m machine) run(command string, args ...string) string {
	m.Helper()
	return harness.Tool(m.T, m.script(command), args...)
}

// has reports whether the machine has a file that was written, and not removed again.
func (m machine) has(path string) bool {
	info, err := os.Lstat(m.changed(path))
	return err == nil && info.Mode()&os.ModeCharDevice == 0 // an overlay's mark of what was removed
}

// exposureMax is systemd's score of what a unit leaves open, times ten: 100 is a unit without
// any restriction.
const exposureMax = 20

// unitFaults returns what systemd itself finds in a unit.
func (m machine) unitFaults(path string) (faults []string) {
	m.Helper()
	// It only warns of a setting that it does not know, and may have to say something about
	// other units.
	said := m.run("sh", "-c", "systemd-analyze verify "+path+" 2>&1 || true")
	for line := range strings.Lines(said) {
		if strings.Contains(line, "promptspool") {
			faults = append(faults, line)
		}
	}

	score := fmt.Sprintf("systemd-analyze security --offline=true --threshold=%d %s", exposureMax, path)
	if said := m.run("sh", "-c", "said=$("+score+" 2>&1) || echo \"$said\" | tail -n 1"); said != "" {
		faults = append(faults, said)
	}

	return faults
}

const (
	installedUnits = "daemon-reload\ntry-restart promptspool-server.service promptspool-sidecar.service\n"
	removedUnits   = "disable --now promptspool-server.service promptspool-sidecar.service\ndaemon-reload\n"
)

func TestTheDebianPackageKeepsASpoolOverAnUpgradeAndItsRemoval(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	const (
		program  = "/usr/bin/promptspool"
		unit     = "/usr/lib/systemd/system/promptspool-sidecar.service"
		settings = "/etc/promptspool/config.yaml"
		data     = "/var/lib/promptspool"
	)
	install := func(version string) {
		t.Helper()
		deb, err := os.ReadFile(packageOf(t, version))
		if err != nil {
			t.Fatal(err)
		}
		m.write("/promptspool.deb", string(deb))
		// The triggers are of other packages: the index of all manuals takes longer than the rest.
		m.run("dpkg", "--no-triggers", "--install", "/promptspool.deb")

		if got := m.run("dpkg-query", "-f", "${Version} ${Status}", "-W", "promptspool"); got !=
			version+" install ok installed" {
			t.Errorf("dpkg knows %q", got)
		}
		if got := m.asked(); got != installedUnits {
			t.Errorf("systemctl was told %q", got)
		}
	}

	install("1.0.0")
	m.run("promptspool", "config", "check", settings)
	for shell, installed := range map[string]string{
		"bash": "/usr/share/bash-completion/completions/promptspool",
		"fish": "/usr/share/fish/vendor_completions.d/promptspool.fish",
		"zsh":  "/usr/share/zsh/vendor-completions/_promptspool",
	} {
		if m.run("cat", installed) != m.run("promptspool", "completion", shell) {
			t.Errorf("%s is not what completion %s prints", installed, shell)
		}
	}
	// Images without manuals leave it out when a package is installed.
	manual := "dpkg-deb --fsys-tarfile /promptspool.deb | tar -xO ./usr/share/man/man1/promptspool.1 | man -l -"
	if got := m.run("sh", "-c", manual); !strings.Contains(got, "promptspool requests search") {
		t.Errorf("the manual is %.500s", got)
	}
	for _, unit := range []string{unit, strings.Replace(unit, "sidecar", "server", 1)} {
		if faults := m.unitFaults(unit); len(faults) > 0 {
			t.Error(strings.Join(faults, "\n"))
		}
	}
	// The changes that pages propose, together.
	var changes strings.Builder
	for _, e := range harness.ExamplesIn(t, "ini") {
		changes.WriteString(e.Code)
	}
	const override = "/etc/systemd/system/promptspool-sidecar.service.d/override.conf"
	m.write(override, changes.String())
	m.run("chmod", "0644", override)
	if faults := m.unitFaults(unit); len(faults) > 0 {
		t.Errorf("with the changes of the pages: %s", strings.Join(faults, "\n"))
	}
	const faulty = "/promptspool-faulty.service"
	m.run("sh", "-c", "printf '[Service]\nExecStart=promptspool server\nNoNewPrivilege=yes\n' >"+faulty)
	if faults := m.unitFaults(faulty); len(faults) != 2 {
		t.Errorf("a unit with a misspelt setting, and open to everything, has the faults %q", faults)
	}

	// A call is taken while the server is away, and the sidecar is killed.
	upstream := harness.FreePort(t)
	start := func() *harness.Node {
		t.Helper()
		n := harness.Begin(t, m.script("promptspool"), nil, data, "127.0.0.1:0",
			"sidecar", "--config", settings, "--upstream", "http://"+upstream)
		if !n.Takes() {
			t.Fatal("the sidecar does not start")
		}
		return n
	}
	sidecar := start()
	id := sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	sidecar.Kill()

	// The next version delivers it, with the settings that somebody changed.
	m.run("sh", "-c", "echo '# ours' >>"+settings)
	install("1.1.0")
	if text := m.run("cat", settings); !strings.HasSuffix(text, "\n# ours\n") {
		t.Errorf("after the upgrade the settings are %q", text)
	}
	sidecar = start()
	server := harness.StartServer(t, t.TempDir(), upstream)
	server.Record(id, harness.Events(1))
	server.Stop()
	id = sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	sidecar.Kill()

	for _, purge := range []bool{false, true} {
		option := map[bool]string{false: "--remove", true: "--purge"}[purge]
		said := m.run("dpkg", "--no-triggers", option, "promptspool")
		if m.has(program) || m.has(unit) || m.has(settings) == purge {
			t.Errorf("after %s: program %v, unit %v, settings %v",
				option, m.has(program), m.has(unit), m.has(settings))
		}
		if !purge && !strings.Contains(said, data) {
			t.Errorf("nobody learns where the data is: %s", said)
		}
	}
	if got := m.asked(); got != removedUnits {
		t.Errorf("systemctl was told %q", got)
	}
	if len(harness.FilesHolding(t, m.changed(data), id)) == 0 {
		t.Errorf("the spool is gone with the package")
	}

	// Nothing of it stays on the machine of the tests.
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), m.dir) {
		t.Errorf("%v: something is still mounted", err)
	}
	if _, err := os.Stat("/var/lib/dpkg/info/promptspool.list"); err == nil {
		t.Error("the package is installed on this machine")
	}
}
