package postgres

import (
	"context"
	"time"
)

// watchPoll is between two looks at the revisions: a change must be seen within a second.
const watchPoll = 500 * time.Millisecond

// Watch calls wake with each account whose templates another server may have changed.
//
// It does so until ctx ends, and then returns nil; see registry.Watcher. It looks only at the
// accounts that callers wait for, in one round trip.
func (db *DB) Watch(ctx context.Context, waited func() []string, wake func(account string)) error {
	tick := time.NewTicker(watchPoll)
	defer tick.Stop()
	seen := map[string]uint64{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		seen = db.look(ctx, waited(), seen, wake)
	}
}

// look wakes the accounts whose revision differs from the one seen before, and returns the
// revisions. If they cannot be read, the next look finds the change.
func (db *DB) look(
	ctx context.Context, accounts []string, seen map[string]uint64, wake func(account string),
) map[string]uint64 {
	if len(accounts) == 0 {
		return seen
	}
	revisions, err := db.Revisions(ctx, accounts)
	if err != nil {
		return seen
	}
	// Accounts without a waiting caller are not carried along.
	now := make(map[string]uint64, len(accounts))
	for i, account := range accounts {
		// The first look at an account always wakes: a caller that finds nothing new
		// waits again.
		if now[account] = revisions[i]; seen[account] != revisions[i] {
			wake(account)
		}
	}

	return now
}
