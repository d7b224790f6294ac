package archive

import (
	"cmp"
	"context"
	"maps"
	"slices"
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
	w := deletion{store: s, account: account, tombstones: true}
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
	logs       []UUID            // State.logsLink of what the last step deleted
	traces     map[UUID]bool     // that ownTraces has looked at; nil unless a session is deleted
	before     time.Time         // of that deletion
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
	w.which = func(s *State) bool { return s.Deleted(SelectorOf(d)) }
	if err := w.offList(ctx, Orphaned); err != nil {
		return err
	}

	// After the last place, not from the start: some of what was found may have to stay.
	for after := ""; ; {
		ids, next, err := w.store.Having(ctx, w.account, d, after)
		if err == nil {
			err = w.records(ctx, ids)
		}
		if err != nil {
			return err
		}
		if after = next; after == "" {
			break
		}
	}

	// Last, as nothing finds spans by a value: all with metadata are looked at, and if that
	// takes too long, the requests are gone.
	return w.offList(ctx, TaggedSpans)
}

// ofTrace returns the deletion of a trace as that of a value, by which it is kept out.
func ofTrace(trace UUID, before time.Time) wire.Deletion {
	value := traceValue(trace)
	return wire.Deletion{Key: value.Key, Value: value.Value, Before: before}
}

// session deletes the records of a session, and the traces that only it is in: a span that arrives
// late need not name its session.
func (w *deletion) session(ctx context.Context, d wire.Deletion) error {
	w.traces, w.before = make(map[UUID]bool), d.Before
	err := w.value(ctx, wire.Deletion{Key: dialect.SessionKey, Value: d.SessionID, Before: d.Before})

	return cmp.Or(err, w.full)
}

// ownTraces deletes what else is in the traces of some records of a session, unless they have another
// session too. The records themselves are deleted after that: by them, a deletion that is repeated
// finds the traces that an interrupted one has left.
func (w *deletion) ownTraces(ctx context.Context, ids []string) error {
	var traces []UUID
	err := w.store.Change(ctx, w.account, ids, false, func(g *Group, reader Reader) error {
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
					traces = append(traces, trace)
				}
			}
		}
		return nil
	})

	var own []wire.Deletion
	for _, trace := range traces {
		if w.traces[trace] {
			continue
		}
		w.traces[trace] = true
		shared := false
		err = cmp.Or(err, w.eachOfTrace(ctx, trace, func(page []State) error {
			stays := func(s State) bool { return s.SessionID() != "" && !w.which(&s) }
			shared = shared || slices.ContainsFunc(page, stays)
			return nil
		}))
		if !shared {
			own = append(own, ofTrace(trace, w.before))
		}
	}
	if err != nil {
		return err
	}

	others := deletion{store: w.store, account: w.account, tombstones: true, spare: w.which}
	err = others.wholeTraces(ctx, own)
	w.full = cmp.Or(w.full, others.full)
	w.sum.Records += others.sum.Records
	w.sum.Events += others.sum.Events

	return err
}

// trace deletes the records of a trace.
func (w *deletion) trace(ctx context.Context, d wire.Deletion) error {
	trace, _ := ParseTrace(d.TraceID)
	return w.wholeTraces(ctx, []wire.Deletion{ofTrace(trace, d.Before)})
}

// wholeTraces deletes all records of traces, and the requests that log calls of theirs.
func (w *deletion) wholeTraces(ctx context.Context, traces []wire.Deletion) error {
	// First, so that no new record gets past the walk.
	if len(traces) == 0 {
		return nil
	}
	err := w.store.Forget(ctx, w.account, traces...)
	if wire.IsCode(err, wire.CodeTooLarge) && w.spare != nil {
		w.full = errTracesForgotten // the records must go nevertheless
	} else if err != nil {
		return err
	}

	var own []wire.ScoreTarget
	for _, d := range traces {
		own = append(own, wire.ScoreTarget{TraceID: d.Value})
		trace, _ := ParseTrace(d.Value)
		w.which = func(s *State) bool {
			of, _ := s.Trace()
			return of != trace || s.Deleted(SelectorOf(d))
		}
		err := w.eachOfTrace(ctx, trace, func(page []State) error {
			var ids []string
			var links []UUID
			for i := range page {
				if !page[i].Deleted(SelectorOf(d)) {
					continue
				}
				if w.spare == nil || !w.spare(&page[i]) {
					ids = append(ids, page[i].RequestID)
				}
				if key, ok := page[i].LinkedTo(); ok {
					links = append(links, key)
				}
			}
			linked, err := w.store.Linked(ctx, w.account, links, 1)
			for _, key := range links {
				for _, id := range linked[key] {
					ids = append(ids, id.String())
				}
			}
			if err != nil {
				return err
			}
			return w.records(ctx, ids)
		})
		if err != nil {
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
			return w.store.Change(ctx, w.account, part, true, func(g *Group, _ Reader) error {
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

// eachOfTrace calls fn with the records of a trace, some at a time.
func (w *deletion) eachOfTrace(ctx context.Context, trace UUID, fn func(page []State) error) error {
	for after, more := "", true; more; {
		page, follow, err := w.store.Trace(ctx, w.account, trace, after, ChangeStep)
		if err == nil && len(page) > 0 {
			after = page[len(page)-1].RequestID
			err = fn(page)
		}
		if more = follow; err != nil {
			return err
		}
	}

	return nil
}

// offList deletes records that no list shows.
func (w *deletion) offList(ctx context.Context, which OffList) error {
	for after := ""; ; {
		// Looked at here already: few have the value, and to delete holds up all writers.
		states, next, err := w.store.OffList(ctx, w.account, which, after, ChangeStep)
		var ids []string
		for i := range states {
			if w.which(&states[i]) {
				ids = append(ids, states[i].RequestID)
			}
		}
		if err == nil {
			err = w.records(ctx, ids)
		}
		if after = next; after == "" || err != nil {
			return err
		}
	}
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
	err := w.store.Change(ctx, w.account, ids, true, func(g *Group, reader Reader) error {
		sum, w.logs = wire.Deleted{}, nil
		unseen := 0
		for _, r := range slices.Clone(g.Records) {
			events := len(r.State.History)
			switch {
			case events == 0 && (!w.tombstones || r.Removed || w.which != nil),
				events > 0 && w.which != nil && !w.which(&r.State.State):
				continue // deleted, or changed since it was found
			case events == 0:
				// Nothing to delete, but the tombstone keeps it out later. Their number is
				// bounded: anybody may invent ids.
				unseen++
				left, err := reader.UnseenLeft()
				if err == nil && unseen > left {
					err = errUnseen()
				}
				if err != nil {
					return err
				}
			}
			if err := w.remove(g, reader, r, &sum); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}

	w.sum.Records += sum.Records
	w.sum.Events += sum.Events
	if len(w.logs) == 0 {
		return nil
	}

	// Log records and scores of their spans go with them.
	linked, err := w.store.Linked(ctx, w.account, w.logs, ChangeStep)
	if err != nil {
		return err
	}
	var others []string
	for _, ids := range linked {
		for _, id := range ids {
			others = append(others, id.String())
		}
	}

	return (&deletion{store: w.store, account: w.account, tombstones: true}).records(ctx, others)
}

// remove deletes a record. If a person asked for it, all other reports of the same call go with it,
// because they have the same content.
func (w *deletion) remove(g *Group, reader Reader, r *Record, sum *wire.Deleted) error {
	call := []*Record{r}
	if w.tombstones {
		var err error
		if call, err = g.CallOf(reader, r); err != nil {
			return err
		}
	}

	for _, r := range call {
		if events := len(r.State.History); events > 0 && !r.Removed {
			sum.Records++
			sum.Events += int64(events)
		}
		if link, ok := r.State.logsLink(); ok && w.tombstones {
			w.logs = append(w.logs, link)
		}
		g.Remove(r, w.tombstones)
	}

	return nil
}
