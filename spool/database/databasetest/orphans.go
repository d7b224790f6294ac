package databasetest

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// sameOrphans compares the list and the tally of the orphans with those of the states.
func sameOrphans(t rapid.TB, states map[string]*archive.State, s archive.Store, account string) {
	t.Helper()

	var want []wire.Orphan
	var tally archive.Orphans
	for _, id := range slices.Sorted(maps.Keys(states)) {
		if row, ok := states[id].OrphanRow(); ok {
			want = append(want, row)
		}
		tally.Add(states[id].Waiting()) // of log records as well, which have no row
	}

	got, gotTally := listOrphans(t, s, account, 2)
	if diff := cmp.Diff(want, got); diff != "" || gotTally != tally {
		t.Fatalf("orphans (-want +got):\n%s\ntally %+v, want %+v", diff, gotTally, tally)
	}
}

// listOrphans lists all orphans, in pages of up to limit.
func listOrphans(
	t rapid.TB, s archive.Store, account string, limit int,
) (all []wire.Orphan, tally archive.Orphans) {
	t.Helper()
	for after := ""; ; {
		states, next, err := s.States(context.Background(), account, archive.Orphaned, after, limit)
		if err != nil || len(states) > limit || next != "" && len(states) == 0 {
			t.Fatalf("States: %d records, next %q, %v", len(states), next, err)
		}
		for i := range states {
			row, ok := states[i].OrphanRow()
			if !ok {
				t.Fatalf("%s is no orphan", states[i].RequestID)
			}
			all = append(all, row)
		}
		after = next
		if after == "" {
			break
		}
	}

	has, err := s.Counts(context.Background(), account)
	if err != nil {
		t.Fatal(err)
	}

	return all, has.Orphans
}

func orphansFull(t *testing.T, open Open) {
	s, _ := open(t)

	// The body of a score is counted but not stored, so this stays quick.
	big := make([]byte, archive.RecordBytesMax/2)
	var fill []archive.Event
	for i := range archive.OrphanBytesMax / len(big) {
		e := Event(t, i, wire.KindScore, ID(1000+i), `{"score":1}`)
		e.Body = big
		fill = append(fill, e)
	}
	apply(t, s, account, fill...)

	// Only a new orphan needs space: not a request, nor what belongs to one, nor a
	// repetition.
	late := Event(t, 50, wire.KindScore, ID(2000), `{"score":1}`)
	request := Event(t, 51, wire.KindRequest, ID(3000), requestBody("x"))
	ofIt := Event(t, 52, wire.KindScore, ID(3000), `{"score":1}`)
	results := apply(t, s, account, late, request, ofIt, fill[0])
	want := []wire.ResultCode{
		wire.ResultLater, wire.ResultAccepted, wire.ResultAccepted, wire.ResultDuplicate,
	}
	for i, r := range results {
		if r.Code != want[i] || (r.Code == wire.ResultLater) != (r.Reason != "") {
			t.Errorf("event %d: %+v, want %s", i, r, want[i])
		}
	}

	others := Event(t, 60, wire.KindScore, ID(1000), `{"score":1}`)
	if r := apply(t, s, "another", others)[0]; r.Code != wire.ResultAccepted {
		t.Errorf("an account suffers from the orphans of another: %+v", r)
	}

	// A request that arrives makes space.
	joining := Event(t, 70, wire.KindRequest, ID(1000), `{"function_name":"f"}`)
	results = apply(t, s, account, joining, late)
	if results[0].Code == wire.ResultLater || results[1].Code != wire.ResultAccepted {
		t.Errorf("after a request joined: %+v", results)
	}
}
