package postgres

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/postgres/schema"
)

// Sum passes every row that matches to sums, by itself or in a summary; see archive.Store.
func (db *DB) Sum(ctx context.Context, account string, q query.Query, want rowcode.Columns, sums query.Sums) error {
	key, err := schema.AccountKey(account)
	if err != nil {
		return err
	}

	return db.passOnce(ctx, func(tx pgx.Tx, begin func()) (err error) {
		// One snapshot for rows and summaries: a change removes the summary with the same commit.
		u := summing{db: db, tx: tx, sums: sums, begin: begin}
		if u.scan, err = db.newScan(ctx, tx, key, &q); err != nil {
			return err
		}

		u.scan.visit = func(fill query.Fill) (bool, error) {
			row, err := fill(want)
			if err == nil {
				begin()
				err = sums.Add(row)
			}
			return err == nil, err
		}
		return u.run(ctx)
	})
}

// summing walks down a list: over rows, and over summaries where every row of a segment
// counts.
type summing struct {
	db    *DB
	tx    pgx.Tx
	scan  *scan
	sums  query.Sums
	begin func() // called before sums counts anything
}

// summariesStep is how many summaries are in memory at a time, of at most 256 KiB each.
const summariesStep = 32

func (u *summing) run(ctx context.Context) error {
	oldest, newest := u.scan.oldest, u.scan.newest
	if err := u.announceOldest(ctx, oldest, newest); err != nil {
		return err
	}

	// From the top down, in turns: rows that no summary has, then a segment that one has.
	for top := newest; ; {
		part, err := u.summaries(ctx, oldest, top)
		if err != nil {
			return err
		}

		for _, s := range part {
			// The rows above the segment have no summary.
			if err := u.rows(ctx, s.newest+1, top); err != nil {
				return err
			}

			merged := false
			if len(s.summary) > 0 {
				u.begin()
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

// announceOldest tells sums how far back the summaries go, so that the length of its buckets is
// known from the start.
func (u *summing) announceOldest(ctx context.Context, from, to int64) error {
	var oldest *int64
	err := u.tx.QueryRow(ctx, `
		SELECT min(oldest) FROM summaries
		WHERE account_id = $1 AND oldest >= $2 AND newest <= $3`,
		u.scan.account, from, to).Scan(&oldest)
	// The transaction may not be repeated from here on: sums has been told something.
	if err == nil && oldest != nil {
		u.begin()
		u.sums.Reach(time.Unix(0, *oldest).UTC())
	}

	return err
}

type storedSummary struct {
	segment
	summary []byte
}

// summaries reads the next summaries whose rows are all between two order times.
func (u *summing) summaries(ctx context.Context, from, to int64) ([]storedSummary, error) {
	rows, _ := u.tx.Query(ctx, `
		SELECT newest, oldest, bottom, summary FROM summaries
		WHERE account_id = $1 AND newest <= $2 AND oldest >= $3
		ORDER BY newest DESC LIMIT $4`,
		u.scan.account, to, from, summariesStep)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s storedSummary, err error) {
		err = row.Scan(&s.newest, &s.oldest, &s.bottom, &s.summary)
		return s, err
	})
}
