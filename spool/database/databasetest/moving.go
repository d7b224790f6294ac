package databasetest

import (
	"context"
	"encoding/json"
	stderrors "errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/keyed"
	"promptspool/spool/database/transfer"
)

// Server is all that a server's database keeps.
type Server interface {
	transfer.Mover

	Size(ctx context.Context) (archive.Size, error)
}

// RunMove checks that transfer.Copy copies everything to another database, which then
// works as if it had always had it. from and to open them, and close them through
// t.Cleanup.
func RunMove(t *testing.T, from, to func(t *testing.T) Server) {
	for name, scene := range map[string]func(t *testing.T, from, to func(t *testing.T) Server){
		"a copy holds everything, and goes on with it": copied,
		"a copy that broke off anywhere is made again": resumed,
		"what is not empty is left alone":              notEmpty,
		"a server that nobody used is no obstacle":     startedOnce,
		"a source that changed is found out":           changedMeanwhile,
	} {
		t.Run(name, func(t *testing.T) { scene(t, from, to) })
	}
}

// filled puts some of everything into a database. It returns the events of the account's records.
func filled(t *testing.T, s Server) (events []archive.Event) {
	t.Helper()
	for i := range movedEntries {
		// A copy must not decode and encode a value, which would lose the number's form. Names need
		// not be text.
		must(t, s.Small().Write(t.Context(), keyed.Entry{
			Key: keyed.Key{
				Kind:    []keyed.Kind{"invites", "keys", "template versions"}[i%3],
				Account: []string{"", account}[i%2],
				Name:    string([]byte{0xff, byte(i)}),
			},
			Value: fmt.Appendf(nil, `{"n":%d.50,"t":"<é\u2028\u0000>"}`, i),
		}))
	}

	// The seeds are fixed, so that the history is always the same.
	history := rapid.Custom(func(t *rapid.T) []archive.Event {
		return Events(t, movedRequests, 2*movedEvents)
	})
	for seed := 0; len(events) < movedEvents; seed++ {
		events = history.Example(seed)
	}
	apply(t, s, account, events...)
	apply(t, s, "people", events[:len(events)/2]...)

	// Tombstones of both kinds.
	remove(t, s, account, wire.Deletion{RequestID: events[0].RequestID})
	user := wire.Deletion{Key: "user_id", Value: "Ada", Before: Start.Add(time.Hour)}
	remove(t, s, account, user)
	// Some bodies can be read only with others from now on.
	packBodies(t, s)

	return events
}

// More than a part of a copy has, so that it takes several steps.
const (
	movedRequests = 2 * transfer.RecordsMax
	movedEvents   = 3 * transfer.RecordsMax
	movedEntries  = 240 // of each kind as many
)

func noProgress(transfer.Progress) {}

func copied(t *testing.T, from, to func(t *testing.T) Server) {
	source, target := from(t), to(t)
	events := filled(t, source)
	ctx := t.Context()

	stages := map[string]bool{}
	sums, err := transfer.Copy(ctx, source, target, func(p transfer.Progress) { stages[p.Stage] = true })
	must(t, err)
	if sums["records"].Items == 0 || sums["tombstones"].Items < 2 || !stages["copying"] ||
		sums["keys"].Items != movedEntries/3 || sums["template versions"].Items != movedEntries/3 {
		t.Errorf("it says that it copied %+v, in the stages %v", sums, stages)
	}
	for _, s := range []Server{source, target} {
		if unfinished, err := transfer.Unfinished(ctx, s); unfinished || err != nil {
			t.Errorf("after the copy it is said to be unfinished (%v)", err)
		}
	}

	before, err := source.Size(ctx)
	must(t, err)
	after, err := target.Size(ctx)
	must(t, err)
	if before.Records != after.Records || before.Bytes != after.Bytes {
		t.Errorf("the source holds %+v, the copy %+v", before, after)
	}

	if diff := cmp.Diff(small(t, source), small(t, target)); diff != "" {
		t.Errorf("what is no record (-source +copy):\n%s", diff)
	}
	sameRecords(t, source, target)

	// The copy must know the events and the deletions, so that nothing comes twice or
	// back.
	for _, e := range events {
		for _, r := range apply(t, target, account, e) {
			if r.Code != wire.ResultDuplicate && !deletedOf(t, source, e) {
				t.Fatalf("an event that was copied is %q when it comes again: %+v", r.Code, e.Event)
			}
		}
	}
	sameLists(t, source, target)
}

// sameRecords compares records, orphans and what was deleted.
func sameRecords(t *testing.T, source, target Server) {
	t.Helper()
	for i := range movedRequests {
		id := ID(1000 + i)
		want, bodies, err := source.Bodies(t.Context(), account, id)
		got, copied, err2 := target.Bodies(t.Context(), account, id)
		if wire.IsCode(err, wire.CodeNotFound) && wire.IsCode(err2, wire.CodeNotFound) {
			continue
		}
		must(t, stderrors.Join(err, err2))

		diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(archive.State{}))
		if diff != "" || !cmp.Equal(bodies, copied) {
			t.Fatalf("record %s (-source +copy):\n%s", id, diff)
		}
	}
}

// sameLists compares what searches find, the spans and traces, and the orphans.
func sameLists(t *testing.T, source, target Server) {
	t.Helper()
	for _, w := range []wire.Search{{}, {FilterGroup: tagged("production")}} {
		if diff := cmp.Diff(search(t, source, account, w), search(t, target, account, w)); diff != "" {
			t.Errorf("search (-source +copy):\n%s", diff)
		}
	}

	if diff := cmp.Diff(allSpans(t, source, account), allSpans(t, target, account)); diff != "" {
		t.Errorf("spans (-source +copy):\n%s", diff)
	}
	for _, trace := range traces {
		want := ofTrace(t, source, account, trace)
		if diff := cmp.Diff(want, ofTrace(t, target, account, trace)); diff != "" || len(want) == 0 {
			t.Errorf("trace %s of %d spans (-source +copy):\n%s", trace, len(want), diff)
		}
	}

	want, tally := listOrphans(t, source, account, 100)
	got, copiedTally := listOrphans(t, target, account, 100)
	if diff := cmp.Diff(want, got); diff != "" || tally != copiedTally {
		t.Errorf("orphans: %+v and %+v (-source +copy):\n%s", tally, copiedTally, diff)
	}
}

// deletedOf reports whether the source has deleted the record of an event. Late events of
// such a record are dropped, or wait for its request.
func deletedOf(t *testing.T, source Server, e archive.Event) bool {
	_, _, err := source.Bodies(t.Context(), account, e.RequestID)
	return wire.IsCode(err, wire.CodeNotFound)
}

// small returns everything that a database holds besides records.
func small(t *testing.T, s Server) (all []keyed.Entry) {
	t.Helper()
	for after := (keyed.Key{}); ; after = all[len(all)-1].Key {
		page, err := s.Small().Walk(t.Context(), after, 100)
		must(t, err)
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
	}
}

// breaking is a Mover whose writes fail once left is used up, after storing what they bring or
// before.
type breaking struct {
	Server
	left int
	kept bool
}

var errBroken = stderrors.New("the plug was pulled")

func (b *breaking) store(write func() error) error {
	if b.left--; b.left >= 0 {
		return write()
	}
	if b.kept {
		return stderrors.Join(write(), errBroken)
	}
	return errBroken
}

func (b *breaking) Bury(ctx context.Context, account string, tombstones []transfer.Tombstone) error {
	return b.store(func() error { return b.Server.Bury(ctx, account, tombstones) })
}

func (b *breaking) Change(
	ctx context.Context, account string, ids []string, alone bool, decide func(*archive.Group, archive.Loader) error,
) error {
	return b.store(func() error { return b.Server.Change(ctx, account, ids, alone, decide) })
}

func (b *breaking) Small() keyed.Store { return breakingSmall{b.Server.Small(), b} }

type breakingSmall struct {
	keyed.Store
	of *breaking
}

func (b breakingSmall) Write(ctx context.Context, entries ...keyed.Entry) error {
	// Not the last step, which deletes the mark: behind it the copy is finished.
	if entries[0].Value == nil {
		return b.Store.Write(ctx, entries...)
	}
	return b.of.store(func() error { return b.Store.Write(ctx, entries...) })
}

// resumed breaks off at every batch, and begins again.
func resumed(t *testing.T, from, to func(t *testing.T) Server) {
	source, target := from(t), to(t)
	filled(t, source)

	for try := 0; ; try++ {
		if try > 100 {
			t.Fatal("it does not come to an end")
		}

		// Every second time what is brought was stored, and only the answer was lost.
		b := &breaking{Server: target, left: try * try, kept: try%2 == 0}
		sums, err := transfer.Copy(t.Context(), source, b, noProgress)
		if err == nil {
			if try < 2 || sums["records"].Items == 0 {
				t.Errorf("after %d tries it has copied %+v", try, sums)
			}
			return
		}

		if !stderrors.Is(err, errBroken) {
			t.Fatal(err)
		}
		if unfinished, err := transfer.Unfinished(t.Context(), target); err != nil || !unfinished && try > 0 {
			t.Fatalf("a copy that broke off is not said to be unfinished (%v)", err)
		}
	}
}

func notEmpty(t *testing.T, from, to func(t *testing.T) Server) {
	source, target := from(t), to(t)
	filled(t, source)
	mine := keyed.Entry{Key: keyed.Key{Kind: "keys", Name: "mine"}, Value: json.RawMessage(`1`)}
	must(t, target.Small().Write(t.Context(), mine))

	_, err := transfer.Copy(t.Context(), source, target, noProgress)
	if !wire.IsCode(err, wire.CodeConflict) {
		t.Errorf("a copy over something else: %v", err)
	}
	if diff := cmp.Diff([]keyed.Entry{mine}, small(t, target)); diff != "" {
		t.Errorf("something was copied all the same (-want +got):\n%s", diff)
	}
}

// startedOnce copies to a database in which a server has run, and left a setup code.
func startedOnce(t *testing.T, from, to func(t *testing.T) Server) {
	source, target := from(t), to(t)
	filled(t, source)
	for n, s := range []Server{source, target} {
		must(t, s.Small().Write(t.Context(), keyed.Entry{
			Key:   keyed.Key{Kind: "invites", Name: fmt.Sprint("setup ", n)},
			Value: json.RawMessage(`{"setup":true}`),
		}))
	}

	sums, err := transfer.Copy(t.Context(), source, target, noProgress)
	if err != nil || sums["invites"].Items != movedEntries/3 { // those that filled makes
		t.Errorf("a copy to a database with a setup code: %+v, %v", sums, err)
	}
}

// changedMeanwhile deletes a record of the target while it is copied to.
func changedMeanwhile(t *testing.T, from, to func(t *testing.T) Server) {
	source, target := from(t), to(t)
	events := filled(t, source)
	present := slices.IndexFunc(events, func(e archive.Event) bool {
		_, _, err := source.Record(t.Context(), account, e.RequestID)
		return err == nil
	})

	deletion := wire.Deletion{RequestID: events[present].RequestID}
	mover := &breaking{Server: target, left: 1 << 30}
	_, err := transfer.Copy(t.Context(), source, mover, func(p transfer.Progress) {
		if p.Stage == "copying" && p.Done["records"].Items > 0 {
			remove(t, target, account, deletion)
		}
	})
	if !wire.IsCode(err, wire.CodeInternal) {
		t.Errorf("a target in which a record was deleted meanwhile: %v", err)
	}
	if unfinished, err := transfer.Unfinished(t.Context(), target); !unfinished || err != nil {
		t.Errorf("it is said to be finished (%v)", err)
	}
}
