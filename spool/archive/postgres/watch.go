package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// templatesChannel is where a server that changed templates tells the others their account.
const templatesChannel = "promptspool_templates"

const (
	watchPoll  = time.Second     // between looks at the revisions, whether notifications come or not
	watchRetry = 2 * time.Second // before it is tried again to listen
)

// Watch calls wake with each account whose templates another server may have changed, until ctx ends; see registry.Watcher. It hears of
// a change by LISTEN, at once. Each second it looks by itself at the accounts that somebody waits for: so a connection that was lost, or a
// PgBouncer that keeps notifications to itself, only makes it slower. It returns nil.
func (db *DB) Watch(ctx context.Context, waited func() []string, wake func(account string)) error {
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

// look wakes the accounts whose revision is another than was seen, and returns what it sees. What cannot be read is looked at the next time.
func (db *DB) look(ctx context.Context, accounts []string, seen map[string]uint64, wake func(account string)) map[string]uint64 {
	if len(accounts) == 0 {
		return seen
	}
	type row struct {
		account  string
		revision uint64
	}
	rows, err := queryRows(ctx, db, func(r *row) []any { return []any{&r.account, &r.revision} },
		`SELECT account_id, revision FROM registries WHERE account_id = ANY($1::text[])`, accounts)
	if err != nil {
		return seen
	}
	now := make(map[string]uint64, len(rows))
	for _, r := range rows {
		if now[r.account] = r.revision; seen[r.account] != r.revision {
			wake(r.account)
		}
	}
	return now
}

// listen wakes the accounts that other servers tell of, until ctx ends. Its connection is its own, none of the pool's: a PgBouncer that
// gives connections out by transaction does not mind.
func (db *DB) listen(ctx context.Context, wake func(account string)) {
	for ctx.Err() == nil {
		if err := db.hear(ctx, wake); err != nil && ctx.Err() == nil {
			db.logger.Debug("changes of templates are not told at once for now; they are looked for each second", "error", err)
		}
		timer := time.NewTimer(watchRetry)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// hear listens on one connection until that ends.
func (db *DB) hear(ctx context.Context, wake func(account string)) error {
	conn, err := pgx.ConnectConfig(ctx, db.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
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
