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
)

// Summaries are made of rows that have come to rest: scores and metadata often come soon after a request, and remove the
// summary. The rest is short, for rows without a summary are counted one by one.
type summarizing struct {
	rows  int           // of a stretch
	least int           // rows that are worth a summary, in a stretch that lies between others
	bytes int           // of its rows; heavier ones have an empty summary
	rest  time.Duration // since a row was accepted
}

var summarizingDefault = summarizing{rows: 4096, least: 256, bytes: 16 << 20, rest: 2 * time.Minute}

// stretch is a part of a list of which there is a summary, newest first; see the table's columns.
type stretch struct{ newest, oldest, bottom int64 }

// Summarize makes the summaries that statistics can use, one stretch of a list after the other, until every account has its own. It
// tells nothing new, so whoever runs it may stop at any time, and any number of servers may run it.
func (db *DB) Summarize(ctx context.Context) error {
	rows, err := list(ctx, db, func(a *string) []any { return []any{a} }, `SELECT w.account_id FROM (SELECT account_id, sum(records) AS records FROM account_weeks GROUP BY account_id) w
		LEFT JOIN (SELECT account_id, sum(row_count) AS row_count FROM summaries GROUP BY account_id) s ON s.account_id = w.account_id
		WHERE w.records - coalesce(s.row_count, 0) >= $1 ORDER BY w.account_id`, db.summarizing.least)
	for _, account := range rows {
		if err == nil {
			err = db.summarizeAccount(ctx, account)
		}
	}
	return err
}

// summarizeAccount fills the gaps between an account's summaries, newest first.
func (db *DB) summarizeAccount(ctx context.Context, account string) error {
	known, err := list(ctx, db, func(s *stretch) []any { return []any{&s.newest, &s.oldest, &s.bottom} },
		`SELECT newest, oldest, bottom FROM summaries WHERE account_id = $1 ORDER BY newest DESC`, account)
	top, head := nanosOf(db.now().Add(-db.summarizing.rest)), true
	for _, s := range append(known, stretch{newest: nanosLeast - 1}) {
		for bottom := s.newest + 1; err == nil && bottom <= top; {
			least := db.summarizing.least
			if head {
				least = db.summarizing.rows
			}
			var made bool
			if made, bottom, err = db.summarizeNext(ctx, account, bottom, top, least); !made {
				break
			}
		}
		top, head = s.bottom-1, false
	}
	return err
}

// summarizeNext makes the summary of the oldest rows between two order times, both included, if there are enough of them, and says where the
// rows behind them begin.
func (db *DB) summarizeNext(ctx context.Context, account string, bottom, top int64, least int) (made bool, next int64, err error) {
	err = db.change(ctx, true, func(tx pgx.Tx) error {
		made = false
		newest, n, err := endOfStretch(ctx, tx, account, bottom, top, db.summarizing.rows)
		if err != nil || n < least {
			return err
		}
		// Nobody writes to the account from here on until the summary is there to be removed.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, accountLock(account)); err != nil {
			return err
		}
		others := 0 // another server may have made one meanwhile, and none may count a row twice
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM summaries WHERE account_id = $1 AND newest >= $2 AND bottom <= $3`, account, bottom, newest).Scan(&others); err != nil || others > 0 {
			return err
		}
		rows, heavy, err := db.rowsBetween(ctx, tx, account, bottom, newest)
		if err != nil || len(rows) == 0 {
			return err
		}
		summary := []byte{}
		if !heavy {
			summary = append(summary, query.Summarize(len(rows), func(i int) *wire.Row { return &rows[i] })...)
		}
		made, next = true, newest+1
		_, err = tx.Exec(ctx, `INSERT INTO summaries (account_id, newest, oldest, bottom, row_count, summary) VALUES ($1, $2, $3, $4, $5, $6)`,
			account, newest, nanosOf(rows[len(rows)-1].AcceptedAt), bottom, len(rows), summary)
		return err
	})
	return made, next, err
}

// endOfStretch is the order time of the last of so many rows, from the oldest on, and how many there are.
func endOfStretch(ctx context.Context, tx pgx.Tx, account string, bottom, top int64, rows int) (newest int64, n int, err error) {
	weeks, err := spans(ctx, tx, account)
	if err != nil {
		return 0, 0, err
	}
	var all []window
	for w := range windows(weeks, bottom, top) {
		all = append(all, w)
	}
	for i := len(all) - 1; i >= 0 && n < rows; i-- {
		w, found := all[i], 0
		var last *int64
		err := tx.QueryRow(ctx, `SELECT max(at), count(*) FROM (SELECT at FROM records WHERE account_id = $1 AND ts >= $2 AND ts < $3 AND at >= $4 AND at <= $5 ORDER BY at LIMIT $6) oldest`,
			pgx.QueryExecModeCacheDescribe, account, w.from, w.to, w.oldest, w.newest, rows-n).Scan(&last, &found)
		if err != nil {
			return 0, 0, err
		}
		if n += found; last != nil {
			newest = *last
		}
	}
	return newest, n, nil
}

// rowsBetween reads all rows between two order times, newest first. Where they are too heavy to be held, it reads their
// times only.
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
			for i := range rows {
				rows[i] = wire.Row{AcceptedAt: rows[i].AcceptedAt}
			}
		}
		return true, nil
	}
	err = s.run(ctx, math.MaxInt)
	return rows, heavy, err
}

// Sum gives sums every row that matches, by itself or in a summary; see archive.Store.
func (db *DB) Sum(ctx context.Context, account string, q query.Query, want rowcode.Columns, sums query.Sums) error {
	key, err := accountKey(account)
	if err != nil {
		return err
	}
	var ended error // of sums: it has counted rows, so nothing may be done again
	err = db.search(ctx, func(tx pgx.Tx) error {
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
			ended = err
			return errEnd
		}
		return nil
	})
	if ended != nil {
		return asFailure(ctx, ended)
	}
	return err
}

// asFailure makes a wire error of a database's; what others say stays.
func asFailure(ctx context.Context, err error) error {
	if sqlState(err) != "" || away(err) {
		return failure(ctx, err)
	}
	return err
}

// summing walks over a list from its top: rows, and summaries where all of a stretch counts.
type summing struct {
	db    *DB
	tx    pgx.Tx
	scan  *scan
	sums  query.Sums
	begun bool
}

// summariesStep is how many summaries are in memory at a time, at most 256 KiB each.
const summariesStep = 32

func (u *summing) run(ctx context.Context) error {
	oldest, newest := u.scan.oldest, u.scan.newest
	if err := u.reach(ctx, oldest, newest); err != nil {
		return err
	}
	for top := newest; ; {
		part, err := u.summaries(ctx, oldest, top)
		if err != nil {
			return err
		}
		for _, s := range part {
			if err := u.rows(ctx, s.newest+1, top); err != nil {
				return err
			}
			ok := false
			if len(s.summary) > 0 {
				u.begun = true
				if ok, err = u.sums.Merge(s.summary, true); errors.Is(err, query.ErrSummary) {
					err = damaged("a summary", err)
				}
			}
			if err == nil && !ok {
				err = u.rows(ctx, s.oldest, s.newest)
			}
			if err != nil {
				return err
			}
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

// reach tells how old the rows are of which there is a summary, so that it is known from the start how long buckets have to be.
func (u *summing) reach(ctx context.Context, from, to int64) error {
	var oldest *int64
	err := u.tx.QueryRow(ctx, `SELECT min(oldest) FROM summaries WHERE account_id = $1 AND oldest >= $2 AND newest <= $3`, u.scan.account, from, to).Scan(&oldest)
	if err == nil && oldest != nil {
		u.begun = true
		u.sums.Reach(time.Unix(0, *oldest).UTC())
	}
	return err
}

type summaryOf struct {
	stretch
	summary []byte
}

// summaries reads the next summaries of which all rows lie between two order times.
func (u *summing) summaries(ctx context.Context, from, to int64) ([]summaryOf, error) {
	rows, err := u.tx.Query(ctx, `SELECT newest, oldest, bottom, summary FROM summaries WHERE account_id = $1 AND newest <= $2 AND oldest >= $3 ORDER BY newest DESC LIMIT $4`,
		u.scan.account, to, from, summariesStep)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s summaryOf, err error) {
		err = row.Scan(&s.newest, &s.oldest, &s.bottom, &s.summary)
		return s, err
	})
}
