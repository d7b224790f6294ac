package postgres

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/postgres/connection"
)

// summarizing bounds the summaries.
//
// Only rows at rest are summarized: scores and metadata often arrive soon after a request,
// and would remove the summary again. The rest is short, because rows without a summary are
// counted one by one.
type summarizing struct {
	rows  int           // of a stretch
	tops  int           // of these, for each order of lists; see query.Tops
	step  int           // stretches whose tops are in memory at a time, of about 4 KiB each
	least int           // rows that are worth a summary, in a gap between two others
	bytes int           // of a stretch's rows; heavier stretches get an empty summary
	rest  time.Duration // since the list time of a row
}

var summarizingDefault = summarizing{
	rows:  4096,
	tops:  8,
	step:  256,
	least: 256,
	bytes: 16 << 20,
	rest:  2 * time.Minute,
}

// stretch is a part of a list that has a summary: its columns in the table summaries.
//
// newest and oldest are the list times of its first and last row. The stretch reaches down
// to bottom, which may be below oldest: a row that comes between the two makes it stale.
type stretch struct{ newest, oldest, bottom int64 }

// Summarize makes the missing summaries that statistics can use, for every account.
//
// Answers do not depend on summaries, so it may be stopped at any time, and any number of
// servers may run it.
func (db *DB) Summarize(ctx context.Context) error {
	accounts, err := connection.QueryRows(ctx, db.pool, func(a *string) []any { return []any{a} }, `
		SELECT w.account_id
		FROM (SELECT account_id, sum(records) AS records FROM account_weeks GROUP BY account_id) w
		LEFT JOIN (SELECT account_id, sum(row_count) AS row_count FROM summaries GROUP BY account_id) s
			ON s.account_id = w.account_id
		WHERE w.records - coalesce(s.row_count, 0) >= $1
		ORDER BY w.account_id`, db.summarizing.least)
	// The statement finds accounts with enough rows that no summary covers.
	for _, account := range accounts {
		if err == nil {
			err = db.summarizeAccount(ctx, account)
		}
	}

	return err
}

// lockDecided takes the account's lock, so that rows can be read for a summary. It is not ok if
// a write is undecided.
func (db *DB) lockDecided(ctx context.Context, tx pgx.Tx, account string) (ok bool, err error) {
	// Exclusively: a write between our reading the rows and our commit would find no summary to
	// remove, and leave a wrong one behind.
	_, err = tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, accountLock(account))
	if err != nil || !db.spread {
		return err == nil, err
	}

	// Behind the lock no write is on its way, but one may have been cut off in its commit: it
	// would become visible later, beside a summary that lacks it.
	return decided(ctx, tx)
}

// summarizeAccount fills the gaps between an account's summaries, newest first.
func (db *DB) summarizeAccount(ctx context.Context, account string) error {
	known, err := connection.QueryRows(ctx, db.pool,
		func(s *stretch) []any { return []any{&s.newest, &s.oldest, &s.bottom} },
		`SELECT newest, oldest, bottom FROM summaries WHERE account_id = $1 ORDER BY newest DESC`, account)

	// The gap at the head of the list still grows, so it waits until it has a full stretch.
	top, head := nanosOf(db.now().Add(-db.summarizing.rest)), true
	for _, s := range append(known, stretch{newest: nanosLeast - 1}) {
		least := db.summarizing.least
		if head {
			least = db.summarizing.rows
		}

		made := true
		for bottom := s.newest + 1; err == nil && made && bottom <= top; {
			made, bottom, err = db.summarizeNext(ctx, account, bottom, top, least)
		}
		top, head = s.bottom-1, false
	}

	return err
}

// summarizeNext summarizes the oldest rows between two order times, both included, if there
// are at least least of them. next is where the rows above them begin.
func (db *DB) summarizeNext(
	ctx context.Context, account string, bottom, top int64, least int,
) (made bool, next int64, err error) {
	err = db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		made = false
		newest, n, err := endOfStretch(ctx, tx, account, bottom, top, db.summarizing.rows)
		if err != nil || n < least {
			return err
		}

		if ok, err := db.lockDecided(ctx, tx, account); err != nil || !ok {
			return err
		}

		// Another server may have made one while we waited: no row may be counted twice.
		others := 0
		if err := tx.QueryRow(ctx, `
			SELECT count(*) FROM summaries
			WHERE account_id = $1 AND newest >= $2 AND bottom <= $3`,
			account, bottom, newest).Scan(&others); err != nil || others > 0 {
			return err
		}

		rows, heavy, err := db.rowsBetween(ctx, tx, account, bottom, newest)
		if err != nil || len(rows) == 0 {
			return err
		}
		// Empty for heavy rows: the stretch is known, and is not tried again and again.
		summary, tops := []byte{}, []byte{}
		if !heavy {
			row := func(i int) *wire.Row { return &rows[i] }
			summary = append(summary, query.Summarize(len(rows), row)...)
			tops = query.Tops(db.summarizing.tops, len(rows), row)
		}

		made, next = true, newest+1
		_, err = tx.Exec(ctx, `
			INSERT INTO summaries (account_id, newest, oldest, bottom, row_count, summary, tops)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			account, newest, nanosOf(rows[len(rows)-1].ListTime), bottom, len(rows), summary, tops)
		return err
	})

	return made, next, err
}

// endOfStretch returns the order time of the last of up to limit rows, from the oldest on,
// and how many there are.
func endOfStretch(
	ctx context.Context, tx pgx.Tx, account string, bottom, top int64, limit int,
) (newest int64, n int, err error) {
	weeks, err := weekSpans(ctx, tx, account)
	if err != nil {
		return 0, 0, err
	}
	// All at once, because the walk is from the old end.
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

// Sum passes every row that matches to sums, by itself or in a summary; see archive.Store.
func (db *DB) Sum(ctx context.Context, account string, q query.Query, want rowcode.Columns, sums query.Sums) error {
	key, err := accountKey(account)
	if err != nil {
		return err
	}

	// Once sums has counted a row, the transaction must not run again: it would count twice.
	var final error
	err = db.pool.Search(ctx, func(tx pgx.Tx) error {
		// One snapshot for rows and summaries: a change removes the summary with the same commit.
		u := summing{db: db, tx: tx, sums: sums}
		if u.scan, err = db.newScan(ctx, tx, key, &q); err != nil {
			return err
		}

		u.scan.visit = func(fill query.Fill) (bool, error) {
			row, err := fill(want)
			if err == nil {
				u.begun = true
				err = sums.Add(row)
			}
			return err == nil, err
		}
		if err := u.run(ctx); err != nil {
			if !u.begun {
				return err
			}
			final = err
			return errEnd
		}
		return nil
	})
	if final != nil {
		return asFailure(ctx, final)
	}

	return err
}

// asFailure turns an error of the database into a wire error and returns others unchanged.
func asFailure(ctx context.Context, err error) error {
	if connection.SQLState(err) != "" || connection.Away(err) {
		return connection.Failure(ctx, err)
	}
	return err
}

// summing walks down a list: over rows, and over summaries where every row of a stretch
// counts.
type summing struct {
	db    *DB
	tx    pgx.Tx
	scan  *scan
	sums  query.Sums
	begun bool // sums has counted something
}

// summariesStep is how many summaries are in memory at a time, of at most 256 KiB each.
const summariesStep = 32

func (u *summing) run(ctx context.Context) error {
	oldest, newest := u.scan.oldest, u.scan.newest
	if err := u.reach(ctx, oldest, newest); err != nil {
		return err
	}

	// From the top down, in turns: rows that no summary has, then a stretch that one has.
	for top := newest; ; {
		part, err := u.summaries(ctx, oldest, top)
		if err != nil {
			return err
		}

		for _, s := range part {
			// The rows above the stretch have no summary.
			if err := u.rows(ctx, s.newest+1, top); err != nil {
				return err
			}

			merged := false
			if len(s.summary) > 0 {
				u.begun = true
				if merged, err = u.sums.Merge(s.summary, true); errors.Is(err, query.ErrSummary) {
					err = damaged("a summary", err)
				}
			}
			// An empty summary, or one that cannot answer this: read its rows.
			if err == nil && !merged {
				err = u.rows(ctx, s.oldest, s.newest)
			}
			if err != nil {
				return err
			}
			// Between bottom and the oldest row there is none, so the walk skips that.
			top = s.bottom - 1
		}

		if len(part) < summariesStep {
			return u.rows(ctx, oldest, top)
		}
	}
}

// rows counts the rows between two order times, both included.
func (u *summing) rows(ctx context.Context, oldest, newest int64) error {
	if oldest > newest {
		return nil
	}

	u.scan.oldest, u.scan.newest = oldest, newest
	return u.scan.run(ctx, math.MaxInt)
}

// reach tells sums how far back the summaries go, so that the length of its buckets is
// known from the start.
func (u *summing) reach(ctx context.Context, from, to int64) error {
	var oldest *int64
	err := u.tx.QueryRow(ctx, `
		SELECT min(oldest) FROM summaries
		WHERE account_id = $1 AND oldest >= $2 AND newest <= $3`,
		u.scan.account, from, to).Scan(&oldest)
	// The transaction may not be repeated from here on: sums has been told something.
	if err == nil && oldest != nil {
		u.begun = true
		u.sums.Reach(time.Unix(0, *oldest).UTC())
	}

	return err
}

type storedSummary struct {
	stretch
	summary []byte
}

// summaries reads the next summaries whose rows all lie between two order times.
func (u *summing) summaries(ctx context.Context, from, to int64) ([]storedSummary, error) {
	rows, err := u.tx.Query(ctx, `
		SELECT newest, oldest, bottom, summary FROM summaries
		WHERE account_id = $1 AND newest <= $2 AND oldest >= $3
		ORDER BY newest DESC LIMIT $4`,
		u.scan.account, to, from, summariesStep)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s storedSummary, err error) {
		err = row.Scan(&s.newest, &s.oldest, &s.bottom, &s.summary)
		return s, err
	})
}
