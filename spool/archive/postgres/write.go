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
)

// slotsOf is among how many servers the counts of an account are spread: two that meet in one slot wait for each other's commits.
const slotsOf = 32

// write writes what has changed, and finds out whether others changed the same meanwhile: then it fails with errConflict. First what there
// was is changed, then what is new is added, each in the order of the ids: so writers never wait for each other in a circle.
func (f *folding) write(ctx context.Context, tx pgx.Tx) error {
	b := &pgx.Batch{}
	var states, deltas, lines, bodies [][]any
	for _, r := range f.order {
		if !r.changed {
			continue
		}
		if r.removed {
			f.queueRemoval(b, r)
			continue
		}
		packed, after, err := f.db.codec.packState(&r.state)
		if err != nil {
			return err
		}
		switch {
		case r.revision == 0:
			states = append(states, []any{r.account, r.id, r.ts, int64(1), r.state.Orphan(), packed})
		case after > 0:
			queueOne(b, `UPDATE record_states SET revision = revision + 1, orphan = $5 WHERE account_id = $1 AND request_id = $2 AND ts = $3 AND revision = $4`,
				r.account, r.id, r.ts, r.revision, r.state.Orphan())
			deltas = append(deltas, []any{r.account, r.id, r.ts, after, packed})
		default:
			queueOne(b, `UPDATE record_states SET revision = revision + 1, orphan = $5, state = $6 WHERE account_id = $1 AND request_id = $2 AND ts = $3 AND revision = $4`,
				r.account, r.id, r.ts, r.revision, r.state.Orphan(), packed)
			queueDropDeltas(b, r)
		}
		if header := f.header(r); header != nil && r.listed && r.at == nanosOf(r.state.Request.At) {
			queueOne(b, updateHeader, header...)
		} else if header != nil {
			f.queueUnlist(b, r)
			lines = append(lines, header)
		}
		for _, body := range r.bodies {
			bodies = append(bodies, []any{r.account, r.id, r.ts, body.event, body.body})
		}
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	for _, c := range []struct {
		table   string
		columns []string
		rows    [][]any
	}{{"record_states", stateColumns, states}, {"record_deltas", deltaColumns, deltas}, {"records", headerColumns, lines}, {"record_bodies", bodyColumns, bodies}} {
		if err := insert(ctx, tx, c.table, c.columns, c.rows); err != nil {
			return err
		}
	}
	b = &pgx.Batch{}
	f.queueCounts(b)
	f.queueStale(b)
	return tx.SendBatch(ctx, b).Close()
}

var (
	stateColumns = []string{"account_id", "request_id", "ts", "revision", "orphan", "state"}
	deltaColumns = []string{"account_id", "request_id", "ts", "after", "delta"}
	bodyColumns  = []string{"account_id", "request_id", "ts", "event_id", "body"}
)

// insert adds rows by COPY, the fastest way there is. A row that another server has added meanwhile is a conflict.
func insert(ctx context.Context, tx pgx.Tx, table string, columns []string, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromRows(rows))
	if isDuplicate(err) {
		return fmt.Errorf("%w: %w", errConflict, err)
	}
	return err
}

// queueOne queues a statement that must change one row: if it is not there any more as it was read, another was faster.
func queueOne(b *pgx.Batch, sql string, args ...any) {
	b.Queue(sql, args...).Exec(func(tag commandTag) error {
		if tag.RowsAffected() != 1 {
			return errConflict
		}
		return nil
	})
}

const insertTombstone = `INSERT INTO tombstones (account_id, request_id, deleted_at, unseen) VALUES ($1, $2, $3, $4) ON CONFLICT (account_id, request_id) DO NOTHING`

func (f *folding) queueRemoval(b *pgx.Batch, r *record) {
	if r.revision > 0 {
		queueOne(b, `DELETE FROM record_states WHERE account_id = $1 AND request_id = $2 AND ts = $3 AND revision = $4`, r.account, r.id, r.ts, r.revision)
		queueDropDeltas(b, r)
		f.queueUnlist(b, r)
		b.Queue(`DELETE FROM record_bodies WHERE account_id = $1 AND request_id = $2 AND ts = $3`, r.account, r.id, r.ts)
	}
	if r.buried {
		b.Queue(insertTombstone, r.account, r.id, f.db.now().UTC(), len(r.state.History) == 0)
	}
}

// queueDropDeltas removes what is stored beside a record's state, which was read.
func queueDropDeltas(b *pgx.Batch, r *record) {
	if len(r.state.Deltas()) > 0 {
		b.Queue(`DELETE FROM record_deltas WHERE account_id = $1 AND request_id = $2 AND ts = $3`, r.account, r.id, r.ts)
	}
}

// queueUnlist takes the header away that the record had.
func (f *folding) queueUnlist(b *pgx.Batch, r *record) {
	if r.listed {
		queueOne(b, `DELETE FROM records WHERE account_id = $1 AND at = $2 AND request_id = $3 AND ts = $4`, r.account, r.at, r.id, r.ts)
	}
}

// weekCount is what a group adds to what an account has in a week.
type weekCount struct {
	account        string
	week           time.Time
	records, bytes int64
	orphans        archive.Orphans
	newest, oldest *int64
}

// queueCounts adds to the counts of accounts.
func (f *folding) queueCounts(b *pgx.Batch) {
	var counts []*weekCount
	for _, p := range f.parts() {
		c := weekCount{account: p.account, week: p.week}
		for _, r := range p.records {
			if r.changed {
				c.add(r)
			}
		}
		if c != (weekCount{account: p.account, week: p.week}) {
			counts = append(counts, &c)
		}
	}
	slices.SortFunc(counts, func(a, b *weekCount) int {
		return cmp.Or(strings.Compare(a.account, b.account), a.week.Compare(b.week))
	})
	for _, c := range counts {
		b.Queue(`INSERT INTO account_weeks AS w (account_id, week, slot, records, bytes, orphans, orphan_events, orphan_bytes, newest, oldest)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (account_id, week, slot) DO UPDATE SET
			records = w.records + excluded.records, bytes = w.bytes + excluded.bytes, orphans = w.orphans + excluded.orphans,
			orphan_events = w.orphan_events + excluded.orphan_events, orphan_bytes = w.orphan_bytes + excluded.orphan_bytes,
			newest = greatest(w.newest, excluded.newest), oldest = least(w.oldest, excluded.oldest)`,
			c.account, c.week, f.slot, c.records, c.bytes, c.orphans.Requests, c.orphans.Events, c.orphans.Bytes, c.newest, c.oldest)
	}
}

// add counts a record that has changed.
func (c *weekCount) add(r *record) {
	c.bytes -= r.bytes
	c.orphans.Add(archive.Orphans{}.Minus(r.waiting))
	if r.listed {
		c.records--
	}
	if r.removed {
		return
	}
	c.bytes += int64(r.state.Bytes())
	c.orphans.Add(r.state.Waiting())
	if r.state.Orphan() {
		return
	}
	c.records++
	at := nanosOf(r.state.Request.At)
	if c.newest == nil || at > *c.newest {
		c.newest = &at
	}
	if c.oldest == nil || at < *c.oldest {
		c.oldest = &at
	}
}

// queueStale removes the summaries of stretches in which something has changed.
func (f *folding) queueStale(b *pgx.Batch) {
	for _, name := range f.accountNames() {
		var places []int64
		for _, r := range f.order {
			if r.account != name || !r.changed {
				continue
			}
			if r.listed {
				places = append(places, r.at)
			}
			if !r.removed && !r.state.Orphan() {
				places = append(places, nanosOf(r.state.Request.At))
			}
		}
		if places = distinct(places); len(places) > 0 {
			b.Queue(`DELETE FROM summaries WHERE account_id = $1 AND newest >= $2 AND EXISTS (SELECT 1 FROM unnest($3::bigint[]) place WHERE place BETWEEN bottom AND newest)`,
				name, places[0], places)
		}
	}
}
