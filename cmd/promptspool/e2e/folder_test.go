//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// folder holds everything that this run of the tests writes: binaries, data folders,
// images of disks. It is removed at the end; what a killed run leaves, the next one
// removes.
var folder string

// folderPrefix begins the name of such a folder, among the temporary files; the pid of
// its process follows.
const folderPrefix = "promptspool-tests-"

// ownFolder makes the folder of this process, in which all temporary files are from now
// on, and removes those of processes that have ended.
func ownFolder() error {
	if err := removeStale(os.TempDir()); err != nil {
		return fmt.Errorf("what an earlier run of the tests left cannot be removed: %w", err)
	}
	folder = filepath.Join(os.TempDir(), folderPrefix+strconv.Itoa(os.Getpid()))
	return errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o700), os.Setenv("TMPDIR", folder))
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

func TestWhatAKilledRunLeftIsRemovedAndOthersAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}

	stale := filepath.Join(dir, folderPrefix+strconv.Itoa(ended.Process.Pid))
	others := []string{
		folderPrefix + strconv.Itoa(os.Getpid()), folderPrefix + strconv.Itoa(os.Getppid()), folderPrefix + "x", "else",
	}
	for _, path := range append([]string{filepath.Base(stale)}, others...) {
		if err := os.Mkdir(filepath.Join(dir, path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	disk := newImageIn(t, mountTmpfs(t, filepath.Join(stale, "under")), 16, false) // a mount in a mount
	if err := os.WriteFile(filepath.Join(disk.mount, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}

	if err := removeStale(dir); err != nil {
		t.Fatal(err)
	}
	devices := strings.Fields(tool(t, "losetup", "--list", "--noheadings", "--output", "NAME"))
	if slices.Contains(devices, disk.loop) {
		t.Errorf("the loop device %s is left", disk.loop)
	} else {
		disk.loop = "" // nothing is left to detach
	}
	if left := filesIn(t, dir); len(left) != len(others) {
		t.Errorf("left are %v, want %v", left, others)
	}
}
