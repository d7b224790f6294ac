package queue_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"promptspool/spool/queue"
)

// ack acknowledges all events up to and including through.
func ack(t testing.TB, s *queue.Queue, through uint64) {
	t.Helper()
	if err := s.Ack(through); err != nil {
		t.Fatal(err)
	}
}

// generationFolders lists the folders of events.
func generationFolders(t testing.TB, dir string) []string {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(dir, "gen-*"))
	if err != nil {
		t.Fatal(err)
	}

	return folders
}

func TestAckGivesTheDiskBack(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, generationBytes(100_000))
	for range 9 {
		appendAll(t, s, 7, strings.Repeat("x", 90_000))
	}
	appendAll(t, s, 7, strings.Repeat("x", 20_000))

	before := s.Status()
	if before.Generations != 10 || before.DiskBytes < before.Bytes {
		t.Fatalf("status before anything was acknowledged: %+v", before)
	}

	ack(t, s, 7)
	if got := len(generationFolders(t, dir)); got != 3 {
		t.Errorf("%d folders are left after 7 of 10 generations were acknowledged", got)
	}

	ack(t, s, 10)
	after := s.Status()
	if after.Events != 0 || after.Bytes != 0 ||
		after.DiskBytes > before.DiskBytes-9*90_000 || !after.Oldest.IsZero() {
		t.Errorf("status after all was acknowledged: %+v", after)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".trash-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}

	appendAll(t, s, 7, "more")
	wantTexts(t, s, []string{"more"})
}

func TestAfterACrashTheFrontierIsNeverAhead(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, generationBytes(1000))
	appendAll(t, s, 7, numbered(30)...)
	for _, through := range []uint64{1, 2, 9, 10, 25, 29} {
		ack(t, s, through)
		after := open(t, copyDir(t, dir))
		if f := after.Frontier(); f > through+1 {
			t.Errorf("acknowledged through %d, after a crash the frontier is %d", through, f)
		}
		all := readAll(t, after)
		if last := all[len(all)-1]; last.Seq != 30 || after.Status().Gaps != 0 {
			t.Errorf("acknowledged through %d, after a crash the last event is %d, with %d gaps",
				through, last.Seq, after.Status().Gaps)
		}
	}
}

func TestRunSyncsTheCursor(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	appendAll(t, s, 7, numbered(5)...)
	ack(t, s, 3)

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()

	for frontier := uint64(0); frontier != 4; {
		after, err := tryOpen(copyDir(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		frontier = after.Frontier()
		closeSpool(t, after)
	}

	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestWhatWasNotAppendedCannotBeAcknowledged(t *testing.T) {
	s := open(t, t.TempDir())
	appendAll(t, s, 7, "event 1")
	if err := s.Ack(2); err == nil {
		t.Fatal("event 2 was acknowledged")
	}
	ack(t, s, 1)
	ack(t, s, 1)
}

func TestTheOldestIsTheOneAtTheFrontier(t *testing.T) {
	s := open(t, t.TempDir(), generationBytes(500))
	appendAll(t, s, 7, numbered(10)...)
	all := readAll(t, s)
	for _, e := range all {
		if got := s.Status().Oldest; !got.Equal(e.At) {
			t.Fatalf("frontier %d: oldest %v, want %v", e.Seq, got, e.At)
		}
		ack(t, s, e.Seq)
	}
}

func TestAHalfRemovedGenerationIsSwept(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	appendAll(t, s, 7, "event 1")
	closeSpool(t, s)
	trash := filepath.Join(dir, ".trash-gen-0000000000000001")
	if err := os.MkdirAll(filepath.Join(trash, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if _, err := os.Stat(trash); !os.IsNotExist(err) {
		t.Errorf("the trash of an interrupted removal is still there: %v", err)
	}
	wantTexts(t, s, numbered(1))
}
