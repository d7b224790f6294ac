package postgres

import (
	"context"
	"time"
)

// templatesChannel is the notification channel on which servers announce the accounts whose
// templates they changed.
const templatesChannel = "promptspool_templates"

const (
	watchPoll  = time.Second     // between looks at the revisions, whether notifications come or not
	watchRetry = 2 * time.Second // before listening again
)

// Watch calls wake with each account whose templates another server may have changed.
//
// It does so until ctx ends, and then returns nil; see registry.Watcher. LISTEN reports a
// change immediately. In addition Watch polls the accounts that callers wait for every
// second, so a lost connection, or a PgBouncer that drops notifications, only delays it.
func (db *DB) Watch(ctx context.Context, waited func() []string, wake func(account string)) error {
	// Waited for at the end: wake must not be called once Watch has returned.
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		db.listen(ctx, wake)
	}()
	defer func() { <-listening }()

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

// listen wakes the accounts that other servers announce, until ctx ends. It uses its own
// connection: one of the pool would never be returned.
func (db *DB) listen(ctx context.Context, wake func(account string)) {
	for ctx.Err() == nil {
		if err := db.hear(ctx, wake); err != nil && ctx.Err() == nil {
			db.logger.Debug("Not notified of template changes for now; polling every second", "error", err)
		}

		timer := time.NewTimer(watchRetry)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// hear listens on one connection until it fails.
func (db *DB) hear(ctx context.Context, wake func(account string)) error {
	conn, err := db.pool.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	// From here on. Earlier announcements are found by the next look.
	if _, err := conn.Exec(ctx, "LISTEN "+templatesChannel); err != nil {
		return err
	}
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		wake(n.Payload)
	}
}
