package postgres

import (
	"context"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/api/words"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/postgres/connection"
	"promptspool/spool/database/postgres/schema"
)

// summarizing bounds the summaries.
//
// Only rows at rest are summarized: scores and metadata often arrive soon after a request,
// and would remove the summary again. The rest is short, because rows without a summary are
// counted one by one.
type summarizing struct {
	rows    int           // of a segment
	topRows int           // of these, for each order of lists; see query.Tops
	step    int           // segments whose top rows are in memory at a time, of about 4 KiB each
	least   int           // rows that are worth a summary, in a gap between two others
	bytes   int           // of a segment's rows; heavier segments get an empty summary
	rest    time.Duration // since the list time of a row
}

var summarizingDefault = summarizing{
	rows:    4096,
	topRows: 8,
	step:    256,
	least:   256,
	bytes:   16 << 20,
	rest:    2 * time.Minute,
}

// forms are the forms of the segments that are made now, by table: see schema.sql. One of another
// form is made again. Until then its summary is used as it is, and its index of words is not.
var forms = map[string]int{"summaries": query.SummaryForm, "text_units": words.Folding}

// segment is a part of a list that has a summary: its columns in the table summaries.
//
// newest and oldest are the list times of its first and last row. The segment reaches down
// to bottom, which may be below oldest: a row that comes between the two makes it stale.
type segment struct{ newest, oldest, bottom int64 }

// Summarize makes the missing summaries that statistics can use, for every account.
//
// Answers do not depend on summaries, so it may be stopped at any time, and any number of
// servers may run it.
func (db *DB) Summarize(ctx context.Context) error {
	return db.fill(ctx, "summaries", db.summarizing.rows, db.summarizeNext)
}

// filler makes the segment of the oldest rows between two order times, both included, if there are at
// least least of them. next is where the rows above them begin.
type filler func(ctx context.Context, account string, bottom, top int64, least int) (made bool, next int64, err error)

// fill makes what is missing of a table of segments, for every account. The gap at the head of the list
// still grows, so it waits until it has as many rows as head.
func (db *DB) fill(ctx context.Context, table string, head int, makeNext filler) error {
	accounts, err := connection.QueryRows(ctx, db.pool, pgx.RowTo[string], `
		SELECT w.account_id
		FROM (SELECT account_id, sum(records) AS records FROM account_weeks GROUP BY account_id) w
		LEFT JOIN (
			SELECT account_id, sum(row_count) AS row_count FROM `+table+` WHERE form = $2 GROUP BY account_id
		) s ON s.account_id = w.account_id
		WHERE w.records - coalesce(s.row_count, 0) >= $1
		ORDER BY w.account_id`, db.summarizing.least, forms[table])
	// The statement finds accounts with enough rows that no segment covers.
	for _, account := range accounts {
		if err == nil {
			err = db.fillAccount(ctx, account, table, head, makeNext)
		}
	}

	return err
}

// lockGap takes the account's lock, so that rows can be read for a segment of a table, and removes
// segments of other forms that it meets. It is not ok if a write is undecided, or if there is a
// segment by now.
func (db *DB) lockGap(
	ctx context.Context, tx pgx.Tx, table, account string, bottom, newest int64,
) (ok bool, err error) {
	// Exclusively: a write between our reading the rows and our commit would find no
	// summary to remove, and a wrong one would remain.
	_, err = tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, accountLock(account))
	if err != nil {
		return false, err
	}

	// Behind the lock no write is on its way, but one may have been cut off in its commit: it
	// would become visible later, and be missing in the summary.
	if db.spread {
		if ok, err := decided(ctx, tx); err != nil || !ok {
			return false, err
		}
	}

	// Another server may have made one while we waited: no row may be counted twice.
	err = tx.QueryRow(ctx, `
		SELECT count(*) = 0 FROM `+table+` WHERE account_id = $1 AND newest >= $2 AND bottom <= $3 AND form = $4`,
		account, bottom, newest, forms[table]).Scan(&ok)
	if err != nil || !ok {
		return false, err
	}

	segments := []string{table}
	if table == "text_units" {
		segments = []string{"text_pages", table}
	}
	for _, of := range segments {
		if _, err := tx.Exec(ctx, `
			DELETE FROM `+of+` WHERE account_id = $1 AND newest = ANY(ARRAY(
				SELECT newest FROM `+table+` WHERE account_id = $1 AND newest >= $2 AND bottom <= $3))`,
			account, bottom, newest); err != nil {
			return false, err
		}
	}

	return true, nil
}

// fillAccount fills the gaps between an account's segments, newest first.
func (db *DB) fillAccount(ctx context.Context, account, table string, head int, makeNext filler) error {
	known, err := connection.QueryRows(ctx, db.pool,
		func(row pgx.CollectableRow) (s segment, err error) {
			err = row.Scan(&s.newest, &s.bottom)
			return s, err
		},
		`SELECT newest, bottom FROM `+table+` WHERE account_id = $1 AND form = $2 ORDER BY newest DESC`,
		account, forms[table])

	top, least := schema.Nanos(db.now().Add(-db.summarizing.rest)), head
	for _, s := range append(known, segment{newest: nanosLeast - 1}) {
		made := true
		for bottom := s.newest + 1; err == nil && made && bottom <= top; {
			made, bottom, err = makeNext(ctx, account, bottom, top, least)
		}
		top, least = s.bottom-1, db.summarizing.least
	}

	return err
}

// summarizeNext is the filler of summaries.
func (db *DB) summarizeNext(
	ctx context.Context, account string, bottom, top int64, least int,
) (made bool, next int64, err error) {
	err = db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		made = false
		newest, n, err := endOfSegment(ctx, tx, account, bottom, top, db.summarizing.rows)
		if err != nil || n < least {
			return err
		}

		if ok, err := db.lockGap(ctx, tx, "summaries", account, bottom, newest); err != nil || !ok {
			return err
		}

		rows, heavy, err := db.rowsBetween(ctx, tx, account, bottom, newest)
		if err != nil || len(rows) == 0 {
			return err
		}
		// Empty for heavy rows: the segment is known, and is not tried again and again.
		summary, topRows := []byte{}, []byte{}
		if !heavy {
			row := func(i int) *wire.Row { return &rows[i] }
			summary = append(summary, query.Summarize(len(rows), row)...)
			topRows = query.Tops(db.summarizing.topRows, len(rows), row)
		}

		made, next = true, newest+1
		_, err = tx.Exec(ctx, `
			INSERT INTO summaries (account_id, newest, oldest, bottom, row_count, summary, top_rows, form)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
			account, newest, schema.Nanos(rows[len(rows)-1].ListTime), bottom, len(rows), summary, topRows,
			forms["summaries"])
		return err
	})

	return made, next, err
}

// endOfSegment returns the order time of the last of up to limit rows, from the oldest on,
// and how many there are.
func endOfSegment(
	ctx context.Context, tx pgx.Tx, account string, bottom, top int64, limit int,
) (newest int64, n int, err error) {
	weeks, err := weekSpans(ctx, tx, account)
	if err != nil {
		return 0, 0, err
	}
	// In one step, because the walk is from the old end.
	var all []window
	for w := range windows(weeks, bottom, top) {
		all = append(all, w)
	}

	for i := len(all) - 1; i >= 0 && n < limit; i-- { // windows come newest first
		w, found := all[i], 0
		var last *int64
		err := tx.QueryRow(ctx, `
			SELECT max(at), count(*) FROM (
				SELECT at FROM records
				WHERE account_id = $1 AND ts >= $2 AND ts < $3 AND at >= $4 AND at <= $5
				ORDER BY at LIMIT $6) oldest`,
			pgx.QueryExecModeCacheDescribe,
			account, w.from, w.to, w.oldest, w.newest, limit-n).Scan(&last, &found)
		if err != nil {
			return 0, 0, err
		}

		// max of no rows is NULL.
		if n += found; last != nil {
			newest = *last
		}
	}

	return newest, n, nil
}

// rowsBetween reads all rows between two order times, newest first. If they are too heavy
// to be held in memory, it keeps only their times and reports heavy.
func (db *DB) rowsBetween(
	ctx context.Context, tx pgx.Tx, account string, oldest, newest int64,
) (rows []wire.Row, heavy bool, err error) {
	s, err := db.newScan(ctx, tx, account, &query.Query{})
	if err != nil {
		return nil, false, err
	}
	s.oldest, s.newest = oldest, newest

	bytes := 0
	s.visit = func(fill query.Fill) (bool, error) {
		want := rowcode.AllColumns
		if heavy {
			want = rowcode.PlaceColumns
		}
		row, err := fill(want)
		if err != nil {
			return false, err
		}

		rows = append(rows, *row)
		bytes += rowcode.Weight(row)
		if !heavy && bytes > db.summarizing.bytes {
			heavy = true
			// Their number and their ends are still needed, and weigh little.
			for i := range rows {
				rows[i] = wire.Row{ListTime: rows[i].ListTime}
			}
		}
		return true, nil
	}
	err = s.run(ctx, math.MaxInt)

	return rows, heavy, err
}
