package postgres

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/postgres/connection"
	"promptspool/spool/database/postgres/filter"
	"promptspool/spool/database/postgres/schema"
)

// Accounts returns the ids of all accounts that have records or tombstones; see archive.Store.
func (db *DB) Accounts(ctx context.Context) ([]string, error) {
	return connection.QueryRows(ctx, db.pool, pgx.RowTo[string], `
		SELECT account_id FROM account_weeks
		UNION SELECT account_id FROM tombstones UNION SELECT account_id FROM deleted_values ORDER BY account_id`)
}

// DropBefore drops the weeks that are too old; see archive.Store. A week stays if
// something in it arrived late, or is in the default partition.
func (db *DB) DropBefore(ctx context.Context, cutoff time.Time) (dropped int64, rest time.Time, err error) {
	old, err := connection.QueryRows(ctx, db.pool, pgx.RowTo[time.Time], `
		SELECT week FROM account_weeks GROUP BY week
		HAVING coalesce(max(newest) < $1, true) AND sum(orphans) = 0 ORDER BY week`, schema.Nanos(cutoff))
	for _, week := range old {
		_, end := schema.WeekEnds(week)
		if err != nil || end.InfinityModifier != 0 || end.Time.After(cutoff) {
			continue
		}
		var n int64
		n, err = db.dropWeek(ctx, week, cutoff)
		dropped += n
	}

	// Records in the week of the cutoff go with the week.
	return dropped, schema.WeekOf(cutoff), err
}

// dropWeek drops the partitions of a week if nothing in them has to stay. Writers to the week
// wait for it, and then find its records gone.
func (db *DB) dropWeek(ctx context.Context, week, cutoff time.Time) (dropped int64, err error) {
	gone := false
	err = db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		dropped, gone = 0, false
		exists, err := schema.LockWeek(ctx, tx, week)
		if err != nil || !exists {
			return err
		}

		// Only now, after the locks, do the counts include every write to the week.
		stays := false
		if err := tx.QueryRow(ctx, `
			SELECT coalesce(max(newest) >= $2, false) OR sum(orphans) <> 0, coalesce(sum(records + spans), 0)::bigint
			FROM account_weeks WHERE week = $1`, week, schema.Nanos(cutoff)).
			Scan(&stays, &dropped); err != nil || stays {
			dropped = 0
			return err
		}

		// Summaries that touch the week go too: they would still count its rows. So do indexes of words.
		gone = true
		for _, of := range [][2]string{
			{"summaries", "summaries"}, {"text_pages", "text_units"}, {"text_units", "text_units"},
		} {
			if _, err := tx.Exec(ctx, `
				DELETE FROM `+of[0]+` gone
				USING `+of[1]+` s, (SELECT account_id, min(list_oldest) AS oldest, max(list_newest) AS newest
					FROM account_weeks WHERE week = $1 GROUP BY account_id) w
				WHERE gone.account_id = s.account_id AND gone.newest = s.newest
					AND s.account_id = w.account_id AND s.newest >= w.oldest AND s.bottom <= w.newest`,
				week); err != nil {
				return err
			}
		}
		if err := dropRollups(ctx, tx, week); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM account_weeks WHERE week = $1`, week); err != nil {
			return err
		}
		return schema.DropWeek(ctx, tx, week)
	})

	// The next write creates partitions again if a record of that week arrives late.
	if gone {
		db.tables.Forget()
	}

	return dropped, err
}

// Oldest returns the ids of the records with the lowest order times; see archive.Store.
func (db *DB) Oldest(
	ctx context.Context, account string, before time.Time, n int,
) (ids []string, err error) {
	end := int64(math.MaxInt64)
	if !before.IsZero() {
		end = schema.Nanos(before)
	}
	type aged struct {
		at int64
		id uuid
	}

	err = db.pool.View(ctx, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `
			SELECT week, min(oldest) FROM account_weeks
			WHERE account_id = $1 GROUP BY week HAVING min(oldest) < $2
			ORDER BY min(oldest)`, account, end)
		weeks, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (w weekSpan, err error) {
			err = row.Scan(&w.week, &w.oldest)
			return w, err
		})
		if err != nil {
			return err
		}

		// From the old end on, partition by partition, until no other can have an older one.
		var found []aged
		for _, w := range weeks {
			if len(found) == n && w.oldest > found[n-1].at {
				break
			}
			from, to := schema.WeekEnds(w.week)
			rows, _ := tx.Query(ctx, `
				(SELECT accepted, request_id FROM records
				WHERE account_id = $1 AND ts >= $2 AND ts < $3 AND accepted < $5
				ORDER BY 1, 2 LIMIT $4)
				UNION ALL
				(SELECT span_at, request_id FROM record_states
				WHERE account_id = $1 AND ts >= $2 AND ts < $3 AND span_at < $5
				ORDER BY 1, 2 LIMIT $4)`,
				account, from, to, n, end)
			var r aged
			if _, err := pgx.ForEachRow(rows, []any{&r.at, &r.id}, func() error {
				found = append(found, r)
				return nil
			}); err != nil {
				return err
			}
			sort.Slice(found, func(i, j int) bool {
				a, b := &found[i], &found[j]
				return cmp.Or(cmp.Compare(a.at, b.at), bytes.Compare(a.id[:], b.id[:])) < 0
			})
			found = found[:min(n, len(found))]
		}

		ids = nil
		for _, r := range found {
			ids = append(ids, r.id.String())
		}
		return nil
	})

	return ids, err
}

// GoneBy returns no time: when the bytes leave the disk is up to the database (VACUUM).
func (db *DB) GoneBy() time.Time { return time.Time{} }

// valuesMax bounds the deleted metadata values of an account.
const valuesMax = 100_000

// Forget stores the tombstones of metadata values; see archive.Store. When it returns, every
// write that did not see the tombstone is committed, and every later one sees it.
func (db *DB) Forget(ctx context.Context, account string, values ...wire.Deletion) error {
	before := make(map[[16]byte]int64)
	for _, d := range values {
		hash := rowcode.HashValue(d.Key, d.Value)
		before[hash] = schema.Nanos(d.Before)
	}

	return db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		// The account's lock, exclusively: it waits for all writers that have begun.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, accountLock(account)); err != nil {
			return err
		}

		// Without these, which may be deleted again however many there are.
		var hashes [][]byte
		b := &pgx.Batch{}
		for hash, at := range before {
			hashes = append(hashes, bytes.Clone(hash[:]))
			b.Queue(`
				INSERT INTO deleted_values AS v (account_id, hash, before) VALUES ($1, $2, $3)
				ON CONFLICT (account_id, hash) DO UPDATE SET before = greatest(v.before, excluded.before)`,
				account, bytes.Clone(hash[:]), at)
		}
		others := 0
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM deleted_values WHERE account_id = $1 AND hash <> ALL($2)`,
			account, hashes).Scan(&others); err != nil {
			return err
		}
		if others+len(hashes) > valuesMax {
			return wire.Errorf(wire.CodeTooLarge, "This project has deleted requests by %d metadata values, "+
				"which is the limit. Delete by request_id instead.", valuesMax)
		}

		return sendBatch(ctx, tx, b)
	})
}

// havingStep is how many records Having looks for at a time.
const havingStep = 1000

// Having returns the ids of records that may have a metadata value, by their terms; see
// archive.Store.
func (db *DB) Having(
	ctx context.Context, account string, d wire.Deletion, after string,
) (ids []string, next string, err error) {
	last := place{at: nanosMost}
	if p, ok := query.ParseCursor(after); ok {
		last.at = schema.Nanos(p.At)
		last.id, _ = archive.ParseUUID(p.RequestID)
	}
	// Over all partitions: the terms' indexes find few rows in each.
	terms := filter.MetadataTerms(account, d.Key, rowcode.StoredValue(d.Key, d.Value))
	page, err := connection.QueryRows(ctx, db.pool, positionRow, `
		SELECT at, request_id FROM records
		WHERE account_id = $1 AND terms && $2::bigint[] AND (at, request_id) < ($3, $4)
		ORDER BY at DESC, request_id DESC LIMIT $5`, account, terms, last.at, last.id, havingStep)
	for _, p := range page {
		ids = append(ids, p.RequestID)
	}
	if len(page) == havingStep {
		next = page[len(page)-1].Cursor()
	}

	return ids, next, err
}

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
	o := &c.Orphans
	err = db.pool.QueryRow(ctx, []any{&c.Records, &c.Spans, &c.Bytes, &o.Requests, &o.Events, &o.Bytes, &o.Logs}, `
		SELECT coalesce(sum(records), 0)::bigint, coalesce(sum(spans), 0)::bigint, coalesce(sum(bytes), 0)::bigint,
			coalesce(sum(orphans), 0)::bigint, coalesce(sum(orphan_events), 0)::bigint,
			coalesce(sum(orphan_bytes), 0)::bigint, coalesce(sum(logs), 0)::bigint
		FROM account_weeks WHERE account_id = $1`, account)

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
