package generation_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"promptspool/spool/queue/frame"
	"promptspool/spool/queue/generation"
	"promptspool/spool/rawlog"
)

// quiet fails the test when Badger reports a failure that it only logs.
func quiet(t *testing.T) rawlog.Log {
	t.Helper()
	fail := func(err error) { t.Error(err) }
	return rawlog.Log{Logger: slog.New(slog.DiscardHandler), Failure: "error flushing memtable", Fail: fail}
}

// create makes a generation in a new folder that begins with this sequence, and returns the folder's path.
func create(t *testing.T, first uint64) (*generation.Writer, string) {
	t.Helper()
	parent := t.TempDir()
	w, err := generation.Create(filepath.Join(parent, "unplaced"), first, 1<<20, quiet(t))
	if err != nil {
		t.Fatal(err)
	}
	name, err := w.Place(first)
	if err != nil {
		t.Fatal(err)
	}
	return w, filepath.Join(parent, name)
}

// commit adds events in one transaction, each with the number of its sequence as its text.
func commit(t *testing.T, w *generation.Writer, seqs ...uint64) {
	t.Helper()
	txn := w.Begin()
	defer txn.Discard()
	for _, seq := range seqs {
		e := generation.NewEvent([][]byte{[]byte("event "), fmt.Append(nil, seq)})
		if err := txn.Add(frame.EventKey{Seq: seq, Key: 7, At: time.Unix(1, 0)}, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := txn.Commit(); err != nil {
		t.Fatal(err)
	}
}

// The mark is what counts only where nothing was committed: a power failure may bring it back.
func TestAnUnfinishedGenerationIsNone(t *testing.T) {
	w, dir := create(t, 1)
	commit(t, w, 1, 2)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	unfinished := filepath.Join(filepath.Dir(dir), generation.Name(3, 0))
	if err := os.Mkdir(unfinished, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{dir, unfinished} {
		if err := os.WriteFile(filepath.Join(folder, "UNPLACED"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	places, err := generation.In(filepath.Dir(dir))
	if err != nil || len(places) != 1 || places[0].Name != filepath.Base(dir) {
		t.Errorf("generations %v: %v", places, err)
	}
	if generation.IsUnplaced(dir) || !generation.IsUnplaced(unfinished) {
		t.Error("the mark counts where events are, or does not count where there are none")
	}
}
