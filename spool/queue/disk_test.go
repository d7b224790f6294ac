//go:build linux

package queue_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"promptspool/metrics/partstest"
	"promptspool/spool/queue"
)

func mountTmpfs(t *testing.T, size string) string {
	t.Helper()
	partstest.Need(t, "root")
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatalf("cannot mount a tmpfs: %v; this test needs root", err)
	}
	t.Cleanup(func() { unmount(t, dir) })

	return dir
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
		if err := s.Append(1, data, data); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Append(1, make([]byte, 20<<20)); err != nil {
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
		e.AtLimit = true
		if err := s.Bury(e); err != nil {
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
