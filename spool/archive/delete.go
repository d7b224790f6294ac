package archive

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"promptspool/api/calls/otel/dialect"
	"promptspool/api/wire"
)

// ChangeStep is how many records one transaction deletes or rewrites at most: writers wait
// for it.
const ChangeStep = 200

// Delete deletes what d names, and rejects it from then on, durably when it returns. Many
// records take a while; those deleted before an error stay deleted. Deleting twice is
// harmless.
func Delete(ctx context.Context, s Store, account string, d wire.Deletion) (sum wire.Deleted, err error) {
	if d.Before.IsZero() {
		d.Before = time.Now().UTC()
	}
	w := deletion{store: s, account: account, tombstones: true, before: d.Before}
	// Calls that lack something of their trace would not be found by it.
	if err := DoLeft(ctx, s, account); err != nil {
		return sum, err
	}
	switch {
	case d.RequestID != "":
		err = w.records(ctx, []string{d.RequestID})
	case d.TraceID != "":
		err = w.trace(ctx, d)
	case d.SessionID != "":
		err = w.session(ctx, d)
	default:
		err = w.value(ctx, d)
	}
	w.sum.GoneBy = s.GoneBy()

	return w.sum, err
}

// deletion deletes records of an account.
type deletion struct {
	store      Store
	account    string
	which      func(*State) bool // nil: all
	spare      func(*State) bool // of a trace, what another deletion deletes; or nil
	tombstones bool              // with them they never come back
	key        string            // of the metadata whose value is deleted
	traces     map[string]bool   // that ownTraces has looked at; nil unless a session is deleted
	before     time.Time         // up to when what is deleted had been accepted
	full       error             // why some of them are not kept out
	sum        wire.Deleted      // what was deleted
}

// value deletes the records that have a metadata value.
func (w *deletion) value(ctx context.Context, d wire.Deletion) error {
	// First, so that no new record gets past the walk.
	if err := w.store.Forget(ctx, w.account, d); err != nil {
		return err
	}
	if d.Key == dialect.SessionKey {
		if err := w.ownScores(ctx, []wire.ScoreTarget{{SessionID: d.Value}}, d.Before); err != nil {
			return err
		}
	}
	w.key, w.which = d.Key, func(s *State) bool { return s.Deleted(SelectorOf(d)) }
	if err := w.ofPart(ctx, Orphaned); err != nil {
		return err
	}

	if err := w.having(ctx, d); err != nil {
		return err
	}

	// Last, as nothing finds spans by a value: all with metadata are looked at, and if that
	// takes too long, the requests are gone.
	if err := w.ofPart(ctx, TaggedSpans); err != nil {
		return err
	}

	// Spans have become requests meanwhile, because the calls below them are gone.
	return w.having(ctx, d)
}

// having deletes the requests that have a metadata value.
func (w *deletion) having(ctx context.Context, d wire.Deletion) error {
	// After the last place, not from the start: some of what was found may have to stay.
	for after := ""; ; {
		ids, next, err := w.store.Having(ctx, w.account, d, after)
		if err == nil {
			err = w.records(ctx, ids)
		}
		after = next
		if err != nil || after == "" {
			return err
		}
	}
}

// ofTrace returns the deletion of a trace as that of a value, by which it is kept out: all of it or, with
// an API key that may only log, what came with that.
func ofTrace(trace UUID, apiKey string, before time.Time) wire.Deletion {
	value := traceValue(trace, apiKey)
	return wire.Deletion{Key: value.Key, Value: value.Value, Before: before}
}

// session deletes the records of a session, and the traces that only it is in: a span that arrives
// late need not name its session.
func (w *deletion) session(ctx context.Context, d wire.Deletion) error {
	w.traces = make(map[string]bool)
	err := w.value(ctx, wire.Deletion{Key: dialect.SessionKey, Value: d.SessionID, Before: d.Before})

	return cmp.Or(err, w.full)
}

// ownTraces deletes what else is in the traces of some records of a session, unless they have another
// session too. The records themselves are deleted after that: by them, a deletion that is repeated
// finds the traces that an interrupted one has left.
func (w *deletion) ownTraces(ctx context.Context, ids []string) error {
	type own struct {
		trace  UUID
		apiKey string
	}
	var traces []own
	err := w.store.Change(ctx, w.account, ids, false, func(g *Group, reader Loader) error {
		traces = nil
		for _, r := range slices.Clone(g.Records) {
			if len(r.State.History) == 0 || !w.which(&r.State.State) {
				continue
			}
			call, err := g.CallOf(reader, r)
			if err != nil {
				return err
			}
			for _, r := range call {
				if trace, ok := r.State.Trace(); ok {
					traces = append(traces, own{trace, r.State.apiKey()})
				}
			}
		}
		return nil
	})

	var whole []wire.Deletion
	for _, t := range traces {
		d := ofTrace(t.trace, t.apiKey, w.before)
		if w.traces[d.Value] {
			continue
		}
		w.traces[d.Value] = true
		shared, others := false, 0
		err = cmp.Or(err, eachPage(ctx, w.store, w.account, Part{Trace: t.trace}, func(page []State) error {
			for i := range page {
				// A key that may only log does not decide about others' spans.
				s := &page[i]
				if s.apiKey() == t.apiKey && !w.which(s) {
					shared = shared || s.SessionID() != ""
					others++
				}
			}
			return nil
		}))
		if shared {
			w.sum.SpansStayed += others
		} else {
			whole = append(whole, d)
		}
	}
	if err != nil {
		return err
	}

	others := deletion{store: w.store, account: w.account, tombstones: true, before: w.before, spare: w.which}
	err = others.wholeTraces(ctx, whole)
	w.full = cmp.Or(w.full, others.full)
	w.sum.Records += others.sum.Records
	w.sum.Events += others.sum.Events

	return err
}

// trace deletes the records of a trace.
func (w *deletion) trace(ctx context.Context, d wire.Deletion) error {
	trace, _ := ParseTrace(d.TraceID)
	return w.wholeTraces(ctx, []wire.Deletion{ofTrace(trace, "", d.Before)})
}

// wholeTraces deletes all records of traces.
func (w *deletion) wholeTraces(ctx context.Context, traces []wire.Deletion) error {
	// First, so that no new record gets past the walk.
	if len(traces) == 0 {
		return nil
	}
	err := w.store.Forget(ctx, w.account, traces...)
	if wire.IsCode(err, wire.CodeTooLarge) && w.spare != nil {
		// The records must go nevertheless.
		w.full = errTracesForgotten
	} else if err != nil {
		return err
	}

	var own []wire.ScoreTarget
	for _, d := range traces {
		traceID, apiKey, _ := strings.Cut(d.Value, " ")
		if apiKey == "" {
			own = append(own, wire.ScoreTarget{TraceID: traceID})
		}
		trace, _ := ParseTrace(traceID)
		w.which = func(s *State) bool {
			of, _ := s.Trace()
			return of != trace || s.Deleted(SelectorOf(d))
		}
		if err := w.ofPart(ctx, Part{Trace: trace}); err != nil {
			return err
		}
	}

	return w.ownScores(ctx, own, traces[0].Before)
}

// ownScores deletes the scores that sessions and traces themselves had until a moment. There is no
// tombstone: the targets may live on.
func (w *deletion) ownScores(ctx context.Context, targets []wire.ScoreTarget, before time.Time) error {
	var ids []string
	for i := range targets {
		ids = append(ids, targets[i].RecordID())
	}
	isOld := func(_ wire.ScoreSlot, score Stamped[Judgement]) bool { return !score.At.After(before) }

	for step := range slices.Chunk(ids, ChangeStep) {
		err := Apart(step, func(part []string) error {
			return w.store.Change(ctx, w.account, part, true, func(g *Group, _ Loader) error {
				for _, r := range g.Records {
					had := len(r.State.Scores)
					maps.DeleteFunc(r.State.Scores, isOld)
					switch left := len(r.State.Scores); {
					case left == had:
					case left == 0:
						g.Remove(r, false)
					default:
						r.Changed, r.edited, r.Erase = true, true, true
					}
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// errTracesForgotten is for a session whose deletion is complete but for what is still to come.
var errTracesForgotten = wire.Errorf(wire.CodeTooLarge, "The session was deleted. This project has deleted so many "+
	"metadata values and traces that no more can be remembered: spans of the session's traces that arrive later "+
	"without its id will be stored. Delete them by trace or request_id.")

// ofPart deletes records of a part, except those that are spared.
func (w *deletion) ofPart(ctx context.Context, of Part) error {
	return eachPage(ctx, w.store, w.account, of, func(page []State) error {
		// Looked at here already: few have the value, and to delete holds up all writers.
		var ids []string
		for i := range page {
			if s := &page[i]; w.which(s) && (w.spare == nil || !w.spare(s)) {
				ids = append(ids, page[i].RequestID)
			}
		}
		return w.records(ctx, ids)
	})
}

// records deletes records by their ids, some in each transaction.
func (w *deletion) records(ctx context.Context, ids []string) error {
	for step := range slices.Chunk(ids, ChangeStep) {
		err := Apart(step, func(part []string) error {
			if w.traces != nil {
				if err := w.ownTraces(ctx, part); err != nil {
					return err
				}
			}
			return w.together(ctx, part)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// together deletes records in one transaction.
func (w *deletion) together(ctx context.Context, ids []string) error {
	var sum wire.Deleted
	err := w.store.Change(ctx, w.account, ids, true, func(g *Group, reader Loader) error {
		sum = wire.Deleted{}
		g.Deleted = w.before
		var going []*Record
		for _, r := range slices.Clone(g.Records) {
			events := len(r.State.History)
			// Deleted, or changed since it was found. Of what is not there yet, the tombstone keeps it out later.
			if events == 0 && (!w.tombstones || r.Removed || w.which != nil) ||
				events > 0 && w.which != nil && !w.which(&r.State.State) {
				continue
			}
			call, err := w.call(g, reader, r)
			if err != nil {
				return err
			}
			going = append(going, call...)
		}

		// Only now: without one that goes, the rule may make another call of those that stay.
		for _, r := range going {
			if events := len(r.State.History); events > 0 && !r.Removed {
				sum.Records++
				sum.Events += int64(events)
			}
			g.Remove(r, w.tombstones)
		}
		return nil
	})
	if err != nil {
		return err
	}

	w.sum.Records += sum.Records
	w.sum.Events += sum.Events

	return nil
}

// call returns what goes with a record: all reports of the same call, because they have the same content,
// but for those that state another value themselves.
func (w *deletion) call(g *Group, reader Loader, r *Record) ([]*Record, error) {
	call, err := g.CallOf(reader, r)

	return slices.DeleteFunc(slices.Clone(call), func(other *Record) bool {
		_, own := other.State.ownMetadata()[w.key]
		return own && other != r && !w.which(&other.State.State)
	}), err
}

// Retention bounds what a Store keeps of each account. Zero values keep everything.
type Retention struct {
	Age   time.Duration // records whose order time is older are deleted, and so are orphans
	Bytes int64         // of bodies as they were sent; beyond it the oldest records are deleted
}

// Size is how much a Store holds.
type Size struct {
	Records   uint64 // of all accounts
	Bytes     uint64 // of their events' bodies, as they were sent
	DiskBytes int64  // blocks that the files occupy
	Orphans   Orphans
}

// oldestMax is how many of an account's oldest records are looked up together, which may take a
// look at all rows: far less than deleting as many.
const oldestMax = 10_000

// Retain deletes what is beyond the retention, without tombstones, the oldest first. It
// returns how many records it deleted. By age, a Store may keep a record up to a week longer.
func Retain(ctx context.Context, s Store, r Retention, now time.Time) (dropped int64, err error) {
	accounts, err := s.Accounts(ctx)
	if err != nil || r == (Retention{}) {
		return 0, err
	}
	each := func(fn func(*deletion) error) {
		for _, account := range accounts {
			if err == nil {
				w := deletion{store: s, account: account}
				err = fn(&w)
				dropped += w.sum.Records
			}
		}
	}

	// By age first: what is gone then no longer counts against the bytes.
	if r.Age > 0 {
		cutoff := now.Add(-r.Age)
		each(func(w *deletion) error { return w.waited(ctx, cutoff) })
		if err != nil {
			return dropped, err
		}
		var n int64
		n, cutoff, err = s.DropBefore(ctx, cutoff)
		dropped += n
		each(func(w *deletion) error { return w.older(ctx, cutoff) })
	}
	if r.Bytes > 0 {
		each(func(w *deletion) error { return w.beyond(ctx, r.Bytes) })
	}

	return dropped, err
}

// waited deletes the account's orphans whose last event is from before a moment.
func (w *deletion) waited(ctx context.Context, cutoff time.Time) error {
	has, err := w.store.Counts(ctx, w.account)
	if err != nil || has.Orphans.Requests == 0 {
		return err
	}
	w.which = func(s *State) bool { return s.History[len(s.History)-1].At.Before(cutoff) }

	return w.ofPart(ctx, Orphaned)
}

// older deletes the account's records and spans from before a moment.
func (w *deletion) older(ctx context.Context, cutoff time.Time) error {
	for {
		ids, err := w.store.Oldest(ctx, w.account, cutoff, oldestMax)
		if err == nil {
			err = w.records(ctx, ids)
		}
		if err != nil || len(ids) < oldestMax {
			return err
		}
	}
}

// beyond deletes the account's oldest records until it holds at most so many bytes.
func (w *deletion) beyond(ctx context.Context, most int64) error {
	var oldest []string
	for {
		// Asked again each time: others write and delete meanwhile.
		has, err := w.store.Counts(ctx, w.account)
		records := has.Records + has.Spans
		if err != nil || has.Bytes <= most || records == 0 {
			return err
		}

		// As many records as the excess has at the account's mean size: a step deletes at most
		// a few too many or too few.
		excess := int(min(max((has.Bytes-most)*records/has.Bytes, 1), oldestMax))
		if len(oldest) == 0 {
			oldest, err = w.store.Oldest(ctx, w.account, time.Time{}, excess)
		}
		if err != nil || len(oldest) == 0 {
			return err
		}

		step := oldest[:min(excess, ChangeStep, len(oldest))]
		oldest = oldest[len(step):]
		if err := w.records(ctx, step); err != nil {
			return err
		}
	}
}
