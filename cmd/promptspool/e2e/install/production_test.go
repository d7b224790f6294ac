//go:build linux

package install

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/metrics/partstest"
)

// machines stands for what the page needs besides promptspool: root, packages, systemd, and a person who types the key
// that was shown. A unit is a process; its environment, log and pid are files.
const machines = `
sudo() { "$@"; }
dpkg() { :; }
journalctl() { cat "$2.log"; }
promptspool() { command promptspool "$@" | tee -a shown; }
install() { grep -o 'ps_[A-Za-z0-9_-]*' shown | tail -n 1 >typed; command install "$@"; }
sleep() {
	until command promptspool spool status --data sidecar -o json | grep -q '"events": 0' &&
		command curl -s http://127.0.0.1:9787/metrics | grep -qx 'promptspool_spool_events 0'
	do command sleep 0.1; done
}
systemctl() {
	local unit=${!#} role
	role=${unit#promptspool-}
	if [ "$1" = stop ]; then
		kill "$(cat "$unit.pid")"
		while kill -0 "$(cat "$unit.pid")" 2>/dev/null; do command sleep 0.1; done
		return
	fi
	env $(cat "$role.env") promptspool "$role" --config "$role.yaml" --data "$role" >>"$unit.log" 2>&1 &
	echo $! >"$unit.pid"
	until command promptspool status --data "$role" >/dev/null 2>&1; do kill -0 $! && command sleep 0.1; done
}
trap 'kill $(cat *.pid); wait' EXIT
`

// The page is followed from its first block to its last, both machines being this one.
func TestThePageOnProductionLeadsThere(t *testing.T) {
	t.Parallel()
	partstest.Need(t, "curl")
	dir, bin := t.TempDir(), t.TempDir()
	if err := os.Symlink(harness.Program(t), filepath.Join(bin, "promptspool")); err != nil {
		t.Fatal(err)
	}
	server, ops := harness.FreePort(t), harness.FreePort(t)
	own := strings.NewReplacer(
		"0.0.0.0:8788", server, "https://prompts.example.com:8788", "https://"+server,
		"DNS:prompts.example.com", "IP:127.0.0.1", "127.0.0.1:8787", harness.FreePort(t), "127.0.0.1:9787", ops,
		"/etc/promptspool/", "", "/var/backups/", "", "/var/lib/promptspool-server", "server",
		"/var/lib/promptspool", "sidecar", "/dev/stdin", "typed",
	)

	script, role := own.Replace(machines), "server"
	credential := regexp.MustCompile(`Environment=(\S+)=%d/(\S+)`)
	for _, e := range harness.ExamplesOf("production") {
		code := own.Replace(e.Code)
		name := ""
		switch e.Language {
		case "sh":
			script += code
		case "ini":
			name, code = role+".env", strings.Join(credential.FindAllString(code, -1), "\n")
			code = credential.ReplaceAllString(code, "$1=$2")
			if role == "server" {
				code += "\nPROMPTSPOOL_OPS_LISTEN=127.0.0.1:0"
			} else {
				code += "\nPROMPTSPOOL_OPS_LISTEN=" + ops + "\nPROMPTSPOOL_LISTEN=" + own.Replace("127.0.0.1:8787")
			}
		case "yaml":
			name, role = role+".yaml", "sidecar" // the server's comes first
		}
		if name == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	said := string(out)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for text, want := range map[string]int{
		"https://" + server + "/sign-up?code=": 1,
		`"success":true`:                       2, // the first call, and the one during the outage
		"promptspool_spool_events 0\n":         1,
		"The backup holds 1 record":            1,
		"Restored and verified: 1 record":      1,
		"queued        1 event\n":              1,
		"queued        0 events\n":             2, // after each of the two calls
	} {
		if got := strings.Count(said, text); got != want {
			t.Errorf("%q is there %d times, want %d:\n%s", text, got, want, said)
		}
	}
}
