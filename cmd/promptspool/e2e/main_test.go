//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"promptspool/metrics/parts"
	"promptspool/spool/database/postgres/postgrestest"
	"promptspool/spool/disk/disktest"
)

func TestMain(m *testing.M) {
	disktest.Main()
	if runHelper() {
		return
	}

	if err := ownFolder(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	http.DefaultTransport = comparing(http.DefaultTransport)

	// With the race detector, a process waits a second before it exits, in case another thread has
	// something to report. 20 ms are enough here.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=20")

	code := postgrestest.Main(m)
	stopChromium()
	stopSeeded()
	_ = os.RemoveAll(folder)
	os.Exit(differences.report(code))
}

// build compiles the command and returns the path of the binary, which is kept until the
// tests end.
func build(name string, flags ...string) (string, error) {
	path := filepath.Join(folder, name)
	args := slices.Concat([]string{"build"}, flags, []string{"-o", path, "promptspool/cmd/promptspool"})
	if i := slices.Index(args, "-tags"); i > 0 {
		args[i+1] += "," + systemTag
	} else {
		args = slices.Insert(args, 1, "-tags", systemTag)
	}
	cmd := exec.Command("go", args...)

	// Only the race detector needs cgo; without it, most packages are compiled already.
	cgo := "CGO_ENABLED=0"
	if slices.Contains(flags, "-race") {
		cgo = "CGO_ENABLED=1"
	}
	cmd.Env = append(os.Environ(), cgo)

	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the binary does not build: %w\n%s", err, out)
	}
	return path, nil
}

// racingBinary is the command built with the race detector, which takes several times the
// processor.
var racingBinary = sync.OnceValues(func() (string, error) { return build("promptspool-race", "-race") })

// watched holds the tests that called watchForRaces.
var watched sync.Map

// watchForRaces runs a test's processes with the race detector. It is for scenes in which
// many callers, kills and both roles meet.
func watchForRaces(t *testing.T) {
	t.Helper()
	watched.Store(t, true)
	t.Cleanup(func() { watched.Delete(t) })
}

// program is the binary that a test's processes run.
func program(t testing.TB) string {
	t.Helper()

	build := plainBinary
	if _, ok := watched.Load(t); ok {
		parts.Need(t, "gcc")
		build = racingBinary
	}

	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// adminKey is a key of the account default, made by PROMPTSPOOL_BOOTSTRAP_KEY.
const adminKey = "a-bootstrap-key-of-more-than-thirty-two-characters"

// runCommand runs a command to its end and returns its output and its exit code.
func runCommand(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()

	cmd := exec.Command(program(t), args...)
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs

	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}

	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// said is the output of a command and its exit code.
type said struct {
	Code     int
	Out, Err string
}

// say runs a command without a key.
func say(t *testing.T, args ...string) said {
	t.Helper()
	out, errs, code := runCommand(t, nil, args...)
	return said{code, out, errs}
}

// written writes a file into a folder of its own and returns its path.
func written(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// filesHolding returns the files below dir that contain a text.
func filesHolding(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := disktest.ReadFile(path)
		if bytes.Contains(content, []byte(text)) {
			found = append(found, path)
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
