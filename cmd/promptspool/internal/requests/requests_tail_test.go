package requests

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive/records"
	"promptspool/spool/database/badgerdb"
)

// following is a tail over a real archive, and what it has shown, oldest first.
type following struct {
	tail
	shown []string
	write func(name string, at time.Duration)
}

func newFollowing(t *testing.T) *following {
	t.Helper()
	db, err := badgerdb.Open(badgerdb.Config{Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	a := records.New(records.Config{Store: db, Metrics: metrics.New("server", "test"), Name: "s"})
	id := wire.Identity{Account: "a", Verified: true}

	begun := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	f := &following{tail: tail{known: make(map[string]place)}}
	f.find = func(s wire.Search) (wire.SearchPage, error) { return a.Search(t.Context(), id, s) }
	f.show = func(rows []wire.Row) error {
		for _, r := range rows {
			f.shown = append(f.shown, r.FunctionName)
		}
		return nil
	}

	var batch []wire.Event
	f.write = func(name string, at time.Duration) {
		if name != "" {
			body, _ := json.Marshal(map[string]any{"function_name": name, "tags": []string{name[:1]}})
			batch = append(batch, wire.Event{
				ID:         wire.NewID(),
				Kind:       wire.KindRequest,
				RequestID:  wire.NewID(),
				AcceptedAt: begun.Add(at),
				Sidecar:    "s",
				Body:       body,
			})
		}
		if name == "" || len(batch) == wire.BatchEventsMax {
			if _, err := a.Record(t.Context(), id, batch); err != nil {
				t.Fatal(err)
			}
			batch = nil
		}
	}
	return f
}

// flushed writes the rest of a batch, follows, and returns what is new.
func (f *following) flushed(t *testing.T) (fresh []string) {
	t.Helper()
	f.write("", 0)
	n := len(f.shown)
	if err := f.follow(context.Background()); err != nil {
		t.Fatal(err)
	}
	return append([]string{}, f.shown[n:]...)
}

func TestTailShowsEachRecordOnceAndMissesNone(t *testing.T) {
	f := newFollowing(t)
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		f.write(name, time.Duration(i)*time.Second)
	}
	f.write("", 0)
	if err := f.begin(3); err != nil {
		t.Fatal(err)
	}
	equal(t, "at first", f.shown, []string{"c", "d", "e"})
	equal(t, "without news", f.flushed(t), []string{})

	// More than four pages together, and some records at the same moment.
	var want []string
	for i := range 4_500 {
		want = append(want, "n"+time.Duration(i).String())
		f.write(want[i], 10*time.Second+time.Duration(i/2*2)*time.Millisecond)
	}
	got := f.flushed(t)
	slices.Sort(got)
	slices.Sort(want)
	equal(t, "a burst", got, want)
	if len(f.known) > tailKnown {
		t.Errorf("it knows %d records", len(f.known))
	}
	equal(t, "after the burst", f.flushed(t), []string{})

	// A delayed record is shown, one that comes much too late is not, and nothing is
	// shown twice.
	f.write("late", 14*time.Second)
	f.write("too late", 2*time.Second)
	f.write("new", 15*time.Second)
	equal(t, "late ones", f.flushed(t), []string{"late", "new"})
	equal(t, "at the end", f.flushed(t), []string{})
}

func TestTailOverAnEmptyArchive(t *testing.T) {
	f := newFollowing(t)
	if err := f.begin(10); err != nil {
		t.Fatal(err)
	}
	f.write("first", time.Second)
	equal(t, "the first", f.flushed(t), []string{"first"})
	f.write("second", 2*time.Minute)
	equal(t, "the second", f.flushed(t), []string{"second"})
	f.write("too late", time.Second)
	equal(t, "more than a minute late", f.flushed(t), []string{})
}

// The server goes away at any of a tail's queries, while several pages of a filter are
// waiting.
func TestTailWithAFilterGoesOnWhenTheServerIsBack(t *testing.T) {
	f := newFollowing(t)
	f.where = &wire.Filter{Field: "tags", Operator: "is", Value: json.RawMessage(`"n"`)}
	if err := f.begin(10); err != nil {
		t.Fatal(err)
	}

	find := f.find
	for round, away := range []int{0, 2, 4} {
		at := time.Duration(round) * 10 * time.Minute
		var want []string
		for i := range 2*wire.PageItemsMax + 1 {
			want = append(want, fmt.Sprintf("n%d-%d", round, i))
			f.write(want[i], at+time.Duration(i)*time.Millisecond)
		}
		f.write("other", at+time.Second)
		f.write("", 0)

		asked := 0
		f.find = func(s wire.Search) (wire.SearchPage, error) {
			if asked++; asked == away+1 {
				return wire.SearchPage{}, wire.Unavailable(0, "The server is away.")
			}
			return find(s)
		}

		n := len(f.shown)
		if err := f.follow(t.Context()); !wire.IsCode(err, wire.CodeUnavailable) {
			t.Fatalf("away at question %d: %v", away, err)
		}
		if err := f.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprintf("away at question %d", away), f.shown[n:], want)
	}
}

func equal(t *testing.T, name string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
