package generation_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"promptspool/spool/queue/frame"
	"promptspool/spool/queue/generation"
)

// quiet fails the test when Badger reports a failure that it only logs.
func quiet(t *testing.T) generation.Log {
	t.Helper()
	fail := func(err error) error { t.Error(err); return err }
	return generation.Log{Logger: slog.New(slog.DiscardHandler), Fail: fail}
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
	var framer generation.Framer
	txn := w.Begin(&framer)
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

// wantEvents compares what a reader returns with what commit wrote.
func wantEvents(t *testing.T, r *generation.Reader, want ...uint64) {
	t.Helper()
	var got []uint64
	it := r.Events()
	defer it.Close()
	it.Seek(want[0])
	for k, ok := it.Next(); ok; k, ok = it.Next() {
		data, err := it.Read(k)
		if err != nil || string(data) != fmt.Sprintf("event %d", k.Seq) || k.Key != 7 {
			t.Errorf("event %d: %q %v", k.Seq, data, err)
		}
		got = append(got, k.Seq)
	}
	var walked []uint64
	err := r.Walk(want[0], func(k frame.EventKey) bool { walked = append(walked, k.Seq); return true })
	if err != nil || !slices.Equal(got, want) || !slices.Equal(walked, want) {
		t.Errorf("read %v, walked %v (%v); want %v", got, walked, err, want)
	}
}

func TestAGenerationIsReadWhileItIsWrittenAndWhenItIsSealed(t *testing.T) {
	w, dir := create(t, 5)
	commit(t, w, 5, 6)
	commit(t, w, 7)
	wantEvents(t, w.Reader(), 6, 7)
	if _, err := generation.Open(dir, quiet(t)); !errors.Is(err, generation.ErrUnsealed) {
		t.Errorf("opening what is written: %v", err)
	}
	if err := errors.Join(w.Present(), w.Close()); err != nil {
		t.Fatal(err)
	}

	r, err := generation.Open(dir, quiet(t))
	if err != nil {
		t.Fatal(err)
	}
	wantEvents(t, r, 5, 6, 7)
	if err := r.Close(); err != nil {
		t.Error(err)
	}

	if err := generation.Unseal(dir); err != nil {
		t.Fatal(err)
	}
	if sealed, err := generation.IsSealed(dir); sealed || err != nil {
		t.Errorf("unsealed: %v %v", sealed, err)
	}
}

// What the spool takes back after a failed commit must not be found by the next start.
func TestForgottenEventsAreNotInTheLog(t *testing.T) {
	w, dir := create(t, 1)
	commit(t, w, 1, 2)
	commit(t, w, 3, 4)
	w.Forget(3)
	ev, err := generation.Examine(dir)
	if err != nil {
		t.Fatal(err)
	}
	if ev.Agrees(1) || ev.Len() != 4 { // the frames are there, and no key names the last two
		t.Errorf("%d whole events, of which the log agrees with all", ev.Len())
	}
	if err := w.Discard(); err != nil {
		t.Error(err)
	}
}

func TestAnEditionHoldsWhatIsWhole(t *testing.T) {
	w, dir := create(t, 1)
	commit(t, w, 1, 2, 3, 4)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	damage(t, dir, "event 3")

	ev, err := generation.Examine(dir)
	if err != nil {
		t.Fatal(err)
	}
	holes := ev.Holes(1, 5)
	whole := ev.Sequences()
	if !slices.Equal(holes, []frame.Range{{From: 3, End: 4}}) || !slices.Equal(whole, []uint64{1, 2, 4}) {
		t.Errorf("holes %v, whole %v", holes, whole)
	}
	if next := ev.NextWhole(3, 5); next != 4 {
		t.Errorf("after 3, event %d is whole", next)
	}
	e, err := ev.Read(4)
	if err != nil || e.Seq != 4 || e.Key != 7 || string(e.Data) != "event 4" {
		t.Errorf("%+v %v", e, err)
	}
	if n := ev.EventBytes(4); n != int64(len(e.Data)) {
		t.Errorf("event 4 has %d bytes, not %d", len(e.Data), n)
	}

	first, edition, ok := generation.ParseName(filepath.Base(dir))
	build := filepath.Join(filepath.Dir(dir), generation.Name(first, edition+1))
	kept, err := ev.Rebuild(build, 2, 5, quiet(t))
	if err != nil || kept != 2 || !ok {
		t.Fatalf("kept %d: %v", kept, err)
	}
	names, superseded, err := generation.In(filepath.Dir(dir))
	newer, older := []string{filepath.Base(build)}, []string{filepath.Base(dir)}
	if err != nil || !slices.Equal(names, newer) || !slices.Equal(superseded, older) {
		t.Errorf("editions %v, superseded %v: %v", names, superseded, err)
	}

	r, err := generation.Open(build, quiet(t))
	if err != nil {
		t.Fatal(err)
	}
	wantEvents(t, r, 2, 4)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// damage flips a bit of the first copy of text in the value log.
func damage(t *testing.T, dir, text string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.vlog"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	data, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	data[bytes.Index(data, []byte(text))] ^= 1
	if err := os.WriteFile(paths[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
}
