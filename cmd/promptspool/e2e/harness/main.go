//go:build linux

package harness

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"promptspool/spool/disk/disktest"
)

// HelperVariable makes this test binary a helper process: it names which.
const HelperVariable = "PROMPTSPOOL_TEST_HELPER"

// AdminKey is a key of the account default, made by PROMPTSPOOL_BOOTSTRAP_KEY.
const AdminKey = "a-bootstrap-key-of-more-than-thirty-two-characters"

// atEnd is what AtEnd is given.
var atEnd struct {
	sync.Mutex
	calls []func()
}

// AtEnd calls a function when all tests have run.
func AtEnd(f func()) {
	atEnd.Lock()
	defer atEnd.Unlock()
	atEnd.calls = append(atEnd.calls, f)
}

// Main runs the tests of a room, and then exits. In a process that a test has started with
// HelperVariable, it runs the helper of that name instead.
func Main(run func() int, helpers map[string]func()) {
	if name := os.Getenv(HelperVariable); name == "oracle" {
		runOracle()
		return
	} else if name != "" {
		helpers[name]()
		return
	}

	if err := ownFolder(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	http.DefaultTransport = Comparing(http.DefaultTransport)

	// With the race detector, a process waits a second before it exits, in case another thread has
	// something to report. 20 ms are enough here.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=20")

	code := run()
	for _, stop := range atEnd.calls {
		stop()
	}
	_ = os.RemoveAll(Folder)
	os.Exit(differences.report(code))
}

// Folder holds everything that this run of the tests writes: binaries, data folders,
// images of disks. It is removed at the end; what a killed run leaves, the next one
// removes.
var Folder string

// folderPrefix begins the name of such a folder, among the temporary files; the pid of
// its process follows.
const folderPrefix = "promptspool-tests-"

// ownFolder makes the folder of this process, in which all temporary files are from now
// on, and removes those of processes that have ended.
func ownFolder() error {
	if err := removeStale(os.TempDir()); err != nil {
		return fmt.Errorf("what an earlier run of the tests left cannot be removed: %w", err)
	}
	Folder = filepath.Join(os.TempDir(), folderPrefix+strconv.Itoa(os.Getpid()))
	return errors.Join(os.RemoveAll(Folder), os.Mkdir(Folder, 0o700), os.Setenv("TMPDIR", Folder))
}

// removeStale removes the folders in dir whose process has ended, with what is mounted in
// them.
func removeStale(dir string) error {
	stale, err := filepath.Glob(filepath.Join(dir, folderPrefix+"*"))
	for _, path := range stale {
		pid, failed := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), folderPrefix))
		if failed != nil || pid == os.Getpid() || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		err = errors.Join(err, unmountBelow(path), os.RemoveAll(path))
	}
	return err
}

// unmountBelow detaches the loop devices of files below a folder and unmounts what is
// mounted there, innermost first. The devices come first, while their files still have
// these names; a device in use goes with its mount.
func unmountBelow(dir string) error {
	if err := detachBelow(dir); err != nil {
		return err
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}

	var below []string
	for line := range strings.Lines(string(mounts)) {
		if path := strings.Fields(line)[1]; strings.HasPrefix(path, dir+"/") {
			below = append(below, path)
		}
	}
	for _, path := range slices.Backward(below) {
		if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
	return nil
}

func detachBelow(dir string) error {
	if _, err := exec.LookPath("losetup"); err != nil {
		return nil // nor was it there for the earlier run
	}
	out, err := exec.Command("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE").Output()
	if err != nil {
		return fmt.Errorf("losetup --list: %w", err)
	}

	for line := range strings.Lines(string(out)) {
		device, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(strings.TrimSpace(file), dir+"/") {
			continue
		}
		if text, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
			return fmt.Errorf("losetup --detach %s: %w %s", device, err, text)
		}
	}
	return nil
}

// WriteFile writes a file into a folder of its own and returns its path.
func WriteFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// FilesHolding returns the files below dir that contain a text.
func FilesHolding(t *testing.T, dir, text string) (found []string) {
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
