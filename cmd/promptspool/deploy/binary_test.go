package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dustin/go-humanize"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// folder has the binary that these tests ask what it understands.
var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "deploy"); err != nil {
		panic(err)
	}
	build := exec.Command("go", "build", "-C", "../../..", "-o", folder, "./cmd/promptspool")
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "PROMPTSPOOL_") {
			_ = os.Unsetenv(name)
		}
	}

	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// promptspool runs the binary, and returns what it prints, or the faults that it finds. Files that
// settings name need not exist.
func promptspool(args ...string) ([]byte, error) {
	cmd := exec.Command(filepath.Join(folder, "promptspool"), args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err == nil {
		return out, nil
	}

	var faults []string
	for line := range strings.Lines(said.String()) {
		if !strings.Contains(line, "no such file or directory") && !strings.HasPrefix(line, "See `promptspool") {
			faults = append(faults, line)
		}
	}
	if len(faults) == 0 {
		return out, nil
	}
	return out, errors.New(strings.Join(faults, ""))
}

// understood is a command line as the binary itself reads it.
type understood struct {
	role     string
	settings map[string]string
	data     string
	diskMax  int64
	shared   bool     // its database can be used by other servers as well
	files    []string // secrets and certificates that it would read
	err      error
}

// diskBesideSpool is what a sidecar takes besides its spool, unless --disk-max says more.
const diskBesideSpool = 256 << 20

// readLines has what was understood, by the words: many manifests have the same command line.
var readLines sync.Map

// understand has the binary read a process's command line and the names of its variables.
func (m *manifests) understand(where string, args, variables []string) understood {
	words := strings.Join(args, " ")
	read, known := readLines.Load(words)
	if !known {
		read = readLine(args[0], args[1:])
		readLines.Store(words, read)
	}
	u := read.(understood)
	if u.err != nil {
		m.fault(where, "%v", u.err)
		return u
	}

	for _, name := range variables {
		setting := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "PROMPTSPOOL_")), "_", "-")
		if _, known := u.settings[setting]; !known && name != "GOMEMLIMIT" {
			m.fault(where, "%s has no variable %s", u.role, name)
		}
	}
	return u
}

// readLine gives flags to the binary as a file of settings, which `config check` reads as the
// start of the role would, and starts nothing.
func readLine(role string, flags []string) (u understood) {
	given := map[string]any{}
	for ; len(flags) > 0; flags = flags[1:] {
		name, value, whole := strings.Cut(strings.TrimPrefix(flags[0], "--"), "=")
		switch {
		case whole:
			given[name] = value
		case len(flags) > 1 && !strings.HasPrefix(flags[1], "--"):
			given[name], flags = flags[1], flags[1:]
		default:
			given[name] = true
		}
	}
	if path, ok := given["config"].(string); ok {
		delete(given, "config")
		var file map[string]map[string]any
		text, err := os.ReadFile(path)
		if u.err = errors.Join(err, yaml.Unmarshal(text, &file)); u.err != nil {
			return u
		}
		maps.Copy(given, file[role])
	}

	path := filepath.Join(folder, "settings.yaml")
	content, err := json.Marshal(map[string]any{role: given})
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err == nil {
		_, err = promptspool("config", "check", path)
	}
	var printed []struct{ Setting, Value string }
	if err == nil {
		out, failed := promptspool("config", "print", "--output=json", path)
		err = errors.Join(failed, json.Unmarshal(out, &printed))
	}

	u = understood{role: role, settings: map[string]string{}, err: err}
	for _, s := range printed {
		name := strings.TrimPrefix(s.Setting, role+".")
		u.settings[name] = s.Value
		if strings.HasSuffix(name, "-file") && s.Value != "" {
			u.files = append(u.files, s.Value)
		}
	}
	u.data = u.settings["data"]
	u.shared = u.settings["archive-file"] != "" || strings.HasPrefix(u.settings["archive"], "postgres")
	if n, err := humanize.ParseBytes(u.settings["spool-bytes-max"]); err == nil {
		u.diskMax = int64(n) + diskBesideSpool
	}
	return u
}

// equal compares two values of a test.
func equal(t *testing.T, name string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
