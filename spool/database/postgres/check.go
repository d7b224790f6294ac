package postgres

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/api/words"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rollup"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/archive/textindex"
	"promptspool/spool/database/compress"
	"promptspool/spool/database/postgres/filter"
	"promptspool/spool/database/postgres/schema"
	"promptspool/spool/database/repack"
)

// checkStep is how many records Check reads together.
const checkStep = 100

// Check verifies that the tables agree with each other. It returns the first fault.
//
// Every record whose request has arrived must have the header that folding it gives, and no
// other header may exist; every body in a history must be stored unchanged, and no other; the
// counts of each account, its sessions, traces and users, and each summary must be right, each index
// must have the words of its rows, and templates belong together.
//
// Check reads everything once, as of one moment: VACUUM waits for as long.
func (db *DB) Check(ctx context.Context) error {
	if err := db.Store.Check(ctx); err != nil {
		return err
	}

	filled, err := db.Filled(ctx)
	if err != nil {
		return err
	}

	return db.pool.View(ctx, func(tx pgx.Tx) error {
		c := checker{
			db:      db,
			filled:  filled,
			counts:  make(map[accountWeek]*weekCount),
			rollups: make(map[string]*rollup.Proof),
		}
		for _, check := range []func(context.Context, pgx.Tx) error{
			c.checkRecords, c.checkTotals, c.checkCounts, c.checkRollups, c.checkSummaries, c.checkTexts,
		} {
			if err := check(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// checker adds up what it has seen.
type checker struct {
	db     *DB
	filled rowcode.Column // see accounts.Store.Filled

	headers, bodies, deltas int64
	counts                  map[accountWeek]*weekCount
	rollups                 map[string]*rollup.Proof // by account, of the records
	index                   textindex.Builder
}

type accountWeek struct {
	account string
	week    time.Time
}

// checked is a row of record_states.
type checked struct {
	account string
	id      uuid
	ts      time.Time
	state   archive.Stored
	found   archive.Footprint

	// Columns that are copies of what the state says.
	orphan bool
	trace  *uuid
	spanAt *int64
}

// checkRecords checks all records, account by account: where the tables are spread, each shard would
// send so many rows.
func (c *checker) checkRecords(ctx context.Context, tx pgx.Tx) error {
	rows, _ := tx.Query(ctx, `SELECT DISTINCT account_id FROM record_states`)
	accounts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}

	for _, account := range accounts {
		for after, more := (uuid{}), true; more; {
			page, err := c.page(ctx, tx, account, after)
			if err == nil {
				err = c.checkPage(ctx, tx, account, page)
			}
			if err != nil {
				return err
			}
			more = len(page) == checkStep
			if more {
				after = page[len(page)-1].id
			}
		}
	}

	return nil
}

// page reads the next records of an account, in the order of the primary key.
func (c *checker) page(ctx context.Context, tx pgx.Tx, account string, after uuid) ([]checked, error) {
	rows, _ := tx.Query(ctx, `
		SELECT account_id, request_id, ts, orphan, state, trace, span_at FROM record_states
		WHERE account_id = $1 AND request_id > $2 ORDER BY request_id LIMIT $3`, account, after, checkStep)
	// To the end first: what a record needs besides is asked on the same connection.
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r checked, err error) {
		var packed []byte
		err = row.Scan(&r.account, &r.id, &r.ts, &r.orphan, &packed, &r.trace, &r.spanAt)
		if err == nil {
			r.state, err = c.db.codec.unpackState(packed, r.id)
		}
		return r, err
	})
}

// checkPage checks some records of an account, and counts them.
func (c *checker) checkPage(ctx context.Context, tx pgx.Tx, account string, page []checked) error {
	for i := range page {
		r := &page[i]
		if err := c.db.codec.joinDeltas(ctx, tx, account, r.id, &r.state); err != nil {
			return err
		}
		r.found = r.state.Footprint()
		// These columns are copies of what the state says, and statements rely on them.
		orphan, trace, spanAt := columnsOf(r.found)
		if !equal(r.trace, trace) || !equal(r.spanAt, spanAt) || r.orphan != orphan ||
			r.state.RequestID != r.id.String() || !r.ts.Equal(r.id.Time()) {
			return fmt.Errorf("record %s: its state does not belong to its row", r.id)
		}
		c.count(r)
	}
	if err := c.checkSets(ctx, tx, account, page); err != nil {
		return err
	}

	for len(page) > 0 {
		n := fitting(len(page), checkBytesMax, func(i int) int { return page[i].state.Bytes() })
		if err := c.checkPart(ctx, tx, page[:n]); err != nil {
			return err
		}
		page = page[n:]
	}

	return nil
}

// checkSets proves that records of an account are in the sets in which they must be.
func (c *checker) checkSets(ctx context.Context, tx pgx.Tx, account string, page []checked) error {
	if !archive.Settled(c.filled) {
		return nil
	}
	var keys []uuid
	for i := range page {
		keys = append(keys, page[i].state.Keys()...)
	}
	sets := make(map[uuid]archive.Set)
	rows, _ := tx.Query(ctx, `SELECT call, members FROM record_calls WHERE account_id = $1 AND call = ANY($2)`,
		account, keys)
	var key uuid
	var members []byte
	_, err := pgx.ForEachRow(rows, []any{&key, &members}, func() error {
		sets[key] = archive.DecodeSet(members)
		return nil
	})
	for i := range page {
		for _, key := range page[i].state.Keys() {
			if set := sets[key]; err == nil && set.Lacks(key, &page[i].state.State) {
				err = fmt.Errorf("record %s: it is not in the set of %s", page[i].id, key)
			}
		}
	}

	return err
}

// count counts a record, and what it has in other tables.
func (c *checker) count(r *checked) {
	c.deltas += int64(len(r.state.Deltas()))
	if r.state.Listed() {
		c.headers++
	}
	c.bodies += int64(len(r.state.Kept()))

	// As a writer would have counted it.
	key := accountWeek{r.account, schema.WeekOf(r.ts)}
	if c.counts[key] == nil {
		c.counts[key] = &weekCount{}
	}
	c.counts[key].add(archive.Footprint{}, r.found)
	if c.rollups[r.account] == nil {
		c.rollups[r.account] = &rollup.Proof{}
	}
	c.rollups[r.account].AddPart(&r.found.Rollups)
}

// checkBytesMax bounds the bodies that Check holds in memory; one record may have more.
const checkBytesMax = 8 << 20

// storedHeader is what Check compares of a header.
type storedHeader struct {
	at    int64
	line  []byte
	terms []int64
}

// checkPart checks the bodies and headers of some records of an account, which it reads by one
// statement each.
func (c *checker) checkPart(ctx context.Context, tx pgx.Tx, part []checked) error {
	ids, places := make([]uuid, len(part)), make([]int64, 0, len(part))
	for i := range part {
		ids[i] = part[i].id
		if part[i].state.Listed() {
			places = append(places, schema.Nanos(part[i].state.ListTime()))
		}
	}

	times := timesOf(ids)
	bodies, bases, err := readBodies(ctx, tx, part[0].account, selectBodiesOfMany, part[0].account, ids, times)
	if err != nil {
		return err
	}
	rows, _ := tx.Query(ctx, `
		SELECT request_id, at, line, terms FROM records
		WHERE account_id = $1 AND at = ANY($2) AND request_id = ANY($3) AND ts = ANY($4)`,
		part[0].account, places, ids, times)
	headers := make(map[uuid]storedHeader, len(part))
	var id uuid
	var h storedHeader
	_, err = pgx.ForEachRow(rows, []any{&id, &h.at, &h.line, &h.terms}, func() error {
		headers[id] = h
		// The next row must not overwrite its slices.
		h = storedHeader{}
		return nil
	})
	if err != nil {
		return err
	}

	if err := checkBases(ctx, tx, part[0].account, bodies); err != nil {
		return err
	}
	for i := range part {
		r := &part[i]
		// Each body in the history must be there, unchanged.
		if _, err := c.db.codec.unpackBodies(&r.state.State, bodies[r.id], bases, false); err != nil {
			return err
		}
		header, found := headers[r.id]
		if err := c.checkHeader(r, header, found); err != nil {
			return err
		}
	}

	return nil
}

// checkBases checks that what bodies are packed against lists them.
func checkBases(ctx context.Context, tx pgx.Tx, account string, bodies keptBodies) error {
	ids := bodies.bases()
	lists, err := readKept(tx.Query(ctx, `
		SELECT request_id, event_id, dependants FROM record_bodies
		WHERE account_id = $1 AND request_id = ANY($2) AND ts = ANY($3)`, account, ids, timesOf(ids)))
	if err != nil {
		return err
	}

	for id, events := range bodies {
		for event, body := range events {
			base, dependent := compress.BaseOf(body)
			if dependent && !repack.Dependants(lists[base.Request][base.Event]).Has(id, event) {
				return fmt.Errorf("record %s: what the body of event %s is packed against does not list it", id, event)
			}
		}
	}

	return nil
}

// checkHeader checks that a record's header is what folding its events gives.
func (c *checker) checkHeader(r *checked, header storedHeader, found bool) error {
	row, ok := r.state.Row()
	if !ok {
		return nil
	}

	if !found || header.at != schema.Nanos(row.ListTime) {
		return fmt.Errorf("record %s: its header does not exist", r.id)
	}
	terms := filter.Terms(r.account, &row, &r.state.State)
	isRow := bytes.Equal(header.line, rowcode.Encode(&row)) ||
		bytes.Equal(header.line, rowcode.EncodeFirst(c.filled, &row)) // of before
	if !isRow || !slices.Equal(header.terms, terms) {
		return fmt.Errorf("record %s: its header is not what folding it gives", r.id)
	}

	return nil
}

// checkTotals checks that no rows exist besides those of the records.
func (c *checker) checkTotals(ctx context.Context, tx pgx.Tx) error {
	var headers, bodies, deltas int64
	if err := tx.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM records),
			(SELECT count(*) FROM record_bodies),
			(SELECT count(*) FROM record_deltas)`).Scan(&headers, &bodies, &deltas); err != nil {
		return err
	}

	// Each one that should exist was found by its key, so equal numbers mean no others.
	if headers != c.headers || bodies != c.bodies || deltas != c.deltas {
		return fmt.Errorf("there are %d headers, %d bodies and %d deltas; there should be %d, %d and %d",
			headers, bodies, deltas, c.headers, c.bodies, c.deltas)
	}

	return nil
}

// checkCounts compares account_weeks with the records.
func (c *checker) checkCounts(ctx context.Context, tx pgx.Tx) error {
	// The sums over all slots: single rows may be negative.
	rows, _ := tx.Query(ctx, `
		SELECT account_id, week, sum(records)::bigint, sum(bytes)::bigint, sum(orphans)::bigint,
			sum(orphan_events)::bigint, sum(orphan_bytes)::bigint, max(newest), min(oldest),
			max(list_newest), min(list_oldest),
			sum(spans)::bigint, sum(logs)::bigint
		FROM account_weeks GROUP BY account_id, week`)
	var account string
	var week time.Time
	var stored weekCount
	targets := []any{
		&account, &week, &stored.Records, &stored.Bytes,
		&stored.Orphans.Requests, &stored.Orphans.Events, &stored.Orphans.Bytes,
		&stored.newest, &stored.oldest, &stored.last, &stored.first, &stored.Spans, &stored.Orphans.Logs,
	}
	_, err := pgx.ForEachRow(rows, targets, func() error {
		key := accountWeek{account, week.UTC()}
		found := c.counts[key]
		delete(c.counts, key)
		if found == nil {
			found = &weekCount{}
		}

		// The stored range may be too wide: a deletion does not narrow it.
		inside := found.newest == nil ||
			stored.newest != nil && *stored.newest >= *found.newest && *stored.oldest <= *found.oldest
		inside = inside && (found.last == nil ||
			stored.last != nil && *stored.last >= *found.last && *stored.first <= *found.first)
		if stored.Counts != found.Counts || !inside {
			return fmt.Errorf("project %q, week of %s: the counts are %+v and should be %+v",
				account, week.Format(time.DateOnly), stored, *found)
		}
		return nil
	})

	// Those that had a row are deleted from counts by now.
	for key := range c.counts {
		if err == nil {
			err = fmt.Errorf("project %q, week of %s: has records but no counts",
				key.account, key.week.Format(time.DateOnly))
		}
	}

	return err
}

// checkSummaries checks that each summary is that of its rows, and that none overlap. One of an earlier
// form may say less.
func (c *checker) checkSummaries(ctx context.Context, tx pgx.Tx) error {
	type summary struct {
		account string
		storedSummary
		topRows []byte
	}
	rows, _ := tx.Query(ctx, `
		SELECT account_id, newest, oldest, bottom, summary, top_rows FROM summaries
		WHERE form = $1 ORDER BY account_id, newest DESC`, query.SummaryForm)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s summary, err error) {
		err = row.Scan(&s.account, &s.newest, &s.oldest, &s.bottom, &s.summary, &s.topRows)
		return s, err
	})
	if err != nil {
		return err
	}

	for i, s := range all {
		if i > 0 && all[i-1].account == s.account && all[i-1].bottom <= s.newest {
			return fmt.Errorf("project %q: the summary up to %d overlaps another", s.account, s.newest)
		}

		// A heavy segment has no summary to compare, but it must have rows.
		rows, heavy, err := c.db.rowsBetween(ctx, tx, s.account, s.bottom, s.newest)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fmt.Errorf("project %q: the summary up to %d has no rows", s.account, s.newest)
		}
		row := func(i int) *wire.Row { return &rows[i] }
		if !heavy && !query.IsSummary(s.summary, len(rows), row) {
			return fmt.Errorf("project %q: the summary up to %d is not that of its rows", s.account, s.newest)
		}
		if !heavy && !query.AreTops(s.topRows, len(rows), row) {
			return fmt.Errorf("project %q: the top rows of the summary up to %d are not those of its rows",
				s.account, s.newest)
		}
	}

	return nil
}

// checkTexts checks that each unit has the rows of its part of the list, and lacks no word of theirs.
func (c *checker) checkTexts(ctx context.Context, tx pgx.Tx) error {
	type textUnit struct {
		account        string
		newest, bottom int64
	}
	rows, _ := tx.Query(ctx, `
		SELECT account_id, newest, bottom FROM text_units WHERE form = $1 ORDER BY account_id, newest DESC`,
		words.Folding)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (u textUnit, err error) {
		err = row.Scan(&u.account, &u.newest, &u.bottom)
		return u, err
	})
	if err != nil {
		return err
	}

	for _, u := range all {
		rows, err := c.db.textsBetween(ctx, tx, u.account, u.bottom, u.newest)
		if err == nil {
			err = c.db.readTexts(ctx, tx, u.account, rows, &c.index)
		}
		var ids []byte
		if err == nil {
			err = tx.QueryRow(ctx, `SELECT ids FROM text_units WHERE account_id = $1 AND newest = $2`,
				u.account, u.newest).Scan(&ids)
		}
		if err != nil {
			return err
		}
		if !bytes.Equal(ids, idsOf(rows)) {
			return fmt.Errorf("project %q: the index of words up to %d is not of its rows", u.account, u.newest)
		}

		var pages [textindex.Pages][]byte
		found, _ := tx.Query(ctx, `SELECT page, words FROM text_pages WHERE account_id = $1 AND newest = $2`,
			u.account, u.newest)
		var number int
		var words []byte
		_, err = pgx.ForEachRow(found, []any{&number, &words}, func() error {
			pages[number], words = words, nil
			return nil
		})
		for n := 0; n < len(pages) && err == nil; n++ {
			row := 0
			row, err = c.index.Lacks(n, pages[n])
			if err == nil && row >= 0 {
				err = fmt.Errorf("project %q: the index of words up to %d lacks a word of record %s",
					u.account, u.newest, rows[row].RequestID)
			}
		}
		if err != nil {
			return err
		}
	}

	return nil
}
