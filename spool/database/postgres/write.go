package postgres

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/database/postgres/connection"
	"promptspool/spool/database/postgres/filter"
	"promptspool/spool/database/postgres/schema"
)

// columnsOf are the columns of record_states that are copies of what its state says. orphan marks
// what a deletion by metadata must look at, although no list shows it.
func columnsOf(f archive.Footprint) (orphan bool, trace *uuid, spanAt *int64) {
	if id := f.Trace; id != (uuid{}) {
		trace = &id
	}
	if f.Bare {
		// It is an integer, since the database's times lack nanoseconds.
		at := schema.Nanos(f.At)
		spanAt = &at
	}

	return f.Waiting.Requests > 0 || f.Tagged, trace, spanAt
}

// slotsOf is over how many servers an account's counts are spread. Two servers in the same
// slot update the same row, and so wait for each other's commits. Each has one for each lane, and
// as many again for isolated accounts.
const slotsOf = 32

// write writes what the group changed. It returns connection.ErrConflict if another server
// changed one of the records since load.
//
// It first updates what existed and then adds what is new, each in the order of the ids, so
// that writers hardly ever deadlock; those that do start over.
func (f *folding) write(ctx context.Context, tx pgx.Tx) error {
	if err := f.Unite(f); err != nil {
		return err
	}
	f.Settle()
	// Some may have come since they were loaded.
	sortRecords(f.Records)
	b := &pgx.Batch{}
	var added addedRows
	for _, p := range parts(f.Records) {
		changes := partChanges{part: p}
		for _, r := range p.records {
			if !r.Changed {
				continue
			}
			if err := f.collect(r, &changes, &added); err != nil {
				return err
			}
		}
		if err := f.free(ctx, tx, &changes); err != nil {
			return err
		}
		changes.queue(b)
	}
	for _, name := range f.accountNames() {
		added.sets = append(added.sets, f.queueChangedSets(b, name)...)
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return err
	}

	// Last, because these rows are shared with other writers, who wait for our commit from
	// here on.
	last := &pgx.Batch{}
	few := f.few(&added)
	for _, t := range []struct {
		table   string
		columns []string
		rows    [][]any
	}{
		{"record_calls", setColumns, added.sets},
		{"record_states", stateColumns, added.states},
		{"record_deltas", deltaColumns, added.deltas},
		{"records", filter.Columns, added.headers},
		{"record_bodies", bodyColumns, added.bodies},
	} {
		if few {
			queueInserts(last, t.table, t.columns, t.rows, "")
		} else if err := f.copyRows(ctx, tx, t.table, t.columns, t.rows); err != nil {
			return err
		}
	}
	f.queueRollups(last)
	f.queueCounts(last)
	f.queueStale(last)

	return conflict(tx.SendBatch(ctx, last).Close())
}

// queueChangedSets writes the sets of an account that changed or by which something was decided, and
// returns those that are new.
func (f *folding) queueChangedSets(b *pgx.Batch, account string) (added [][]any) {
	var changed, removed columnArrays
	for _, key := range sortedKeys(f.Accounts[account].Sets) {
		set := f.Accounts[account].Sets[key]
		value, at := set.Encode(), key.Time()
		switch {
		case !set.Changed && !set.Decided || value == nil && set.Revision == 0:
		case set.Revision == 0:
			added = append(added, []any{account, key, at, int64(1), value})
		case value == nil:
			removed.add(key, at, set.Revision)
		default:
			changed.add(key, at, set.Revision, value)
		}
	}

	changed.queue(b, `
		UPDATE record_calls s SET revision = s.revision + 1, members = u.members
		FROM unnest($2::uuid[], $3::timestamptz[], $4::bigint[], $5::bytea[]) AS u (call, ts, revision, members)
		WHERE s.account_id = $1 AND s.call = u.call AND s.ts = u.ts AND s.revision = u.revision`, account)
	removed.queue(b, `
		DELETE FROM record_calls s
		USING unnest($2::uuid[], $3::timestamptz[], $4::bigint[]) AS u (call, ts, revision)
		WHERE s.account_id = $1 AND s.call = u.call AND s.ts = u.ts AND s.revision = u.revision`, account)

	return added
}

// sortedKeys returns the keys of sets in the order in which all writers touch them.
func sortedKeys(sets map[uuid]*archive.Set) []uuid {
	return slices.SortedFunc(maps.Keys(sets), func(a, b uuid) int { return bytes.Compare(a[:], b[:]) })
}

// addedRows are the rows that a group adds, by table.
type addedRows struct{ sets, states, deltas, headers, bodies [][]any }

var (
	stateColumns = []string{"account_id", "request_id", "ts", "revision", "orphan", "state", "trace", "span_at"}
	setColumns   = []string{"account_id", "call", "ts", "revision", "members"}
	deltaColumns = []string{"account_id", "request_id", "ts", "after", "delta"}
	bodyColumns  = []string{"account_id", "request_id", "ts", "event_id", "body"}
)

// collect collects the changes of one record, and the rows that it adds.
func (f *folding) collect(r *archive.Record, c *partChanges, added *addedRows) error {
	id := r.ID
	if r.Removed {
		c.remove(r, []any{r.Account, id, f.db.now().UTC(), false})
		return nil
	}

	for _, event := range r.DroppedBodies() {
		c.bodies.add(id, event)
		c.going = append(c.going, bodyPlace{id, event})
	}
	for event, body := range r.Replaced {
		c.replaced.add(id, event, f.db.codec.Body(body))
		c.going = append(c.going, bodyPlace{id, event})
	}
	packed, after, err := f.db.codec.packState(&r.State)
	if err != nil {
		return err
	}
	orphan, trace, spanAt := columnsOf(r.After)
	// The revision is the only guard: no row was locked when it was read.
	switch {
	case r.Revision == 0:
		added.states = append(added.states,
			[]any{r.Account, id, id.Time(), int64(1), orphan, packed, trace, spanAt})

	case after > 0:
		// A delta was packed.
		c.states.add(id, r.Revision, orphan, trace, spanAt, nil)
		added.deltas = append(added.deltas, []any{r.Account, id, id.Time(), after, packed})

	default:
		c.states.add(id, r.Revision, orphan, trace, spanAt, packed)
		c.dropDeltas(r)
	}

	// A header is deleted and added again. An UPDATE would not be cheaper, since the terms are
	// indexed, and Citus has none that takes the terms of many rows.
	c.unlist(r)
	// There is none if it is only a span from now on.
	if header := filter.Header(r.Account, id, &r.State.State); header != nil {
		added.headers = append(added.headers, header)
	}

	// Bodies are only ever added: the event of each is new.
	for _, body := range r.Bodies {
		added.bodies = append(added.bodies, []any{r.Account, id, id.Time(), body.Event, body.Bytes})
	}

	return nil
}

// weekCount is what a group adds to the counts of an account in one week.
type weekCount struct {
	archive.Counts

	account        string
	week           time.Time
	newest, oldest *int64 // order times
	last, first    *int64 // list times
}

// queueCounts adds to the counts of the accounts.
func (f *folding) queueCounts(b *pgx.Batch) {
	var counts []*weekCount
	for _, p := range parts(f.Records) {
		unchanged := weekCount{account: p.account, week: p.week}
		// A change that counts nothing differently must not touch the shared rows.
		c := unchanged
		for _, r := range p.records {
			if r.Changed {
				c.add(r.Before, r.After)
			}
		}
		if c != unchanged {
			counts = append(counts, &c)
		}
	}

	// In the order of accounts and weeks, in which all writers lock these rows. The ranges only widen:
	// to narrow them would take a look at all records.
	for _, c := range counts {
		b.Queue(`
			INSERT INTO account_weeks AS w (account_id, week, slot, records, bytes,
				orphans, orphan_events, orphan_bytes, newest, oldest, list_newest, list_oldest, spans, logs)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
			ON CONFLICT (account_id, week, slot) DO UPDATE SET
				records = w.records + excluded.records,
				bytes = w.bytes + excluded.bytes,
				orphans = w.orphans + excluded.orphans,
				orphan_events = w.orphan_events + excluded.orphan_events,
				orphan_bytes = w.orphan_bytes + excluded.orphan_bytes,
				spans = w.spans + excluded.spans,
				logs = w.logs + excluded.logs,
				newest = greatest(w.newest, excluded.newest),
				oldest = least(w.oldest, excluded.oldest),
				list_newest = greatest(w.list_newest, excluded.list_newest),
				list_oldest = least(w.list_oldest, excluded.list_oldest)`,
			c.account, c.week, f.slot, c.Records, c.Bytes,
			c.Orphans.Requests, c.Orphans.Events, c.Orphans.Bytes,
			c.newest, c.oldest, c.last, c.first, c.Spans, c.Orphans.Logs)
	}
}

// add subtracts a changed record as it was, and adds it as it is now.
func (c *weekCount) add(before, now archive.Footprint) {
	c.Change(before, now)
	if now.Listed || now.Bare {
		widen(&c.oldest, &c.newest, schema.Nanos(now.At))
	}
	if now.Listed {
		widen(&c.first, &c.last, schema.Nanos(now.ListedAt))
	}
}

// widen widens a range so that it holds a time.
func widen(from, to **int64, at int64) {
	if *from == nil || at < **from {
		*from = &at
	}
	if *to == nil || at > **to {
		*to = &at
	}
}

// queueStale deletes the summaries of segments in which a record changed, came or went, and the indexes
// of words where a text did.
func (f *folding) queueStale(b *pgx.Batch) {
	for _, name := range f.accountNames() {
		var places, texts []int64
		for _, r := range f.Records {
			if r.Account != name || !r.Changed {
				continue
			}
			// Where it was and where it is now: it may have moved.
			n := len(places)
			for _, f := range []archive.Footprint{r.Before, r.After} {
				if f.Listed {
					places = append(places, schema.Nanos(f.ListedAt))
				}
			}
			same := r.Before.Listed && r.After.Listed && r.Before.ListedAt.Equal(r.After.ListedAt)
			if !same || r.Before.TextHash != r.After.TextHash {
				texts = append(texts, places[n:]...)
			}
		}

		places, texts = distinct(places), distinct(texts)
		// newest >= the lowest place lets the index skip all segments below it.
		least := 0
		if f.Fills {
			least = query.SummaryForm
		}
		remove := func(table, segments string, places []int64) {
			if len(places) > 0 {
				b.Queue(`
					DELETE FROM `+table+` WHERE account_id = $1 AND newest = ANY(ARRAY(
						SELECT newest FROM `+segments+`
						WHERE account_id = $1 AND newest >= $2 AND form >= $4 AND EXISTS (
							SELECT 1 FROM unnest($3::bigint[]) place WHERE place BETWEEN bottom AND newest)))`,
					name, places[0], places, least)
			}
		}
		remove("summaries", "summaries", places)
		remove("text_pages", "text_units", texts)
		remove("text_units", "text_units", texts)
	}
}

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
	going    []bodyPlace  // where bodies are deleted or replaced
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
		for _, event := range r.State.Kept() {
			c.going = append(c.going, bodyPlace{r.ID, event})
		}
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
		UPDATE record_bodies b SET body = u.body, dependants = NULL
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
