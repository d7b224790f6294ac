//go:build linux && !portable

package queue

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"promptspool/spool/disk"
)

// quickly opens a spool with generations of 64 KiB and a clock that the test moves.
func quickly(t *testing.T) (s *Queue, now *time.Time) {
	t.Helper()
	now = new(time.Time)
	*now = time.Unix(1_800_000_000, 0)
	s, err := Open(Config{Dir: t.TempDir(), GenerationBytes: 64 << 10, Now: func() time.Time { return *now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})

	return s, now
}

// fill appends events of 1 KiB, at most ten in a commit.
func fill(t *testing.T, s *Queue, events int) {
	t.Helper()
	for ten := range slices.Chunk(slices.Repeat([][]byte{make([]byte, 1<<10)}, events), 10) {
		if err := s.Append(context.Background(), 1, ten...); err != nil {
			t.Fatal(err)
		}
	}
}

// madeAhead waits for the spare that is being made, and reports whether there is one.
func madeAhead(s *Queue) bool {
	if s.spare != nil {
		<-s.spare.made
	}
	return disk.Exists(s.path(nextName))
}

func TestAGenerationThatFillsQuicklyHasTheNextOneMadeAhead(t *testing.T) {
	s, _ := quickly(t)
	fill(t, s, 20)
	if madeAhead(s) {
		t.Error("there is a spare although less than half of the generation is full")
	}

	fill(t, s, 20)
	if !madeAhead(s) {
		t.Fatal("there is no spare although more than half of the generation is full")
	}

	spare, err := os.Stat(s.path(nextName))
	if err != nil {
		t.Fatal(err)
	}

	fill(t, s, 20)
	if taken, err := os.Stat(s.path(s.writing.name)); err != nil || !os.SameFile(spare, taken) {
		t.Errorf("writing went on in %s, which was not made ahead: %v", s.writing.name, err)
	}
	if n := s.Status().Events; n != 60 {
		t.Errorf("%d events", n)
	}
}

func TestAGenerationThatFillsSlowlyHasNoneMadeAhead(t *testing.T) {
	s, now := quickly(t)
	fill(t, s, 1)
	*now = now.Add(spareWithin + time.Second)
	fill(t, s, 40)
	if madeAhead(s) {
		t.Error("there is a spare")
	}
}

func TestASpareThatNobodyTakesIsDropped(t *testing.T) {
	s, now := quickly(t)
	fill(t, s, 40)
	for _, wait := range []time.Duration{0, spareWithin, time.Second} {
		if !madeAhead(s) {
			t.Fatal("there is no spare")
		}
		*now = now.Add(wait)
		if err := s.shrink(s.next); err != nil {
			t.Fatal(err)
		}
	}

	if madeAhead(s) {
		t.Error("the spare is still there")
	}
	fill(t, s, 40)
}

func TestASpareIsLargerWhereMuchWaits(t *testing.T) {
	s, _ := quickly(t)
	fill(t, s, 3<<10)
	if got := s.writing.writer.Capacity(); got != spareGrowth*s.config.GenerationBytes {
		t.Errorf("while 3 MiB wait, a generation has space for %d bytes", got)
	}

	if err := s.Ack(s.next - 1); err != nil {
		t.Fatal(err)
	}
	if err := s.shrink(s.next); err != nil {
		t.Fatal(err)
	}
	s.waitForSeal()
	if got := s.writing.writer.Capacity(); got != s.config.GenerationBytes || len(s.generations) != 1 {
		t.Errorf("when all is acknowledged there are %d generations, the newest with space for %d bytes",
			len(s.generations), got)
	}
}

func TestASpareThatIsTooSmallForACommitIsDropped(t *testing.T) {
	s, _ := quickly(t)
	fill(t, s, 40)
	if !madeAhead(s) {
		t.Fatal("there is no spare")
	}

	if err := s.Append(context.Background(), 1, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if s.writing.writer.Capacity() < 1<<20 {
		t.Errorf("writing went on in a generation of %d bytes", s.writing.writer.Capacity())
	}

	fill(t, s, 1)
	if n := s.Status().Events; n != 42 {
		t.Errorf("%d events", n)
	}
}

func TestOpenRemovesASpareThatAKillLeft(t *testing.T) {
	s, _ := quickly(t)
	fill(t, s, 40)
	if !madeAhead(s) {
		t.Fatal("there is no spare")
	}

	killed := filepath.Join(t.TempDir(), "killed")
	if err := os.CopyFS(killed, os.DirFS(s.config.Dir)); err != nil {
		t.Fatal(err)
	}

	again, err := Open(Config{Dir: killed})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if st := again.Status(); st.Events != 40 || st.Gaps != 0 || disk.Exists(again.path(nextName)) {
		t.Errorf("%+v", st)
	}
}
