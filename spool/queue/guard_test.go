package queue_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"promptspool/spool/queue"
)

// bounded opens a spool with a clock that the test moves, and generations of 100 KB.
func bounded(t *testing.T, dir string, now *time.Time, settings ...func(*queue.Config)) *queue.Queue {
	t.Helper()
	settings = append([]func(*queue.Config){generationBytes(100_000), func(c *queue.Config) {
		c.Now = func() time.Time { return *now }
	}}, settings...)

	return open(t, dir, settings...)
}

// fill appends until the spool refuses. It returns how many events were taken, and the
// refusal.
func fill(t *testing.T, s *queue.Queue) (taken int, refusal *queue.FullError) {
	t.Helper()
	for ; taken < 1000; taken++ {
		err := s.Append(7, bytes.Repeat([]byte("x"), 90_000))
		if errors.As(err, &refusal) {
			if !errors.Is(err, queue.ErrFull) {
				t.Error("the refusal is not an ErrFull")
			}
			return taken, refusal
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("90 MB reach no bound")

	return
}

func TestAtTheBoundTheSpoolRefusesAndGoesOnByItself(t *testing.T) {
	dir, now := t.TempDir(), time.Unix(1_800_000_000, 0)
	s := bounded(t, dir, &now, bytesMax(8<<20))
	taken, refusal := fill(t, s)
	if refusal.Flag != "--spool-bytes-max" || taken < 10 {
		t.Errorf("after %d events: %v", taken, refusal)
	}
	if st := s.Status(); st.DiskBytes > 8<<20 {
		t.Errorf("%d bytes of disk are taken", st.DiskBytes)
	}
	appendAll(t, s, 7, "a small one still fits")
	if got := len(readAll(t, s)); got != taken+1 {
		t.Errorf("%d of %d events can be read", got, taken+1)
	}

	ack(t, s, uint64(taken)/2)
	if err := s.Append(7, make([]byte, 90_000)); !errors.Is(err, queue.ErrFull) {
		t.Errorf("the disk was measured again within a second: %v", err)
	}

	now = now.Add(time.Second)
	if more, _ := fill(t, s); more == 0 {
		t.Error("the spool refuses events although half of its events were acknowledged")
	}
}

func TestWhatElseLiesInTheDataFolderCountsForDiskMax(t *testing.T) {
	data, now := t.TempDir(), time.Unix(1_800_000_000, 0)
	other := filepath.Join(data, "templates")
	if err := os.WriteFile(other, bytes.Repeat([]byte("t"), 20<<20), 0o600); err != nil {
		t.Fatal(err)
	}

	diskMax := func(c *queue.Config) { c.DataDir, c.DiskMax = data, 20<<20 }
	s := bounded(t, filepath.Join(data, "spool"), &now, diskMax)
	if taken, refusal := fill(t, s); taken != 0 || refusal.Flag != "--disk-max" {
		t.Errorf("after %d events: %v", taken, refusal)
	}

	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	appendAll(t, s, 7, "event")
}

func TestBelowTheFreeMinimumNothingIsTaken(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := bounded(t, t.TempDir(), &now, func(c *queue.Config) { c.FreeMin = 1 << 60 })
	if taken, refusal := fill(t, s); taken != 0 || refusal.Flag != "--spool-free-min" {
		t.Errorf("after %d events: %v", taken, refusal)
	}
	if told := s.FreeMin(); told != 1<<60 {
		t.Errorf("it tells that %d bytes stay free", told)
	}
}

// littered puts a file of the given size into a spool's quarantine, unknown to the guard.
func littered(t *testing.T, dir string, bytes int) {
	t.Helper()
	quarantine := filepath.Join(dir, "quarantine")
	if err := os.MkdirAll(quarantine, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(quarantine, "large"), make([]byte, bytes), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestGenerationsAreMadeWithoutAWalkOverTheFolderUntilTheBoundIsNear(t *testing.T) {
	dir, now := t.TempDir(), time.Unix(1_800_000_000, 0)
	s := bounded(t, dir, &now, bytesMax(16<<20))
	littered(t, dir, 16<<20)
	for range 5 { // each a generation
		appendAll(t, s, 7, string(make([]byte, 90_000)))
	}
	if st := s.Status(); st.DiskBytes < 16<<20 { // which walks, as Run does every second
		t.Errorf("%d bytes of disk are taken", st.DiskBytes)
	}
	if taken, refusal := fill(t, s); taken != 0 || refusal.Flag != "--spool-bytes-max" {
		t.Errorf("after a walk over the folder %d events were taken: %v", taken, refusal)
	}
}

func TestWhatIsMadeBetweenWalksStaysWithinTheBound(t *testing.T) {
	dir, now := t.TempDir(), time.Unix(1_800_000_000, 0)
	s := bounded(t, dir, &now, bytesMax(16<<20))
	for seq := range uint64(30) {
		if err := s.Bury(letter("why", queue.Entry{Seq: seq + 1, Data: make([]byte, 90_000)})); err != nil {
			t.Fatal(err)
		}
	}
	taken, _ := fill(t, s)
	if used := s.Status().DiskBytes; used > 16<<20 || used < 15<<20 {
		t.Errorf("%d bytes of disk are taken after %d events", used, taken)
	}
}

func TestWhatWasRemovedSinceTheLastWalkIsNoReasonToRefuse(t *testing.T) {
	dir, now := t.TempDir(), time.Unix(1_800_000_000, 0)
	s := bounded(t, dir, &now, bytesMax(8<<20))
	littered(t, dir, 6<<20)
	s.Status()
	if err := os.RemoveAll(filepath.Join(dir, "quarantine")); err != nil {
		t.Fatal(err)
	}
	if taken, _ := fill(t, s); taken < 10 {
		t.Errorf("only %d events were taken", taken)
	}
}

// buriedLimited moves letters of limits of 90 kB to the dead letters, each of another key.
func buriedLimited(t *testing.T, s *queue.Queue, count int) {
	t.Helper()
	for seq := range uint64(count) {
		e := letter("full", queue.Entry{Seq: seq + 1, Key: uint32(100 + seq), Data: make([]byte, 90_000)})
		e.AtLimit = true
		if err := s.Bury(e); err != nil {
			t.Error(err)
		}
	}
}

func TestNoWriteWaitsForLettersOfLimits(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	without, _ := fill(t, bounded(t, t.TempDir(), &now, bytesMax(8<<20)))

	dir := t.TempDir()
	s := bounded(t, dir, &now, bytesMax(8<<20))
	buriedLimited(t, s, 20) // nearly all of the lanes
	with, _ := fill(t, s)
	// A few more or less fit, as the generations are sealed sooner or later.
	st := s.Status()
	if with < without-4 || st.Dropped < 15 || st.Dead+st.Dropped != 20 || st.DiskBytes > 8<<20 {
		t.Errorf("%d events were taken, %d without letters of limits; the spool has %+v", with, without, st)
	}

	// Letters that come while the spool is full have space once it is not.
	buriedLimited(t, s, 2)
	ack(t, s, uint64(with))
	now = now.Add(time.Second)
	appendAll(t, s, 7, "event")
	left := st.Dead + 2
	if st := s.Status(); st.Dead != left {
		t.Errorf("the spool has %+v; want %d dead letters", st, left)
	}
	closeSpool(t, s)
	if r, _ := checkDir(t, dir); !r.Sound() || r.Lanes[1].Events != left {
		t.Errorf("the check of the stopped spool reports %+v", r.Lanes)
	}

	// Both at the same time.
	s = bounded(t, dir, &now, bytesMax(8<<20))
	var burying sync.WaitGroup
	burying.Go(func() { buriedLimited(t, s, 40) })
	fill(t, s)
	burying.Wait()
}
