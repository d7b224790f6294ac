package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive"
	"promptspool/spool/archive/postgres/connection"
)

// slotsOf is over how many servers an account's counts are spread. Two servers in the same
// slot update the same row, and so wait for each other's commits.
const slotsOf = 32

// write writes what the group changed. It returns connection.ErrConflict if another server
// changed one of the records since load.
//
// It first updates what existed and then adds what is new, each in the order of the ids, so
// that writers cannot deadlock.
func (f *folding) write(ctx context.Context, tx pgx.Tx) error {
	b := &pgx.Batch{}
	var added addedRows
	for _, r := range f.order {
		if !r.changed {
			continue
		}
		if err := f.queueRecord(b, r, &added); err != nil {
			return err
		}
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return err
	}

	for _, t := range []struct {
		table   string
		columns []string
		rows    [][]any
	}{
		{"record_states", stateColumns, added.states},
		{"record_deltas", deltaColumns, added.deltas},
		{"records", headerColumns, added.headers},
		{"record_bodies", bodyColumns, added.bodies},
	} {
		if err := f.insert(ctx, tx, t.table, t.columns, t.rows); err != nil {
			return err
		}
	}

	// Last, because these rows are shared with other writers, who wait for our commit from
	// here on.
	b = &pgx.Batch{}
	f.queueCounts(b)
	f.queueStale(b)

	return tx.SendBatch(ctx, b).Close()
}

// addedRows are the rows that a group adds, by table.
type addedRows struct{ states, deltas, headers, bodies [][]any }

var (
	stateColumns = []string{"account_id", "request_id", "ts", "revision", "orphan", "state", "trace", "span_at"}
	deltaColumns = []string{"account_id", "request_id", "ts", "after", "delta"}
	bodyColumns  = []string{"account_id", "request_id", "ts", "event_id", "body"}
)

// queueRecord queues the changes of one record, and gathers the rows that it adds.
func (f *folding) queueRecord(b *pgx.Batch, r *record, added *addedRows) error {
	if r.removed {
		f.queueRemoval(b, r)
		return nil
	}

	packed, after, err := f.db.codec.packState(&r.state)
	if err != nil {
		return err
	}
	// The revision in WHERE is the only guard: no row was locked when it was read.
	switch {
	case r.revision == 0:
		added.states = append(added.states,
			[]any{r.account, r.id, r.ts, int64(1), r.unlisted(), packed, r.trace(), r.spanAt()})

	case after > 0: // packed is a delta
		queueOne(b, `
			UPDATE record_states SET revision = revision + 1, orphan = $5, trace = $6, span_at = $7
			WHERE account_id = $1 AND request_id = $2 AND ts = $3 AND revision = $4`,
			r.account, r.id, r.ts, r.revision, r.unlisted(), r.trace(), r.spanAt())
		added.deltas = append(added.deltas, []any{r.account, r.id, r.ts, after, packed})

	default:
		queueOne(b, `
			UPDATE record_states SET revision = revision + 1, orphan = $5, trace = $6, span_at = $7, state = $8
			WHERE account_id = $1 AND request_id = $2 AND ts = $3 AND revision = $4`,
			r.account, r.id, r.ts, r.revision, r.unlisted(), r.trace(), r.spanAt(), packed)
		queueDropDeltas(b, r)
	}

	// Only a Rewrite leaves the header as it is, and it adds no bodies.
	if r.sameRow {
		return nil
	}

	// The order time is part of the header's key: a header that moves in the list is deleted
	// and added again.
	if header := f.header(r); header != nil && r.listed && r.at == nanosOf(r.state.Request.At) {
		queueOne(b, updateHeader, header...)
	} else {
		// A record that is only a span from now on leaves the list.
		f.queueUnlist(b, r)
		if header != nil {
			added.headers = append(added.headers, header)
		}
	}

	// Bodies are only ever added: the event of each is new.
	for _, body := range r.bodies {
		added.bodies = append(added.bodies, []any{r.account, r.id, r.ts, body.event, body.body})
	}

	return nil
}

// insert adds rows. A row that another server has added meanwhile is a conflict.
func (f *folding) insert(ctx context.Context, tx pgx.Tx, table string, columns []string, rows [][]any) (err error) {
	switch {
	case len(rows) == 0:
		return nil
	case f.db.spread:
		// Citus does not note a COPY as a write on a connection that has read from the shard. It
		// would commit there last and in one phase: if the worker died in that moment, the rows
		// would be lost, although the transaction was committed.
		err = insertValues(ctx, tx, table, columns, rows)
	default:
		_, err = tx.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromRows(rows)) // the fastest way
	}

	// Without ON CONFLICT: whoever adds a record first wins, and we start over.
	if connection.IsDuplicate(err) {
		return fmt.Errorf("%w: %w", connection.ErrConflict, err)
	}

	return err
}

// insertSizes are how many rows one INSERT has, so that few different statements are prepared.
var insertSizes = []int{64, 16, 4, 1}

// insertValues adds rows by INSERT. One statement has rows of one account only, which are all
// on one node.
func insertValues(ctx context.Context, tx pgx.Tx, table string, columns []string, rows [][]any) error {
	b := &pgx.Batch{}
	for len(rows) > 0 {
		same := 1
		for same < len(rows) && rows[same][0] == rows[0][0] { // account_id is the first column
			same++
		}
		for _, size := range insertSizes {
			for ; same >= size; same, rows = same-size, rows[size:] {
				b.Queue(insertStatement(table, columns, size), slices.Concat(rows[:size]...)...)
			}
		}
	}

	return tx.SendBatch(ctx, b).Close()
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

// queueOne queues a statement that must change exactly one row. If the row is no longer as it
// was read, another server was faster, and the transaction starts over.
func queueOne(b *pgx.Batch, sql string, args ...any) {
	b.Queue(sql, args...).Exec(func(tag commandTag) error {
		if tag.RowsAffected() != 1 {
			return connection.ErrConflict
		}
		return nil
	})
}

const insertTombstone = `
	INSERT INTO tombstones (account_id, request_id, deleted_at, unseen) VALUES ($1, $2, $3, $4)
	ON CONFLICT (account_id, request_id) DO NOTHING`

func (f *folding) queueRemoval(b *pgx.Batch, r *record) {
	if r.revision > 0 {
		queueOne(b, `
			DELETE FROM record_states
			WHERE account_id = $1 AND request_id = $2 AND ts = $3 AND revision = $4`,
			r.account, r.id, r.ts, r.revision)
		queueDropDeltas(b, r)
		f.queueUnlist(b, r)
		b.Queue(`DELETE FROM record_bodies WHERE account_id = $1 AND request_id = $2 AND ts = $3`,
			r.account, r.id, r.ts)
	}

	// A tombstone of a record that never existed counts against a bound (mayRememberUnseen).
	if r.buried {
		b.Queue(insertTombstone, r.account, r.id, f.db.now().UTC(), len(r.state.History) == 0)
	}
}

// queueDropDeltas deletes the deltas of a record's state, which load has joined to it.
func queueDropDeltas(b *pgx.Batch, r *record) {
	if len(r.state.Deltas()) > 0 {
		b.Queue(`DELETE FROM record_deltas WHERE account_id = $1 AND request_id = $2 AND ts = $3`,
			r.account, r.id, r.ts)
	}
}

// queueUnlist deletes the header that the record had, if any.
func (f *folding) queueUnlist(b *pgx.Batch, r *record) {
	// With the old order time, which is in the key.
	if r.listed {
		queueOne(b, `DELETE FROM records WHERE account_id = $1 AND at = $2 AND request_id = $3 AND ts = $4`,
			r.account, r.at, r.id, r.ts)
	}
}

// weekCount is what a group adds to the counts of an account in one week.
type weekCount struct {
	spans int64 // records that are only a span

	account        string
	week           time.Time
	records, bytes int64
	orphans        archive.Orphans
	newest, oldest *int64
}

// queueCounts adds to the counts of the accounts.
func (f *folding) queueCounts(b *pgx.Batch) {
	var counts []*weekCount
	for _, p := range f.parts() {
		unchanged := weekCount{account: p.account, week: p.week}
		// A change that counts nothing differently must not touch the shared rows.
		c := unchanged
		for _, r := range p.records {
			if r.changed {
				c.add(r)
			}
		}
		if c != unchanged {
			counts = append(counts, &c)
		}
	}

	// Parts come in the order of ids; rows of counts are locked in that of weeks.
	slices.SortFunc(counts, func(a, b *weekCount) int {
		return cmp.Or(strings.Compare(a.account, b.account), a.week.Compare(b.week))
	})

	// newest and oldest only widen: to narrow them would take a look at all records.
	for _, c := range counts {
		b.Queue(`
			INSERT INTO account_weeks AS w (account_id, week, slot, records, bytes,
				orphans, orphan_events, orphan_bytes, newest, oldest, spans)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
			ON CONFLICT (account_id, week, slot) DO UPDATE SET
				records = w.records + excluded.records,
				bytes = w.bytes + excluded.bytes,
				orphans = w.orphans + excluded.orphans,
				orphan_events = w.orphan_events + excluded.orphan_events,
				orphan_bytes = w.orphan_bytes + excluded.orphan_bytes,
				spans = w.spans + excluded.spans,
				newest = greatest(w.newest, excluded.newest),
				oldest = least(w.oldest, excluded.oldest)`,
			c.account, c.week, f.slot, c.records, c.bytes,
			c.orphans.Requests, c.orphans.Events, c.orphans.Bytes, c.newest, c.oldest, c.spans)
	}
}

// add subtracts a changed record as it was, and adds it as it is now.
func (c *weekCount) add(r *record) {
	// As it was read: for a new record all of this is zero.
	c.bytes -= r.bytes
	c.orphans.Add(archive.Orphans{}.Minus(r.waiting))
	if r.listed {
		c.records--
	}
	if r.bare {
		c.spans--
	}
	if r.removed {
		return
	}

	c.bytes += int64(r.state.Bytes())
	c.orphans.Add(r.state.Waiting())
	var at int64
	switch {
	case r.state.Listed():
		c.records++
		at = nanosOf(r.state.Request.At)
	case r.state.Bare():
		c.spans++
		at = nanosOf(r.state.BareAt())
	default:
		return
	}
	if c.newest == nil || at > *c.newest {
		c.newest = &at
	}
	if c.oldest == nil || at < *c.oldest {
		c.oldest = &at
	}
}

// queueStale deletes the summaries of stretches in which a record changed, came or went.
func (f *folding) queueStale(b *pgx.Batch) {
	for _, name := range f.accountNames() {
		var places []int64
		for _, r := range f.order {
			if r.account != name || !r.changed || r.sameRow {
				continue
			}
			// Where it was and where it is now: it may have moved.
			if r.listed {
				places = append(places, r.at)
			}
			if !r.removed && r.state.Listed() {
				places = append(places, nanosOf(r.state.Request.At))
			}
		}

		// newest >= the lowest place lets the index skip all stretches below it.
		if places = distinct(places); len(places) > 0 {
			b.Queue(`
				DELETE FROM summaries
				WHERE account_id = $1 AND newest >= $2
					AND EXISTS (SELECT 1 FROM unnest($3::bigint[]) place WHERE place BETWEEN bottom AND newest)`,
				name, places[0], places)
		}
	}
}
