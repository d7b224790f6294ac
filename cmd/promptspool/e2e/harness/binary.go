//go:build linux

package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"promptspool/metrics/partstest"
)

// copyOf returns a copy of a binary that compile writes, which is kept until the tests end. All
// rooms share the original: as long as no source changes, `go build` leaves it as it is.
func copyOf(name string, compile func(path string) error) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	original, own := filepath.Join(cache, "promptspool-tests", name), filepath.Join(Folder, name)
	if err := os.MkdirAll(filepath.Dir(original), 0o755); err != nil {
		return "", err
	}

	// One process at a time: another must not copy what is half written.
	lock, err := os.Create(original + ".lock")
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}

	// A test has it already, and may be running it: a program that runs cannot be written.
	if _, err := os.Stat(own); err == nil {
		return own, nil
	}
	if err := compile(original); err != nil {
		return "", err
	}
	if out, err := exec.Command("cp", original, own).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cp: %w\n%s", err, out)
	}

	return own, nil
}

// Top is the folder of the program's module, from the folder of a room's tests.
const Top = "../../../.."

// build compiles the command with some flags.
func build(path string, flags ...string) error {
	// Without DWARF, which nobody reads here, it is linked in half the time.
	args := slices.Concat([]string{"build", "-ldflags=-w"}, flags, []string{"-o", path, "./cmd/promptspool"})
	if i := slices.Index(args, "-tags"); i > 0 {
		args[i+1] += "," + systemTag
	} else {
		args = slices.Insert(args, 1, "-tags", systemTag)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = Top

	// Only the race detector needs cgo; without it, most packages are compiled already.
	cgo := "CGO_ENABLED=0"
	if slices.Contains(flags, "-race") {
		cgo = "CGO_ENABLED=1"
	}
	cmd.Env = append(os.Environ(), cgo)

	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the binary does not build: %w\n%s", err, out)
	}
	return nil
}

// racingBinary is the command built with the race detector, which takes several times the
// processor.
var racingBinary = sync.OnceValues(func() (string, error) {
	return copyOf("promptspool-race", func(path string) error { return build(path, "-race") })
})

// watched holds the tests that called WatchForRaces.
var watched sync.Map

// WatchForRaces runs a test's processes with the race detector. It is for scenes in which
// many callers, kills and both roles meet.
func WatchForRaces(t *testing.T) {
	t.Helper()
	watched.Store(t, true)
	t.Cleanup(func() { watched.Delete(t) })
}

// Program is the binary that a test's processes run.
func Program(t testing.TB) string {
	t.Helper()

	build := PlainBinary
	if _, ok := watched.Load(t); ok {
		partstest.Need(t, "gcc")
		build = racingBinary
	}

	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// PlainBinary is the command as it is shipped.
var PlainBinary = sync.OnceValues(func() (string, error) {
	return copyOf("promptspool-plain", func(path string) error { return Ship(Top, path) })
})

// shipping is the line of the Dockerfile that builds the binary.
var shipping = regexp.MustCompile(`(?m)^ +(CGO_ENABLED=0 go build -trimpath .*) -o /promptspool (\./cmd/promptspool)`)

// Ship builds the command from the source in a folder as the Dockerfile does. The
// environment may hold the arguments of its build.
func Ship(source, path string, env ...string) error {
	text, err := os.ReadFile(filepath.Join(source, "Dockerfile"))
	if err != nil {
		return err
	}
	line := shipping.FindSubmatch(text)
	if line == nil {
		return errors.New("the Dockerfile builds no binary")
	}
	cmd := exec.Command("sh", "-c", fmt.Sprintf(`%s -o "$0" %s`, line[1], line[2]), path)
	cmd.Dir = source
	// What the line leaves out must not come from the flags of `make test`.
	cmd.Env = append(os.Environ(), "GOFLAGS="+strings.ReplaceAll(os.Getenv("GOFLAGS"), "-trimpath", ""))
	cmd.Env = append(cmd.Env, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the binary does not build: %w\n%s", err, out)
	}
	return nil
}

// CrashBinary is the command with the tag crashpoints: it ends at the point
// PROMPTSPOOL_CRASH_AT. It has no race detector, with which filling generations would
// take minutes.
var CrashBinary = sync.OnceValues(func() (string, error) {
	return copyOf("promptspool-crashpoints", func(path string) error { return build(path, "-tags", "crashpoints") })
})
