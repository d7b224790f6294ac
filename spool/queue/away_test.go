//go:build linux

package queue_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"promptspool/spool/disk"
	"promptspool/spool/disk/disktest"
	"promptspool/spool/queue"
)

// A sync succeeds in a folder that was removed, and on an ext4 that turned read-only.
// Neither write may be acknowledged as durable.
func TestNothingIsTakenOnceTheFolderIsNotThere(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	for name, leave := range map[string]func(dir string) error{
		"removed": os.RemoveAll,
		"moved":   func(dir string) error { return os.Rename(dir, dir+".moved") },
		"replaced": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".moved"), os.Mkdir(dir, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "spool")
			s, err := tryOpen(dir)
			if err != nil {
				t.Fatal(err)
			}

			appendAll(t, s, 7, numbered(3)...)
			if err := s.Ready(); err != nil {
				t.Errorf("the spool is not ready before its folder is gone: %v", err)
			}
			if err := leave(dir); err != nil {
				t.Fatal(err)
			}

			if err := s.Append(7, []byte("new")); !errors.Is(err, queue.ErrFailed) {
				t.Errorf("an append without the folder returns %v, want ErrFailed", err)
			}
			if s.Ready() == nil {
				t.Error("the spool is ready without its folder")
			}
			wantTexts(t, s, numbered(3)) // what was accepted before can be delivered

			closed := make(chan error, 1)
			go func() { closed <- s.Close() }()
			select {
			case err := <-closed:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("Close hangs")
			}
		})
	}
}

// An idle spool notices within seconds, without waiting for the next write.
func TestAnIdleSpoolSeesThatItsFolderIsGone(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}

	dir := filepath.Join(t.TempDir(), "spool")
	s, err := tryOpen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context()) }()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}

	deadline := time.After(10 * time.Second)
	for s.Ready() == nil {
		select {
		case <-deadline:
			t.Fatal("10 s after its folder was removed the spool is still ready")
		case err := <-ended:
			t.Fatalf("Run: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestAReadOnlyFileSystemIsSeen(t *testing.T) {
	dir := mountTmpfs(t, "64m")
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()

	if err := disk.Present(folder, dir); err != nil {
		t.Errorf("Present on a writable file system: %v", err)
	}

	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if err := disk.Present(folder, dir); !errors.Is(err, unix.EROFS) {
		t.Errorf("Present on a read-only file system: %v, want EROFS", err)
	}
}

// After an error ext4 takes no more writes: each sync fails. What was accepted before can be
// delivered, which a restart could not do.
func TestAnErrorMakesTheFileSystemReadOnly(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	volume := disktest.MountVolume(t, "ext4")
	s, err := tryOpen(filepath.Join(volume.Dir, "spool"))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context()) }()
	appendAll(t, s, 7, numbered(3)...)

	var st unix.Stat_t
	err = errors.Join(unix.Mount("", volume.Dir, "", unix.MS_REMOUNT, "errors=remount-ro"), unix.Stat(volume.Dir, &st))
	device, linked := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)))
	trigger := filepath.Join("/sys/fs/ext4", filepath.Base(device), "trigger_fs_error")
	if err := errors.Join(err, linked, os.WriteFile(trigger, []byte("1"), 0)); err != nil {
		t.Fatal(err)
	}

	if err := s.Append(7, []byte("new")); !errors.Is(err, queue.ErrFailed) {
		t.Errorf("an append returns %v, want ErrFailed", err)
	}
	s.LogOfBadger(fmt.Errorf("error while creating table err: %v", unix.EROFS))
	wantTexts(t, s, numbered(3))
	select {
	case err := <-ended:
		t.Errorf("Run: %v", err)
	case err := <-s.Failed():
		t.Errorf("the process must end: %v", err)
	case <-time.After(1500 * time.Millisecond): // the cursor was to be saved
	}
	if s.Ready() == nil {
		t.Error("the spool is ready")
	}
}
