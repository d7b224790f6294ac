package archive

import (
	"context"
	"slices"

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
	if d.RequestID != "" {
		err = w.records(ctx, []string{d.RequestID})
	} else {
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
	tombstones bool              // with them they never come back
	sum        wire.Deleted      // what was deleted
}

// value deletes the records that have a metadata value.
func (w *deletion) value(ctx context.Context, d wire.Deletion) error {
	// First, so that no new record gets past the walk.
	if err := w.store.Forget(ctx, w.account, d); err != nil {
		return err
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
		if err := Apart(step, func(part []string) error { return w.together(ctx, part) }); err != nil {
			return err
		}
	}
	return nil
}

// together deletes records in one transaction.
func (w *deletion) together(ctx context.Context, ids []string) error {
	var sum wire.Deleted
	err := w.store.Change(ctx, w.account, ids, true, func(g *Group, reader Reader) error {
		sum = wire.Deleted{}
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

	return nil
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
		g.Remove(r, w.tombstones)
	}

	return nil
}
