package postgres

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive"
	"promptspool/spool/database/postgres/schema"
)

// Size returns what all accounts hold, and the size of the database on disk.
//
// The latter is that of all nodes, and includes the tables of others.
func (db *DB) Size(ctx context.Context) (s archive.Size, err error) {
	var records, bytes int64
	o := &s.Orphans
	err = db.pool.QueryRow(ctx, []any{&records, &bytes, &o.Requests, &o.Events, &o.Bytes, &s.DiskBytes},
		`SELECT coalesce(sum(records), 0)::bigint, coalesce(sum(bytes), 0)::bigint,
			coalesce(sum(orphans), 0)::bigint, coalesce(sum(orphan_events), 0)::bigint,
			coalesce(sum(orphan_bytes), 0)::bigint, pg_database_size(current_database())
		FROM account_weeks`)
	// Counted row by row: no total is kept of them.
	if err == nil {
		err = db.pool.QueryRow(ctx, []any{&s.Tombstones},
			`SELECT (SELECT count(*) FROM tombstones) + (SELECT count(*) FROM deleted_values)`)
	}
	if err == nil && db.spread {
		var workers int64
		workers, err = db.diskOfWorkers(ctx)
		s.DiskBytes += workers
	}
	s.Records, s.Bytes = uint64(records), uint64(bytes)
	return s, err
}

// Counts returns what an account has; see archive.Store.
func (db *DB) Counts(ctx context.Context, account string) (c archive.Counts, err error) {
	key, err := schema.AccountKey(account)
	if err != nil {
		return c, err
	}

	o := &c.Orphans
	err = db.pool.QueryRow(ctx, []any{&c.Records, &c.Spans, &c.Bytes, &o.Requests, &o.Events, &o.Bytes, &o.Logs}, `
		SELECT coalesce(sum(records), 0)::bigint, coalesce(sum(spans), 0)::bigint, coalesce(sum(bytes), 0)::bigint,
			coalesce(sum(orphans), 0)::bigint, coalesce(sum(orphan_events), 0)::bigint,
			coalesce(sum(orphan_bytes), 0)::bigint, coalesce(sum(logs), 0)::bigint
		FROM account_weeks WHERE account_id = $1`, key)

	return c, err
}

// worker is a node that holds shards, and what it answered.
type worker struct {
	name   string // host and port
	ok     bool
	result string // or why there is none
}

// askWorkers runs a query of one row and one column in this database on each worker.
func askWorkers(ctx context.Context, q reader, sql string) ([]worker, error) {
	rows, _ := q.Query(ctx, `
		SELECT nodename || ':' || nodeport, success, coalesce(result, '')
		FROM run_command_on_workers($1) ORDER BY 1`, sql)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (w worker, err error) {
		err = row.Scan(&w.name, &w.ok, &w.result)
		return w, err
	})
}

// diskOfWorkers returns the size of the database on those workers that answer.
func (db *DB) diskOfWorkers(ctx context.Context) (sum int64, err error) {
	err = db.pool.WithConn(ctx, func(conn *pgx.Conn) error {
		workers, err := askWorkers(ctx, conn, `SELECT pg_database_size(current_database())`)
		sum = 0
		for _, w := range workers {
			if size, e := strconv.ParseInt(w.result, 10, 64); w.ok && e == nil {
				sum += size
			}
		}
		return err
	})

	return sum, err
}

// NodesAway returns the workers that do not answer, as HOST:PORT. Accounts whose records they
// hold cannot be read or written meanwhile. It is empty unless the tables are spread.
func (db *DB) NodesAway(ctx context.Context) (away []string, err error) {
	if !db.spread {
		return nil, nil
	}

	err = db.pool.WithConn(ctx, func(conn *pgx.Conn) error {
		workers, err := askWorkers(ctx, conn, `SELECT 1`)
		away = nil
		for _, w := range workers {
			if !w.ok {
				away = append(away, w.name)
			}
		}
		return err
	})

	return away, err
}

// How often decided asks the workers, and how long it pauses in between: in all longer than a
// commit takes that nothing hinders.
const (
	decidedTries = 20
	decidedPause = 50 * time.Millisecond
)

// decided waits until the transactions that are prepared on the workers have ended there. It
// returns false if one does not end, or if a worker does not answer.
//
// When a worker dies during a commit, the write is acknowledged and shows only once Citus has
// recovered the transaction, which takes up to citus.recover_2pc_interval.
func decided(ctx context.Context, tx pgx.Tx) (bool, error) {
	// Only those that were there from the start: later ones do not matter.
	var waiting map[string]bool
	for range decidedTries {
		prepared, ok, err := preparedOnWorkers(ctx, tx)
		if err != nil || !ok {
			return false, err
		}
		if waiting == nil {
			waiting = prepared
		}
		maps.DeleteFunc(waiting, func(gid string, _ bool) bool { return !prepared[gid] })
		if len(waiting) == 0 {
			return true, nil
		}

		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(decidedPause):
		}
	}

	return false, nil
}

// preparedOnWorkers returns the transactions that are prepared on the workers. It returns false
// if a worker does not answer.
func preparedOnWorkers(ctx context.Context, tx pgx.Tx) (gids map[string]bool, ok bool, err error) {
	workers, err := askWorkers(ctx, tx, `
		SELECT coalesce(string_agg(gid, ' '), '') FROM pg_prepared_xacts
		WHERE database = current_database() AND gid LIKE 'citus%'`)
	if err != nil || slices.ContainsFunc(workers, func(w worker) bool { return !w.ok }) {
		return nil, false, err
	}

	gids = make(map[string]bool)
	for _, w := range workers {
		for gid := range strings.FieldsSeq(w.result) {
			gids[w.name+" "+gid] = true
		}
	}

	return gids, true, nil
}
