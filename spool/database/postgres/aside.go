package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/postgres/connection"
)

// aside commits the writes of accounts whose worker of a Citus is away, beside those of the
// others: in a common transaction, they would all wait for that worker.
type aside struct {
	commits  *archive.Committer[application]
	accounts sync.Map // those whose last write did not reach its worker
}

// errAside means that a batch was not written, because its account's worker is away.
var errAside = wire.Unavailable(0, "A worker of the database is away.")

// commit has a batch committed with others, and returns the results of its events.
func (db *DB) commit(ctx context.Context, b *batch) ([]wire.Result, error) {
	if _, isAside := db.aside.accounts.Load(b.Change.account); !isAside {
		err := db.commits.Do(ctx, b)
		if !errors.Is(err, errAside) {
			return b.Change.results, err
		}
		// Another one, since the group that this one was in may answer it again.
		b = &batch{Change: b.Change, Bytes: b.Bytes, Events: b.Events}
	}

	err := db.aside.commits.Do(ctx, b)

	return b.Change.results, err
}

// patienceDefault is how long a statement of several accounts waits for the worker of one. An
// account that takes longer by itself is set aside: it may be slow there, and holds up no other.
const patienceDefault = 5 * time.Second

// applyPresent is applyGroup for accounts whose workers answer. It does not wait for a worker of
// a Citus that is away: it sets the accounts there aside, and the others go on.
func (db *DB) applyPresent(ctx context.Context, lane int, group []*batch) error {
	if !db.spread {
		return db.applyGroup(ctx, lane, group)
	}
	err := db.applyGroup(connection.Impatiently(ctx, db.patience), lane, group)
	if !connection.LostWorker(err) && !connection.Late(err) {
		return err
	}

	parts := partsByAccount(group)
	if len(parts) == 1 {
		db.aside.accounts.Store(group[0].Change.account, true)
		return errAside
	}

	// Nothing tells whose worker it is, so each account is tried by itself. If the attempt above
	// was committed after all, its events are duplicates now.
	for n, part := range parts {
		most := min(db.patience, share(ctx, len(parts)-n))
		err := db.applyGroup(connection.Impatiently(ctx, most), lane, part)
		if connection.LostWorker(err) || connection.Late(err) {
			db.aside.accounts.Store(part[0].Change.account, true)
			err = errAside
		}
		answer(ctx, lane, part, err, db.applyPresent)
	}

	return nil
}

// share divides the time that a group has left among n attempts. Without it, many accounts of a
// worker that does not answer would leave none to those behind them.
func share(ctx context.Context, n int) time.Duration {
	end, _ := ctx.Deadline() // that of commitTimeout
	return time.Until(end) / time.Duration(n)
}

// applyAside is applyGroup for accounts that were set aside. Each is tried by itself, because its
// worker may be back while another's is not. It may also just be slow, so it has all of its share.
func (db *DB) applyAside(ctx context.Context, lane int, group []*batch) error {
	parts := partsByAccount(group)
	for n, part := range parts {
		err := db.applyGroup(connection.Impatiently(ctx, share(ctx, len(parts)-n)), lane, part)
		if err == nil {
			db.aside.accounts.Delete(part[0].Change.account)
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
