package postgres

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/postgres/schema"
)

// excerptsSpan is how far apart weeks begin whose records are read by one query.
const excerptsSpan = 4 * 7 * 24 * time.Hour

// loadExcerpts fills in what a page shows and headers do not have: it is in the states.
func (s *scan) loadExcerpts(ctx context.Context, rows []wire.Row) error {
	byID := make(map[uuid]*wire.Row)
	byWeek := make(map[time.Time][]uuid)
	for i := range rows {
		id, ok := parseUUID(rows[i].RequestID)
		if !ok {
			return archive.BadID(rows[i].RequestID)
		}
		byID[id] = &rows[i]
		week := schema.WeekOf(tsOf(id))
		byWeek[week] = append(byWeek[week], id)
	}

	// One round trip. A query for neighbouring weeks looks for each record in the partitions of
	// all of them, which costs less than another query.
	b := &pgx.Batch{}
	var large []uuid
	for weeks := slices.SortedFunc(maps.Keys(byWeek), time.Time.Compare); len(weeks) > 0; {
		n := 1
		for n < len(weeks) && weeks[n].Sub(weeks[0]) < excerptsSpan {
			n++
		}

		var ids []uuid
		for _, week := range weeks[:n] {
			ids = append(ids, byWeek[week]...)
		}
		from, _ := schema.WeekEnds(weeks[0])
		_, to := schema.WeekEnds(weeks[n-1])
		weeks = weeks[n:]
		b.Queue(selectStates, s.account, ids, from, to).Query(func(found pgx.Rows) (err error) {
			large, err = s.db.codec.readExcerpts(found, byID, large)
			return err
		})
	}
	if err := sendBatch(ctx, s.tx, b); err != nil {
		return err
	}

	// One at a time: a page of them may be more than fits in memory.
	for _, id := range large {
		if err := s.loadLargeExcerpts(ctx, id, byID[id]); err != nil {
			return err
		}
	}

	return nil
}

// loadLargeExcerpts is loadExcerpts for one record whose state may have deltas, and one of
// these the request.
func (s *scan) loadLargeExcerpts(ctx context.Context, id uuid, row *wire.Row) error {
	state, err := s.stored(ctx, id)
	if err != nil {
		return err
	}

	// Only two short texts of it stay: the next one may be as large.
	whole, _ := state.Row()
	row.InputExcerpt, row.OutputExcerpt = whole.InputExcerpt, whole.OutputExcerpt

	return nil
}

// readExcerpts reads the excerpts out of the rows of selectStates. Records whose states may
// have deltas it adds to large instead.
func (c *codec) readExcerpts(found pgx.Rows, byID map[uuid]*wire.Row, large []uuid) ([]uuid, error) {
	var id uuid
	var revision int64
	var packed, plain []byte
	_, err := pgx.ForEachRow(found, []any{&id, &revision, (*borrowed)(&packed)}, func() (err error) {
		// Its deltas are not here: reading them now would need a second connection.
		if isLarge(packed) {
			large = append(large, id)
			return nil
		}

		if plain, err = c.Unpack(packed, plain); err != nil {
			return damaged("the state of record "+id.String(), err)
		}
		archive.ReadExcerpts(plain, byID[id])
		return nil
	})

	return large, err
}
