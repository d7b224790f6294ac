package databasetest

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
)

// Open opens an empty store for one scene. reopen closes it and opens it again with what
// it holds.
//
// The store opened last is closed through t.Cleanup. It then checks its own consistency
// if it can.
type Open func(t *testing.T) (s archive.Store, reopen func() archive.Store)

// RunWriters is Run for the scene in which a store has many callers. There the race detector
// has something to find.
func RunWriters(t *testing.T, open Open) {
	run(t, open, []scene{
		{"many writers at once lose nothing, take nothing twice, and what belongs together is found", together},
	})
}

// Run checks that the stores that open returns do what archive.Store promises. Scenes run
// at the same time, each with a store of its own.
//
// Under the race detector they would take ten times as long, and it would find nothing,
// because each store has only one caller.
func Run(t *testing.T, open Open) {
	run(t, open, []scene{
		{"a call that several report is one request, with what each adds", hearing},

		{"beyond the bound of orphans an event comes later", orphansFull},
		{"a full record refuses more, and says why", full},
		{"lists go by the start of calls, within reason", listTimes},
		{"a filter within a span counts what lies in it, however days cut it", spans},
		{"a search for words and parts of texts shows where they are", snippets},
		{"suggestions are values of the newest records", suggesting},
		{"an export goes on behind its cursor", exporting},
		{"a session and a trace are deleted and kept out", deletingSessions},
		{"sessions, traces and users are found by their calls", findingSessions},
		{"spans are found by trace, whatever arrives meanwhile", findingSpans},
		{"records that another version read are read again, once each", rereading},
		{"a session is packed, and stays what it was whatever goes or changes", packedSession},
	})
}

// RunDrawn is Run for the scenes in which rapid, or a loop, draws many orders of events and
// questions. Each has only one caller, too.
//
// checks is how often rapid draws each. The stores have most of what is checked in common, so
// what several of them draw adds up.
func RunDrawn(t *testing.T, open Open, checks int) {
	LimitChecks(t, checks)

	run(t, open, []scene{
		{"any order, repetition and batching gives the same records, which no other account has", anyOrder},
		{"the events of a clock keep its order, however wrong it is", clocks},
		{"late calls skip and repeat nothing for somebody who pages by cursor", pagingWhileLate},
		{"words, bodies and every order find what the oracle finds, and pages meet every row once", everyOrder},
		{"words are found in what texts say now, by any filter", words},
		{"statistics are those of the oracle", statistics},
		{"a deletion by metadata deletes the same, whatever came when", deletingInAnyOrder},
		{"sessions, traces and users add up, whatever came or went when", rollups},
		{"scores find their span, call, trace and session, and go with them", scoring},
		{"what belongs together is what the rule says, whatever came when", belonging},
	})
}

// RunLarge is Run for scenes with many bytes and rows, with one caller as well. They meet the
// bounds that a store really has, so its bounds must not be made small for them.
func RunLarge(t *testing.T, open Open) {
	run(t, open, []scene{
		{"the largest batches and events are taken whole", large},
		{"a record takes any number of steps, and lists the latest", steps},
		{"a filter counts exactly up to a bound", totals},
	})
}

// scene is one promise and the function that checks it.
type scene struct {
	name string
	play func(t *testing.T, open Open)
}

func run(t *testing.T, open Open, scenes []scene) {
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.play(t, open)
		})
	}
}

// LimitChecks makes rapid check each property n times, unless the command line gives a
// number.
//
// Each check asks a database about twenty questions. Every run draws new ones, and `make
// soak` draws many.
func LimitChecks(t *testing.T, n int) {
	t.Helper()

	// rapid has no other way to set it.
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue {
		return
	}

	must(t, f.Value.Set(strconv.Itoa(n)))
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
}

// must ends the test if there is an error.
func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// apply folds events and fails the test on an error.
func apply(t rapid.TB, s archive.Store, account string, events ...archive.Event) []wire.Result {
	t.Helper()
	results, err := s.Apply(context.Background(), account, events)
	if err != nil {
		t.Fatalf("Apply: %v", err)
	}

	// Sidecars match results to events by their place.
	if len(results) != len(events) {
		t.Fatalf("Apply of %d events gave %d results", len(events), len(results))
	}
	for i, r := range results {
		if r.ID != events[i].ID {
			t.Fatalf("result %d is for %s, and the event is %s", i, r.ID, events[i].ID)
		}
	}

	return results
}

// view returns a record as the store holds it.
func view(t rapid.TB, s archive.Store, account, requestID string) wire.Record {
	t.Helper()
	state, body, err := s.Record(context.Background(), account, requestID)
	if err != nil {
		t.Fatalf("Record %s: %v", requestID, err)
	}
	return state.View(context.Background(), body)
}

// remove deletes what d names.
func remove(t rapid.TB, s archive.Store, account string, d wire.Deletion) wire.Deleted {
	t.Helper()
	deleted, err := archive.Delete(context.Background(), s, account, d)
	if err != nil {
		t.Fatalf("Delete: %v", err)
	}
	return deleted
}

// compiled compiles a search, which must be valid.
func compiled(t rapid.TB, w wire.Search) query.Query {
	t.Helper()
	q, err := query.Compile(w)
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	return q
}

// search compiles and runs a search.
func search(t rapid.TB, s archive.Store, account string, w wire.Search) query.Page {
	t.Helper()
	q := compiled(t, w)
	page, err := s.Search(context.Background(), account, q)
	if err != nil {
		t.Fatalf("Search: %v", err)
	}

	return page
}

// sameViews compares every record of the store with the oracle's.
func sameViews(t rapid.TB, s archive.Store, account string, events []archive.Event) {
	t.Helper()
	states, bodies := Fold(events)
	for id, want := range states {
		body := want.ShownBody(bodies)

		// Fold leaves long values out; a record has them whole.
		whole := Whole(want, bodies)
		shown := whole.View(context.Background(), body)
		if diff := cmp.Diff(shown, view(t, s, account, id), cmp.Comparer(sameJSON)); diff != "" {
			t.Fatalf("record %s (-want +got):\n%s", id, diff)
		}
	}
}

// sameJSON spares cmp the walk over every byte of a large body.
func sameJSON(a, b json.RawMessage) bool { return bytes.Equal(a, b) }

// sameRows compares lists of rows. Nil and empty ones are the same.
func sameRows(t rapid.TB, want, got []wire.Row) {
	t.Helper()
	if len(want) == 0 && len(got) == 0 {
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("rows (-want +got):\n%s", diff)
	}
}

// requestBody returns a request with a tag.
func requestBody(tag string) string { return longBody(tag, 0) }

// longBody returns a request with a tag and a prompt of so many bytes.
func longBody(tag string, bytes int) string {
	prompt := strings.Repeat("x", bytes)
	return `{"function_name":"openai.Completion.create","kwargs":{"prompt":"` + prompt + `"},` +
		`"request_response":{},"request_start_time":1,"request_end_time":2,"tags":["` + tag + `"]}`
}

// tagged returns a filter for the records with a tag.
func tagged(tag string) *wire.Filter {
	value, _ := json.Marshal(tag)
	return &wire.Filter{Field: "tags", Operator: "is", Value: value}
}
