//go:build !race

package queue_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"promptspool/metrics/partstest"
	"promptspool/spool/disk"
	"promptspool/spool/queue"
)

// TestAFullDiskIsNoCrash fills small filesystems under a spool. The spool has a process
// of its own, because Badger answers a full disk with SIGBUS. The disk is filled and
// freed from outside again and again, in the middle of anything the spool does.
func TestAFullDiskIsNoCrash(t *testing.T) {
	for name, c := range map[string]struct {
		mount  func(*testing.T) string
		rounds int
	}{
		"tmpfs": {func(t *testing.T) string { return mountTmpfs(t, "64m") }, 1}, "ext4": {mountExt4, 2},
	} {
		t.Run(name, func(t *testing.T) {
			mounted := c.mount(t)
			dir := filepath.Join(mounted, "spool")
			acked := uint64(0)
			for range c.rounds {
				acked = surviveFullDisk(t, mounted, dir, acked)
			}

			s := open(t, dir)
			all := readAll(t, s)
			if st := s.Status(); st.Next <= acked || uint64(len(all)) != st.Next-st.Frontier || st.Gaps != 0 {
				t.Errorf("%d events were appended, %d can be read: %+v", acked, len(all), st)
			}
			for i, e := range all {
				if !bytes.Equal(e.Data, diskEvent(e.Seq)) {
					t.Fatalf("event %d (sequence %d) is not what was appended", i, e.Seq)
				}
			}
		})
	}
}

// child is a process that appends to a spool until stop is closed (writeUntilStopped).
type child struct {
	*exec.Cmd
	stop io.Closer
	out  io.Reader
}

func startChild(t *testing.T, dir string, stderr io.Writer) child {
	t.Helper()
	c := child{Cmd: exec.Command(os.Args[0], "-test.run=^$")}
	c.Env = append(os.Environ(), "PROMPTSPOOL_TEST_DISK="+dir)
	c.Stderr = stderr

	stop, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stop, c.out = stop, out

	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.AfterFunc(5*time.Minute, func() { _ = c.Process.Kill() }) // if it hangs
	t.Cleanup(func() { deadline.Stop() })

	return c
}

// next returns the last sequence after the child's next append, and whether that was refused.
func (c child) next() (last uint64, refused bool, err error) {
	b := make([]byte, 9)
	_, err = io.ReadFull(c.out, b)
	return binary.BigEndian.Uint64(b), b[8] == 1, err
}

// surviveFullDisk starts the child and fills the disk while it writes: until it is
// refused, and then to the last byte; then frees the disk until the child goes on. At last
// it stops the child on a full disk. It returns how many events have been acknowledged in
// all.
//
// A filler that took all at once could hit the window of a few milliseconds between
// looking at the disk and sealing (doc.go, "A full disk"), which only a crash answers.
func surviveFullDisk(t *testing.T, mounted, dir string, acked uint64) uint64 {
	t.Helper()
	c := startChild(t, dir, os.Stderr)
	wait := func(refused bool) {
		for from := acked; ; {
			last, was, err := c.next()
			if err != nil {
				t.Fatalf("the child ended: %v, %v", err, c.Wait())
			}
			acked = max(acked, last)
			if was == refused && (refused || last > from) {
				return
			}
		}
	}

	fill := func() (filler string) {
		fillDisk(t, mounted, sealing)
		wait(true)
		return fillDisk(t, mounted, 0)
	}

	wait(false)
	filler := fill()
	wait(true)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	wait(false)

	filler = fill()
	defer os.Remove(filler)
	if err := c.stop.Close(); err != nil {
		t.Fatal(err)
	}
	for {
		last, _, err := c.next()
		if err != nil {
			break
		}
		acked = max(acked, last)
	}
	if err := c.Wait(); err != nil {
		t.Fatalf("the child did not shut down cleanly: %v", err)
	}

	return acked
}

// sealing is more than a spool takes to seal a generation, and less than it wants to see
// free before it makes one (writeUntilStopped).
const sealing = 6 << 20

// fillDisk lets a file grow until no more than leave bytes are free.
func fillDisk(t *testing.T, path string, leave int64) (filler string) {
	t.Helper()
	filler = filepath.Join(path, "filler")
	file, err := os.OpenFile(filler, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	for size := int64(1 << 20); size > 0; {
		if space, err := disk.SpaceAt(path); err != nil {
			t.Fatal(err)
		} else if leave > 0 && space.Free-size < leave {
			return filler
		}
		if _, err = file.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}

	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}

	return filler
}

// diskEvent returns the content of an event, which depends on its sequence only.
func diskEvent(seq uint64) []byte {
	return bytes.Repeat(binary.BigEndian.AppendUint64(nil, seq), 512)
}

func init() { diskChild = writeUntilStopped }

// writeUntilStopped is the child. It appends one event after the other, and goes on when
// one is refused. After each it writes to stdout the last sequence, and whether it was
// refused. When the spool reaches its own bound, the child acknowledges half of what is
// there.
func writeUntilStopped(dir string) error {
	freeMin := func(c *queue.Config) { c.FreeMin = 8 << 20 }
	s, err := tryOpen(dir, bytesMax(48<<20), generationBytes(1<<20), freeMin)
	if err != nil {
		return err
	}

	// The sidecar does the same: an append may hang in Badger, which retries writing a
	// table forever.
	go func() {
		fmt.Fprintln(os.Stderr, <-s.Failed())
		os.Exit(1)
	}()

	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()

	for ctx.Err() == nil {
		newest, _ := s.Newest()
		err := s.Append(7, diskEvent(newest+1))
		if full := (*queue.FullError)(nil); errors.As(err, &full) && full.Flag == "--spool-bytes-max" {
			err = errors.Join(err, s.Ack((s.Frontier()+newest)/2))
		}
		if err != nil && !errors.Is(err, queue.ErrFull) {
			return fmt.Errorf("event %d: %w", newest+1, err)
		}

		told := binary.BigEndian.AppendUint64(nil, newest)
		if err == nil {
			told = append(binary.BigEndian.AppendUint64(nil, newest+1), 0)
		} else {
			told = append(told, 1)
		}
		if _, err := os.Stdout.Write(told); err != nil {
			return err
		}
	}

	return s.Close()
}

// TestAFailedSyncEndsTheProcessAndLosesNothing makes fsync fail for good. The image of
// the disk is on a tmpfs that is smaller than the image and full, so the kernel's writes
// to it get an I/O error.
func TestAFailedSyncEndsTheProcessAndLosesNothing(t *testing.T) {
	under := mountTmpfs(t, "64m")
	image := filepath.Join(under, "image")
	disk := mountImage(t, image, 256<<20)

	var stderr bytes.Buffer
	c := startChild(t, filepath.Join(disk, "spool"), &stderr)
	acked, filler := uint64(0), ""
	for {
		last, _, err := c.next()
		if err != nil {
			break
		}
		if acked = last; acked == 10 {
			filler = fillDisk(t, under, 0)
		}
	}

	err := c.Wait()
	if err == nil || c.ProcessState.ExitCode() != 1 || !bytes.Contains(stderr.Bytes(), []byte("the spool failed")) {
		t.Fatalf("after %d events the child ended with %v\n%s", acked, err, stderr.String())
	}
	if err := errors.Join(os.Remove(filler), unix.Unmount(disk, 0), mountLoop(image, disk)); err != nil {
		t.Fatal(err)
	}

	s := open(t, filepath.Join(disk, "spool"))
	if st := s.Status(); st.Next <= acked || st.Gaps != 0 {
		t.Errorf("%d events were acknowledged: %+v", acked, st)
	}
	for _, e := range readAll(t, s) {
		if !bytes.Equal(e.Data, diskEvent(e.Seq)) {
			t.Fatalf("event %d is not what was appended", e.Seq)
		}
	}
}

func mountExt4(t *testing.T) string {
	t.Helper()
	// In memory: what an fsync of the image's own disk takes says nothing about the spool.
	return mountImage(t, filepath.Join(mountTmpfs(t, "80m"), "image"), 64<<20)
}

// mountImage makes an ext4 image and mounts it through a loop device, which disappears with
// the mount.
func mountImage(t *testing.T, image string, bytes int64) string {
	t.Helper()
	partstest.Need(t, "root", "mount", "mkfs.ext4")
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, bytes)); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("mkfs.ext4", "-q", "-F", image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v; this test needs e2fsprogs\n%s", err, text)
	}
	if err := mountLoop(image, dir); err != nil {
		t.Fatalf("%v; this test needs root", err)
	}
	t.Cleanup(func() { unmount(t, dir) })

	return dir
}

func mountLoop(image, dir string) error {
	text, err := exec.Command("mount", "-o", "loop", image, dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot mount %s: %w\n%s", image, err, text)
	}

	return nil
}
