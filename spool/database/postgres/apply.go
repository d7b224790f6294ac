package postgres

import (
	"context"
	"slices"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/postgres/connection"
	"promptspool/spool/database/postgres/schema"
)

// application is one call of Apply on its way through a group.
type application struct {
	account string // as in the tables
	events  []archive.Event
	packed  [][]byte // their bodies, packed; nil where no body is kept
	results []wire.Result
}

type batch = archive.Waiting[application]

// Apply folds events in one transaction; see archive.Store.
//
// Only if the database refuses a statement because of some of the events are they folded
// separately. Those that are refused alone are answered with wire.ResultLater, so that they
// do not hold up the others.
func (db *DB) Apply(ctx context.Context, account string, events []archive.Event) (results []wire.Result, err error) {
	err = archive.Apart(events, func(part []archive.Event) error {
		more, err := db.apply(ctx, account, part)
		if connection.Refused(err) {
			tries := refusalsMax
			more, err = db.applyApart(ctx, account, part, &tries, err)
		}
		// Otherwise they are of an attempt that was rolled back.
		if err == nil {
			results = append(results, more...)
		}
		return err
	})
	if err != nil {
		return nil, err
	}

	return results, nil
}

// refusalsMax bounds the transactions spent on finding the events that the database refuses.
const refusalsMax = 64

// applyApart folds each half of the events separately. err is why they could not be folded
// together.
func (db *DB) applyApart(
	ctx context.Context, account string, events []archive.Event, tries *int, err error,
) ([]wire.Result, error) {
	if *tries--; *tries < 0 {
		e := connection.Unavailable("The database refuses this server's statements; "+
			"the server's log has the reason. Upgrade the server.", err)
		e.Affects = wire.AffectsAccount // others' events may pass
		return nil, e
	}

	if len(events) == 1 {
		db.logger.Error("Database refuses an event; its sidecar keeps it and will send it again",
			"event", events[0].ID, "error", err)
		return []wire.Result{{
			ID:     events[0].ID,
			Code:   wire.ResultLater,
			Reason: "the database refuses it; the server's log has the reason",
		}}, nil
	}

	// Half by half, so that a few refused events take few transactions to find.
	var all []wire.Result
	for _, half := range [][]archive.Event{events[:len(events)/2], events[len(events)/2:]} {
		results, err := db.apply(ctx, account, half)
		if connection.Refused(err) {
			results, err = db.applyApart(ctx, account, half, tries, err)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, results...)
	}

	return all, nil
}

// apply folds events in one transaction, which may be shared with other calls.
func (db *DB) apply(ctx context.Context, account string, events []archive.Event) ([]wire.Result, error) {
	key, err := schema.AccountKey(account)
	if err != nil {
		return nil, err
	}

	b := &batch{
		Change: application{
			account: key,
			events:  events,
			packed:  make([][]byte, len(events)),
		},
		Events: len(events),
	}

	// Bad ids are found and bodies are packed here, by the caller's goroutine: in the group
	// an error would fail the others, and packing would make them wait.
	for i := range events {
		if _, ok := archive.ParseUUID(events[i].RequestID); !ok {
			return nil, archive.BadID(events[i].RequestID)
		}
		b.Bytes += len(events[i].Body)
		if events[i].Hash != "" {
			b.Change.packed[i] = db.codec.Body(events[i].Body)
		}
	}

	results, err := db.commit(ctx, b)
	if err != nil {
		// The events may be folded again, in parts.
		return nil, err
	}

	return results, nil
}

// applyGroup folds the batches of a group in one transaction.
func (db *DB) applyGroup(ctx context.Context, lane int, group []*batch) error {
	// Each lane has its own slot: two of one server must not wait for each other.
	f := db.newFolding(lane)
	for _, b := range group {
		for i := range b.Change.events {
			if err := f.addEvent(b.Change.account, &b.Change.events[i]); err != nil {
				return err
			}
		}
	}

	// Partitions are created in their own transaction: it locks the parent tables, and
	// folding events under that lock would block all writers.
	if err := db.tables.Ensure(ctx, f.weeks()); err != nil {
		return err
	}

	err := f.change(ctx, false, func() error {
		for _, b := range group {
			a := &b.Change
			// They are of an earlier attempt, which was rolled back.
			a.results = a.results[:0]
			for i := range a.events {
				r, err := f.Fold(a.account, &a.events[i], a.packed[i])
				if err != nil {
					return err
				}
				a.results = append(a.results, r)
			}
		}
		return nil
	})
	for _, b := range group {
		if len(b.Change.results) > 0 {
			b.Change.results[0].Leaves = f.Left
		}
	}

	return err
}

// distinct sorts values and removes duplicates, in place.
func distinct(values []int64) []int64 {
	slices.Sort(values)
	return slices.Compact(values)
}
