package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive"
	"promptspool/spool/database/keyed"
	"promptspool/spool/database/postgres/connection"
	"promptspool/spool/database/postgres/schema"
	"promptspool/spool/database/transfer"
)

// reader is a transaction, or a connection on which each statement is one.
type reader interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// smallReader reads the table small_values, on a connection of the pool or in a transaction.
type smallReader struct {
	ask func(ctx context.Context, fn func(q reader) error) error
}

// smallValues is the keyed.Store of a DB.
type smallValues struct {
	smallReader
	pool *connection.Pool
}

func (db *DB) small() smallValues {
	return smallValues{smallReader{func(ctx context.Context, fn func(q reader) error) error {
		return db.pool.WithConn(ctx, func(conn *pgx.Conn) error { return fn(conn) })
	}}, db.pool}
}

const getSmall = `SELECT value FROM small_values WHERE kind = $1 AND account_id = $2 AND name = $3`

// Get implements keyed.Reader.
func (r smallReader) Get(ctx context.Context, keys ...keyed.Key) (values []json.RawMessage, err error) {
	err = r.ask(ctx, func(q reader) error {
		// An earlier attempt may have failed halfway.
		values = make([]json.RawMessage, len(keys))

		b := &pgx.Batch{}
		for i, k := range keys {
			scan := func(row pgx.Row) error {
				err := row.Scan((*[]byte)(&values[i]))
				if errors.Is(err, pgx.ErrNoRows) {
					err = nil
				}
				return err
			}
			// A batch of one takes longer than a statement, and each request asks for a key.
			if len(keys) == 1 {
				return scan(q.QueryRow(ctx, getSmall, k.Kind, k.Account, []byte(k.Name)))
			}
			b.Queue(getSmall, k.Kind, k.Account, []byte(k.Name)).QueryRow(scan)
		}
		return sendBatch(ctx, q, b)
	})
	return values, err
}

// Scan implements keyed.Reader.
func (r smallReader) Scan(ctx context.Context, from keyed.Key, skip, limit int) ([]keyed.Entry, error) {
	sql := `
		SELECT kind, account_id, name, value FROM small_values
		WHERE kind = $1 AND account_id = $2 AND name >= $3 ORDER BY name LIMIT $4`
	args := []any{from.Kind, from.Account, []byte(from.Name), limit}
	// Not always: with an OFFSET, PostgreSQL plans the statement again each time.
	if skip > 0 {
		sql, args = sql+` OFFSET $5`, append(args, skip)
	}
	return r.page(ctx, sql, args...)
}

// Walk implements keyed.Store.
func (db smallValues) Walk(ctx context.Context, after keyed.Key, limit int) ([]keyed.Entry, error) {
	return db.page(ctx, `
		SELECT kind, account_id, name, value FROM small_values
		WHERE (kind, account_id, name) > ($1, $2, $3) ORDER BY kind, account_id, name LIMIT $4`,
		after.Kind, after.Account, []byte(after.Name), limit)
}

// page returns the rows of a statement.
func (r smallReader) page(ctx context.Context, sql string, args ...any) (page []keyed.Entry, err error) {
	err = r.ask(ctx, func(q reader) (err error) {
		rows, _ := q.Query(ctx, sql, args...)
		page, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e keyed.Entry, err error) {
			var name []byte
			err = row.Scan(&e.Kind, &e.Account, &name, (*[]byte)(&e.Value))
			e.Name = string(name)
			return e, err
		})
		return err
	})
	return page, err
}

// Change implements keyed.Store. An advisory lock lets one change of an account run at a time,
// at all servers together. Locks on rows would not do: two owners may demote each other, each
// in another row. Readers, and Write, do not wait for it.
func (db smallValues) Change(ctx context.Context, account string, again bool, fn func(*keyed.Tx) error) error {
	return db.pool.Change(ctx, again, func(tx pgx.Tx) error {
		sum := sha256.Sum256([]byte("small values of " + account))
		lock := int64(binary.BigEndian.Uint64(sum[:]))
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lock); err != nil {
			return err
		}

		change := keyed.NewTx(smallReader{func(_ context.Context, fn func(q reader) error) error { return fn(tx) }})
		if err := fn(change); err != nil {
			return err
		}
		b := &pgx.Batch{}
		queueSmall(b, change.Entries())
		return sendBatch(ctx, tx, b)
	})
}

// Write implements keyed.Store. One batch is one transaction.
func (db smallValues) Write(ctx context.Context, entries ...keyed.Entry) error {
	return db.ask(ctx, func(q reader) error {
		b := &pgx.Batch{}
		b.Queue(schema.Guard)
		queueSmall(b, entries)
		return sendBatch(ctx, q, b)
	})
}

// queueSmall queues the writes of entries.
func queueSmall(b *pgx.Batch, entries []keyed.Entry) {
	for _, e := range entries {
		if e.Value == nil {
			b.Queue(`DELETE FROM small_values WHERE kind = $1 AND account_id = $2 AND name = $3`,
				e.Kind, e.Account, []byte(e.Name))
			continue
		}
		b.Queue(`
			INSERT INTO small_values (kind, account_id, name, value) VALUES ($1, $2, $3, $4::json)
			ON CONFLICT (kind, account_id, name) DO UPDATE SET value = EXCLUDED.value`,
			e.Kind, e.Account, []byte(e.Name), string(e.Value))
	}
}

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
		now[account] = revisions[i]
		if seen[account] != revisions[i] {
			wake(account)
		}
	}

	return now
}

// Small returns what is not about records; see transfer.Mover.
func (db *DB) Small() keyed.Store { return db.small() }

// Servers returns how many connections servers have to the database. Those of a copy do not
// count: they have another application_name.
func (db *DB) Servers(ctx context.Context) (connections int, err error) {
	err = db.pool.QueryRow(ctx, []any{&connections}, `
		SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = $1`, connection.ApplicationName)
	return connections, err
}

// IDs returns ids of records; see archive.Store.
func (db *DB) IDs(ctx context.Context, account, after string, limit int) (ids []string, err error) {
	before := uuid(bytes.Repeat([]byte{0xff}, len(uuid{})))
	if after != "" {
		before, _ = archive.ParseUUID(after)
	}

	// By the primary key across all partitions, from after the last record on.
	return connection.QueryRows(ctx, db.pool, pgx.RowTo[string], `
		SELECT request_id::text FROM record_states s
		WHERE account_id = $1 AND request_id < $2 ORDER BY s.request_id DESC LIMIT $3`, account, before, limit)
}

// Tombstones returns tombstones, those of records first; see transfer.Mover.
func (db *DB) Tombstones(
	ctx context.Context, account string, after transfer.Tombstone, limit int,
) (page []transfer.Tombstone, err error) {
	if !after.OfValue {
		page, err = connection.QueryRows(ctx, db.pool,
			func(row pgx.CollectableRow) (t transfer.Tombstone, err error) {
				err = row.Scan((*uuid)(&t.Key), &t.At)
				return t, err
			}, `
			SELECT request_id, deleted_at FROM tombstones
			WHERE account_id = $1 AND request_id > $2 ORDER BY request_id LIMIT $3`, account, uuid(after.Key), limit)
		if err != nil || len(page) > 0 {
			return page, err
		}
		after.Key = [16]byte{}
	}

	return connection.QueryRows(ctx, db.pool,
		func(row pgx.CollectableRow) (t transfer.Tombstone, err error) {
			var hash []byte
			var before int64
			err = row.Scan(&hash, &before)
			copy(t.Key[:], hash)
			t.OfValue, t.At = true, time.Unix(0, before).UTC()
			return t, err
		}, `
		SELECT hash, before FROM deleted_values
		WHERE account_id = $1 AND hash > $2 ORDER BY hash LIMIT $3`, account, after.Key[:], limit)
}

// Bury stores tombstones, except those that are here; see transfer.Mover.
func (db *DB) Bury(ctx context.Context, account string, tombstones []transfer.Tombstone) error {
	var ofRecords, ofValues [][]any
	for _, t := range tombstones {
		if t.OfValue {
			ofValues = append(ofValues, []any{account, bytes.Clone(t.Key[:]), schema.Nanos(t.At)})
		} else {
			ofRecords = append(ofRecords, []any{account, uuid(t.Key), t.At.UTC(), false})
		}
	}

	return db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		queueTombstones(b, ofRecords)
		queueInserts(b, "deleted_values", []string{"account_id", "hash", "before"}, ofValues, " ON CONFLICT DO NOTHING")
		return sendBatch(ctx, tx, b)
	})
}
