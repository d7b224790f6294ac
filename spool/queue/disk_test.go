//go:build linux

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

	"promptspool/metrics/parts"
	"promptspool/spool/queue"
)

// TestAFullDiskIsNoCrash fills small filesystems under a spool. The spool has a process
// of its own, because Badger answers a full disk with SIGBUS. The disk is filled and
// freed from outside again and again, in the middle of anything the spool does.
func TestAFullDiskIsNoCrash(t *testing.T) {
	for name, mount := range map[string]func(*testing.T) string{
		"tmpfs": func(t *testing.T) string { return mountTmpfs(t, "64m") }, "ext4": mountExt4,
	} {
		t.Run(name, func(t *testing.T) {
			disk := mount(t)
			dir := filepath.Join(disk, "spool")
			acked := uint64(0)
			for range 2 {
				acked = surviveFullDisk(t, disk, dir, acked)
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

// surviveFullDisk starts the child and fills the disk while it writes, until it is
// refused; then frees the disk until the child goes on. At last it stops the child on a
// full disk. It returns how many events have been acknowledged in all.
func surviveFullDisk(t *testing.T, disk, dir string, acked uint64) uint64 {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), "PROMPTSPOOL_TEST_DISK="+dir)
	child.Stderr = os.Stderr

	stop, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.AfterFunc(5*time.Minute, func() { _ = child.Process.Kill() }) // if it hangs
	defer deadline.Stop()

	next := func() (last uint64, refused bool) {
		b := make([]byte, 9)
		if _, err := io.ReadFull(out, b); err != nil {
			t.Fatalf("the child ended: %v, %v", err, child.Wait())
		}
		return binary.BigEndian.Uint64(b), b[8] == 1
	}

	wait := func(refused bool) {
		for from := acked; ; {
			last, was := next()
			acked = max(acked, last)
			if was == refused && (refused || last > from) {
				return
			}
		}
	}

	wait(false)
	for range 2 {
		filler := fillDisk(t, disk)
		wait(true)
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		wait(false)
	}

	filler := fillDisk(t, disk)
	defer os.Remove(filler)
	if err := stop.Close(); err != nil {
		t.Fatal(err)
	}

	for {
		b := make([]byte, 9)
		if _, err := io.ReadFull(out, b); err != nil {
			break
		}
		acked = max(acked, binary.BigEndian.Uint64(b))
	}

	if err := child.Wait(); err != nil {
		t.Fatalf("the child did not shut down cleanly: %v", err)
	}

	return acked
}

// fillDisk writes a file until not one more byte fits.
func fillDisk(t *testing.T, disk string) (path string) {
	t.Helper()
	path = filepath.Join(disk, "filler")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	for size := 1 << 20; size > 0; {
		if _, err = file.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}

	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}

	return path
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
		err := s.Append(context.Background(), 7, diskEvent(newest+1))
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
	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), "PROMPTSPOOL_TEST_DISK="+filepath.Join(disk, "spool"))
	child.Stderr = &stderr
	if _, err := child.StdinPipe(); err != nil { // open for as long as the child lives
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.AfterFunc(5*time.Minute, func() { _ = child.Process.Kill() }) // if it hangs
	defer deadline.Stop()

	acked, filler := uint64(0), ""
	for b := make([]byte, 9); ; {
		if _, err := io.ReadFull(out, b); err != nil {
			break
		}
		if acked = binary.BigEndian.Uint64(b); acked == 10 {
			filler = fillDisk(t, under)
		}
	}

	err = child.Wait()
	if err == nil || child.ProcessState.ExitCode() != 1 ||
		!bytes.Contains(stderr.Bytes(), []byte("the spool failed")) {
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

func mountTmpfs(t *testing.T, size string) string {
	t.Helper()
	parts.Need(t, "root")
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatalf("cannot mount a tmpfs: %v; this test needs root", err)
	}
	t.Cleanup(func() { unmount(t, dir) })

	return dir
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
	parts.Need(t, "root", "mount", "mkfs.ext4")
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

// unmount waits for a process of another package's tests that has taken the mounts along.
func unmount(t *testing.T, dir string) {
	err := unix.Unmount(dir, 0)
	for until := time.Now().Add(time.Minute); errors.Is(err, unix.EBUSY) && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
		err = unix.Unmount(dir, 0)
	}
	if err != nil {
		t.Errorf("cannot unmount %s: %v", dir, err)
		_ = unix.Unmount(dir, unix.MNT_DETACH)
	}
}

// An idle spool also frees the files it made for large events, once everything is
// acknowledged.
func TestAnIdleSpoolGivesBackWhatItTook(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)

	data := bytes.Repeat([]byte("x"), 256<<10)
	for range 10 {
		if err := s.Append(t.Context(), 1, data, data); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Append(t.Context(), 1, make([]byte, 20<<20)); err != nil {
		t.Fatal(err)
	}
	if st := s.Status(); st.DiskBytes > st.Bytes*115/100+8<<20 {
		t.Errorf("%d bytes of events take %d bytes of disk", st.Bytes, st.DiskBytes)
	}

	newest, _ := s.Newest()
	if err := s.Ack(newest); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	for s.Status().DiskBytes > 8<<20 && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}

	if st := s.Status(); st.DiskBytes > 8<<20 {
		t.Errorf("10 s after everything was acknowledged the status is %+v", st)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}

	appendAll(t, s, 1, "next")
	if e := readAll(t, s); len(e) != 1 || e[0].Seq != newest+1 {
		t.Errorf("%d events, the first %+v", len(e), e)
	}
	closeSpool(t, s)
	if e := readAll(t, open(t, dir)); len(e) != 1 || string(e[0].Data) != "next" {
		t.Errorf("after a restart %d events can be read, want the newest one", len(e))
	}
}

func TestLettersOfLimitsGiveWayOnAFullDisk(t *testing.T) {
	s := open(t, mountTmpfs(t, "64m")) // of which 4 MiB stay free
	appendAll(t, s, 7, "event")
	large := make([]byte, 1<<20)
	for seq := range uint64(60) {
		e := letter("full", queue.Entry{Seq: 1000 + seq, Key: uint32(100 + seq/10), Data: large})
		if err := s.BuryLimited(e); err != nil {
			t.Fatal(err)
		}
	}
	full := s.Status()
	if full.Dropped == 0 || full.Dead+full.Dropped != 60 {
		t.Fatalf("the disk did not fill up: %+v", full)
	}

	// Neither what the server refuses nor what an app writes waits for them.
	for seq := range uint64(10) {
		if err := s.Hold(7, "why", []queue.Entry{{Seq: 2000 + seq, Key: 7, Data: large}}); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 { // more than a generation
		appendAll(t, s, 7, string(large))
	}
	st := s.Status()
	if st.Held != 10 || st.Events != 21 || st.Dead+st.Dropped != 60 || st.Dead == 0 || st.Gaps != 0 {
		t.Errorf("the spool has %+v; some letters fit beside the rest", st)
	}
}
