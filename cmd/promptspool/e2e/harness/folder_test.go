//go:build linux

package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

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
	disk := NewImage(t, Ext4, MountTmpfs(t, filepath.Join(stale, "under")), 16, false) // a mount in a mount
	if err := os.WriteFile(filepath.Join(disk.Mount, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}

	if err := removeStale(dir); err != nil {
		t.Fatal(err)
	}
	devices := strings.Fields(Tool(t, "losetup", "--list", "--noheadings", "--output", "NAME"))
	if slices.Contains(devices, disk.loop) {
		t.Errorf("the loop device %s is left", disk.loop)
	} else {
		disk.loop = "" // nothing is left to detach
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != len(others) {
		t.Errorf("left are %v, %v, want %v", left, err, others)
	}
}
