package postgres

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// checkStep is how many records Check looks at in one transaction.
const checkStep = 100

// Check proves that the tables of records agree with each other: every record whose request has come has its header, as folding it
// gives, and no other header exists; every body that a history promises is there, unchanged, and no other is; the counts of each account and
// each summary are right. Its error is the first fault. It reads everything once, in steps; what is written meanwhile may be seen half
// and taken for a fault, so nobody should write.
func (db *DB) Check(ctx context.Context) error {
	c := checker{db: db, counts: make(map[accountWeek]*weekCount)}
	for more := true; more; {
		err := db.view(ctx, func(tx pgx.Tx) (err error) { more, err = c.step(ctx, tx); return err })
		if err != nil {
			return err
		}
	}
	return db.view(ctx, func(tx pgx.Tx) error {
		if err := c.agree(ctx, tx); err != nil {
			return err
		}
		return c.summaries(ctx, tx)
	})
}

// checker adds up what there is.
type checker struct {
	db              *DB
	account         string // of the last record
	id              uuid
	headers, bodies int64
	deltas          int64
	counts          map[accountWeek]*weekCount // by account and week
}

type accountWeek struct {
	account string
	week    time.Time
}

type checked struct {
	record
	orphan bool // as the table says
	packed []byte
}

// step checks some records.
func (c *checker) step(ctx context.Context, tx pgx.Tx) (more bool, err error) {
	rows, err := tx.Query(ctx, `SELECT account_id, request_id, ts, orphan, state FROM record_states WHERE (account_id, request_id) > ($1, $2) ORDER BY account_id, request_id LIMIT $3`,
		c.account, c.id, checkStep)
	if err != nil {
		return false, err
	}
	page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r checked, err error) {
		if err = row.Scan(&r.account, &r.id, &r.ts, &r.orphan, &r.packed); err != nil {
			return r, err
		}
		r.state, err = c.db.codec.unpackState(r.packed, r.id)
		return r, err
	})
	for i := range page {
		if err != nil {
			break
		}
		r := &page[i]
		if err = c.db.codec.joinDeltas(ctx, tx, r.account, r.id, &r.state); err != nil {
			break
		}
		c.deltas += int64(len(r.state.Deltas()))
		if r.orphan != r.state.Orphan() || r.state.RequestID != r.id.String() || !r.ts.Equal(tsOf(r.id)) {
			return false, fmt.Errorf("record %s: its state does not belong there", r.id)
		}
		r.changed, r.week = true, weekOf(r.ts)
		key := accountWeek{r.account, r.week}
		if c.counts[key] == nil {
			c.counts[key] = &weekCount{}
		}
		c.counts[key].add(&r.record)
		err = c.record(ctx, tx, &r.record)
		c.account, c.id = r.account, r.id
	}
	return len(page) == checkStep, err
}

// record checks one record's header and bodies.
func (c *checker) record(ctx context.Context, tx pgx.Tx, r *record) error {
	for _, h := range r.state.History {
		if h.Hash == "" {
			continue
		}
		event, _ := parseUUID(h.ID)
		var packed []byte
		if err := tx.QueryRow(ctx, `SELECT body FROM record_bodies WHERE account_id = $1 AND request_id = $2 AND ts = $3 AND event_id = $4`, r.account, r.id, r.ts, event).Scan(&packed); err != nil {
			return fmt.Errorf("record %s: the body of event %s: %w", r.id, h.ID, err)
		}
		if _, err := c.db.codec.unpackBody(packed, h); err != nil {
			return err
		}
		c.bodies++
	}
	row, ok := r.state.Row()
	if !ok {
		return nil
	}
	c.headers++
	var line []byte
	var terms []int64
	if err := tx.QueryRow(ctx, `SELECT line, terms FROM records WHERE account_id = $1 AND at = $2 AND request_id = $3 AND ts = $4`, r.account, nanosOf(row.AcceptedAt), r.id, r.ts).Scan(&line, &terms); err != nil {
		return fmt.Errorf("record %s: its header: %w", r.id, err)
	}
	found := false
	for _, known := range [][]int64{termsOf(r.account, &row), termsAsStored(r.account, &row)} { // earlier versions left more out
		found = found || slices.Equal(terms, known) || slices.Equal(terms, withHidden(known, r))
	}
	for _, m := range r.state.Had() { // earlier versions made terms of long values themselves
		found = found || rowcode.Shortened(m.Key, m.Value) != m.Value
	}
	var stored wire.Row
	if err := rowcode.Decode(line, rowcode.AllColumns, &stored); err != nil {
		return damaged("the row of record "+r.id.String(), err)
	}
	if !bytes.Equal(rowcode.Encode(&stored), rowcode.Encode(&row)) || !found {
		return fmt.Errorf("record %s: its header is not what folding it gives", r.id)
	}
	return nil
}

// agree compares what there is with what is counted.
func (c *checker) agree(ctx context.Context, tx pgx.Tx) error {
	var headers, bodies, deltas int64
	if err := tx.QueryRow(ctx, `SELECT (SELECT count(*) FROM records), (SELECT count(*) FROM record_bodies), (SELECT count(*) FROM record_deltas)`).
		Scan(&headers, &bodies, &deltas); err != nil {
		return err
	}
	if headers != c.headers || bodies != c.bodies || deltas != c.deltas {
		return fmt.Errorf("there are %d headers, %d bodies and %d deltas where %d, %d and %d should be",
			headers, bodies, deltas, c.headers, c.bodies, c.deltas)
	}
	rows, err := tx.Query(ctx, `SELECT account_id, week, sum(records)::bigint, sum(bytes)::bigint, sum(orphans)::bigint, sum(orphan_events)::bigint, sum(orphan_bytes)::bigint, max(newest), min(oldest)
		FROM account_weeks GROUP BY account_id, week`)
	if err != nil {
		return err
	}
	var account string
	var week time.Time
	var said weekCount
	_, err = pgx.ForEachRow(rows, []any{&account, &week, &said.records, &said.bytes, &said.orphans.Requests, &said.orphans.Events, &said.orphans.Bytes, &said.newest, &said.oldest}, func() error {
		key := accountWeek{account, week.UTC()}
		is := c.counts[key]
		delete(c.counts, key)
		if is == nil {
			is = &weekCount{}
		}
		inside := is.newest == nil || said.newest != nil && *said.newest >= *is.newest && *said.oldest <= *is.oldest
		if said.records != is.records || said.bytes != is.bytes || said.orphans != is.orphans || !inside {
			return fmt.Errorf("account %q, week of %s: the counts say %+v, and there are %+v", account, week.Format(time.DateOnly), said, *is)
		}
		return nil
	})
	for key := range c.counts {
		if err == nil {
			err = fmt.Errorf("account %q, week of %s: nothing is counted", key.account, key.week.Format(time.DateOnly))
		}
	}
	return err
}

// summaries proves that each summary is that of its rows, and that none lies in another.
func (c *checker) summaries(ctx context.Context, tx pgx.Tx) error {
	type stored struct {
		account string
		storedSummary
	}
	rows, err := tx.Query(ctx, `SELECT account_id, newest, oldest, bottom, summary FROM summaries ORDER BY account_id, newest DESC`)
	if err != nil {
		return err
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s stored, err error) {
		err = row.Scan(&s.account, &s.newest, &s.oldest, &s.bottom, &s.summary)
		return s, err
	})
	for i, s := range all {
		if err != nil {
			return err
		}
		if i > 0 && all[i-1].account == s.account && all[i-1].bottom <= s.newest {
			return fmt.Errorf("account %q: the summary up to %d lies in another", s.account, s.newest)
		}
		of, heavy, err := c.db.rowsBetween(ctx, tx, s.account, s.bottom, s.newest)
		if err != nil {
			return err
		}
		if len(of) == 0 {
			return fmt.Errorf("account %q: the summary up to %d is of nothing", s.account, s.newest)
		}
		if !heavy && !query.IsSummary(s.summary, len(of), func(i int) *wire.Row { return &of[i] }) {
			return fmt.Errorf("account %q: the summary up to %d is not that of its rows", s.account, s.newest)
		}
	}
	return err
}
