package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"promptspool/spool/archive"
	"promptspool/spool/database/postgres/connection"
	"promptspool/spool/database/postgres/schema"
)

// columnArrays are rows, as one array for each column: a statement takes them with unnest.
type columnArrays [][]any

func (a *columnArrays) add(row ...any) {
	if *a == nil {
		*a = make(columnArrays, len(row))
	}
	for i, value := range row {
		(*a)[i] = append((*a)[i], value)
	}
}

// partChanges are what a group does to rows that exist, of one account and week.
//
// One statement changes all rows of a table: where tables are spread, each statement is a round
// trip from the coordinator to a node.
type partChanges struct {
	*part
	states   columnArrays // id, revision, orphan, trace, span_at and state: nil if that gets a delta
	unlisted columnArrays // list time and id of headers that are deleted
	removed  columnArrays // id and revision of records that are deleted
	deltas   []uuid       // of records whose deltas are deleted
	bodies   columnArrays // record and event of bodies that are deleted
	replaced columnArrays // record, event and body of bodies that are replaced
	buried   [][]any      // tombstones
}

// dropDeltas deletes the deltas of a record's state, which load has joined to it.
func (c *partChanges) dropDeltas(r *archive.Record) {
	if len(r.State.Deltas()) > 0 {
		c.deltas = append(c.deltas, r.ID)
	}
}

// unlist deletes the header that the record had, if any.
func (c *partChanges) unlist(r *archive.Record) {
	// With the old list time, which is in the key.
	if r.Before.Listed {
		c.unlisted.add(schema.Nanos(r.Before.ListedAt), r.ID)
	}
}

// remove deletes a record, and leaves a tombstone if the group asks for one.
func (c *partChanges) remove(r *archive.Record, tombstone []any) {
	if r.Revision > 0 {
		c.removed.add(r.ID, r.Revision)
		c.dropDeltas(r)
		c.unlist(r)
	}
	if r.Buried {
		c.buried = append(c.buried, tombstone)
	}
}

// queue queues the changes. The ids and times are also compared with ANY, so that the rows are
// found by the index whatever the planner makes of unnest.
func (c *partChanges) queue(b *pgx.Batch) {
	from, to := schema.WeekEnds(c.week)
	all := func(rows columnArrays, sql string) { rows.queue(b, sql, c.account, from, to) }

	all(c.states, `
		UPDATE record_states s SET revision = s.revision + 1,
			orphan = u.orphan, trace = u.trace, span_at = u.span_at, state = coalesce(u.state, s.state)
		FROM unnest($4::uuid[], $5::bigint[], $6::boolean[], $7::uuid[], $8::bigint[],
			$9::bytea[]) AS u (id, revision, orphan, trace, span_at, state)
		WHERE s.account_id = $1 AND s.ts >= $2 AND s.ts < $3
			AND s.request_id = ANY($4) AND s.request_id = u.id AND s.revision = u.revision`)
	all(c.removed, `
		DELETE FROM record_states s
		USING unnest($4::uuid[], $5::bigint[]) AS u (id, revision)
		WHERE s.account_id = $1 AND s.ts >= $2 AND s.ts < $3
			AND s.request_id = ANY($4) AND s.request_id = u.id AND s.revision = u.revision`)
	all(c.unlisted, `
		DELETE FROM records r
		USING unnest($4::bigint[], $5::uuid[]) AS u (at, id)
		WHERE r.account_id = $1 AND r.ts >= $2 AND r.ts < $3
			AND r.at = ANY($4) AND r.at = u.at AND r.request_id = u.id`)

	all(c.bodies, `
		DELETE FROM record_bodies b
		USING unnest($4::uuid[], $5::uuid[]) AS u (id, event)
		WHERE b.account_id = $1 AND b.ts >= $2 AND b.ts < $3
			AND b.request_id = ANY($4) AND b.request_id = u.id AND b.event_id = u.event`)
	all(c.replaced, `
		UPDATE record_bodies b SET body = u.body
		FROM unnest($4::uuid[], $5::uuid[], $6::bytea[]) AS u (id, event, body)
		WHERE b.account_id = $1 AND b.ts >= $2 AND b.ts < $3
			AND b.request_id = ANY($4) AND b.request_id = u.id AND b.event_id = u.event`)

	if len(c.deltas) > 0 {
		b.Queue(`
			DELETE FROM record_deltas
			WHERE account_id = $1 AND ts >= $2 AND ts < $3 AND request_id = ANY($4)`, c.account, from, to, c.deltas)
	}
	if len(c.removed) > 0 {
		b.Queue(`
			DELETE FROM record_bodies
			WHERE account_id = $1 AND ts >= $2 AND ts < $3 AND request_id = ANY($4)`, c.account, from, to, c.removed[0])
	}
	// A tombstone of a record that never existed counts against a bound (mayRememberUnseen).
	queueTombstones(b, c.buried)
}

// queue queues a statement that must change all the rows, unless there are none. Its arguments are
// the given ones, and then the columns. If a row is no longer as it was read, another server was
// faster, and the transaction starts over.
func (a columnArrays) queue(b *pgx.Batch, sql string, args ...any) {
	if len(a) == 0 {
		return
	}
	for _, column := range a {
		args = append(args, column)
	}
	b.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != int64(len(a[0])) {
			return connection.ErrConflict
		}
		return nil
	})
}

var tombstoneColumns = []string{"account_id", "request_id", "deleted_at", "unseen"}

func queueTombstones(b *pgx.Batch, rows [][]any) {
	queueInserts(b, "tombstones", tombstoneColumns, rows, " ON CONFLICT (account_id, request_id) DO NOTHING")
}

// Fewer than copyLeast rows are not copied, nor, where tables are spread, any for insertFor after a
// COPY that failed.
const (
	copyLeast = 16
	insertFor = time.Minute
)

// few reports whether rows are added by INSERT, all in one round trip. COPY, which is the fastest way
// for many rows, takes two for each table.
func (f *folding) few(a *addedRows) bool {
	most := max(len(a.sets), len(a.states), len(a.deltas), len(a.headers), len(a.bodies))
	return most < copyLeast || f.db.spread && f.db.now().UnixNano() < f.db.insertUntil.Load()
}

// copyRows adds rows.
//
// Citus does not note a COPY as a write on a connection over which the transaction has read from
// the shard. It would commit there last and in one phase, and if the node died in that moment,
// the rows would be lost, although the transaction was committed. It does note what write sends
// after the rows, over the same connection: the INSERT of the account's counts.
func (f *folding) copyRows(ctx context.Context, tx pgx.Tx, table string, columns []string, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromRows(rows))

	return conflict(f.copyFailure(err))
}

// conflict marks the error of a row that another server has added meanwhile. Without ON CONFLICT, the
// first to add a record wins, and we start over.
func conflict(err error) error {
	if connection.IsDuplicate(err) {
		return fmt.Errorf("%w: %w", connection.ErrConflict, err)
	}

	return err
}

// copyFailure turns the error of a COPY to spread tables into a conflict, so that the
// transaction starts over with INSERT. Of a COPY, the coordinator does not pass on a
// worker's SQLSTATE, and a refusal could not be told from a duplicate.
func (f *folding) copyFailure(err error) error {
	if !f.db.spread || connection.SQLState(err) == "" || connection.Away(err) {
		return err
	}
	f.db.insertUntil.Store(f.db.now().Add(insertFor).UnixNano())

	return fmt.Errorf("%w: %w", connection.ErrConflict, err)
}

// insertSizes are how many rows one INSERT has, so that few different statements are prepared.
var insertSizes = []int{64, 16, 4, 1}

// queueInserts queues INSERTs that end with suffix. Each has rows of one account only, which
// are all on one node.
func queueInserts(b *pgx.Batch, table string, columns []string, rows [][]any, suffix string) {
	for len(rows) > 0 {
		same := 1
		// The first column is account_id.
		for same < len(rows) && rows[same][0] == rows[0][0] {
			same++
		}
		for _, size := range insertSizes {
			for ; same >= size; same, rows = same-size, rows[size:] {
				b.Queue(insertStatement(table, columns, size)+suffix, slices.Concat(rows[:size]...)...)
			}
		}
	}
}

// insertStatement returns an INSERT of so many rows.
func insertStatement(table string, columns []string, rows int) string {
	var sql strings.Builder
	sql.WriteString("INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES ")

	for i := range rows * len(columns) {
		switch {
		case i == 0:
			sql.WriteByte('(')
		case i%len(columns) == 0:
			sql.WriteString("), (")
		default:
			sql.WriteString(", ")
		}
		fmt.Fprintf(&sql, "$%d", i+1)
	}

	return sql.String() + ")"
}
