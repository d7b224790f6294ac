package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/postgres/connection"
)

// Bounds of a group, which shares one transaction: they limit memory, and how long its first
// batch waits for the others. A single batch may be larger.
const (
	groupBytesMax  = 8 << 20 // of bodies
	groupEventsMax = 2000
)

// lanes is how many transactions of one server write records at the same time.
const lanes = 2

// commitTimeout bounds a group with all its attempts. After it, its callers are told that the
// database is away.
const commitTimeout = 30 * time.Second

// newCommitter returns a committer that collects batches into groups and has apply fold each
// group in one transaction. slots is added to the numbers of its lanes, so that those of two
// committers have their own slots in account_weeks.
func newCommitter(slots int, apply applyFunc) *archive.Committer[application] {
	commit := func(ctx context.Context, lane int, group []*batch) {
		ctx, cancel := context.WithTimeout(ctx, commitTimeout)
		defer cancel()

		lane += slots
		answer(ctx, lane, group, apply(ctx, lane, group), apply)
	}

	return archive.NewCommitter(lanes, groupBytesMax, groupEventsMax, commit)
}

// applyFunc folds the batches of a group in one transaction.
type applyFunc func(ctx context.Context, lane int, group []*batch) error

// answer answers each batch of a group that has no answer yet. err is that of the whole group.
func answer(ctx context.Context, lane int, group []*batch, err error, apply applyFunc) {
	// One batch that can never be written must not fail the others, so each gets its own
	// transaction. Not while the database is away: they would all fail.
	apart := err != nil && len(group) > 1 && !wire.IsCode(err, wire.CodeUnavailable)
	for _, b := range group {
		if apart {
			b.Finish(apply(ctx, lane, []*batch{b}))
		} else {
			b.Finish(err)
		}
	}
}

// isolated commits the writes of accounts whose worker of a Citus is away, each account in
// its own transactions: in common ones, all the others would wait for that worker.
type isolated struct {
	commits  *archive.Committer[application]
	accounts sync.Map // those whose last write did not reach its worker
}

// errWorkerAway means that a batch was not written, because its account's worker is away.
var errWorkerAway = wire.Unavailable(0, "A worker of the database is away.")

// commit has a batch committed with others, and returns the results of its events.
func (db *DB) commit(ctx context.Context, b *batch) ([]wire.Result, error) {
	if _, alone := db.isolated.accounts.Load(b.Change.account); !alone {
		err := db.commits.Do(ctx, b)
		if !errors.Is(err, errWorkerAway) {
			return b.Change.results, err
		}
		// Another one, since the group that this one was in may answer it again.
		b = &batch{Change: b.Change, Bytes: b.Bytes, Events: b.Events}
	}

	err := db.isolated.commits.Do(ctx, b)

	return b.Change.results, err
}

// patienceDefault is how long a statement of several accounts waits for the worker of one. An
// account that takes longer by itself is isolated: it may be slow there, and holds up no other.
const patienceDefault = 5 * time.Second

// applyTogether is applyGroup for accounts whose workers answer. It does not wait for a worker of
// a Citus that is away: it isolates the accounts there, and the others continue.
func (db *DB) applyTogether(ctx context.Context, lane int, group []*batch) error {
	if !db.spread {
		return db.applyGroup(ctx, lane, group)
	}
	err := db.applyGroup(connection.Impatiently(ctx, db.patience), lane, group)
	if !connection.LostWorker(err) && !connection.Late(err) {
		return err
	}

	parts := partsByAccount(group)
	if len(parts) == 1 {
		db.isolated.accounts.Store(group[0].Change.account, true)
		return errWorkerAway
	}

	// Nothing tells whose worker it is, so each account is tried by itself. If the attempt above
	// was committed after all, its events are duplicates now.
	for n, part := range parts {
		most := min(db.patience, share(ctx, len(parts)-n))
		err := db.applyGroup(connection.Impatiently(ctx, most), lane, part)
		if connection.LostWorker(err) || connection.Late(err) {
			db.isolated.accounts.Store(part[0].Change.account, true)
			err = errWorkerAway
		}
		answer(ctx, lane, part, err, db.applyTogether)
	}

	return nil
}

// share divides the time that a group has left among n attempts. Without it, many accounts of a
// worker that does not answer would leave none to those after them.
func share(ctx context.Context, n int) time.Duration {
	// It is that of commitTimeout.
	end, _ := ctx.Deadline()
	return time.Until(end) / time.Duration(n)
}

// applyIsolated is applyGroup for isolated accounts. Each is tried by itself, because its
// worker may be back while another's is not. It may also just be slow, so it has all of its share.
func (db *DB) applyIsolated(ctx context.Context, lane int, group []*batch) error {
	parts := partsByAccount(group)
	for n, part := range parts {
		err := db.applyGroup(connection.Impatiently(ctx, share(ctx, len(parts)-n)), lane, part)
		if err == nil {
			db.isolated.accounts.Delete(part[0].Change.account)
		}
		answer(ctx, lane, part, err, db.applyGroup)
	}

	return nil
}

// partsByAccount divides a group by account.
func partsByAccount(group []*batch) (parts [][]*batch) {
	places := make(map[string]int)
	for _, b := range group {
		place, known := places[b.Change.account]
		if !known {
			place = len(parts)
			places[b.Change.account], parts = place, append(parts, nil)
		}
		parts[place] = append(parts[place], b)
	}

	return parts
}

// application is one call of Apply on its way through a group.
type application struct {
	account string
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
	b := &batch{
		Change: application{
			account: account,
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
