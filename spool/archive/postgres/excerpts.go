package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/postgres/schema"
)

// loadExcerpts fills in what a page shows and headers do not have: it is in the states.
func (s *scan) loadExcerpts(ctx context.Context, rows []wire.Row) error {
	byID := make(map[uuid]*wire.Row)
	byWeek := make(map[time.Time][]uuid)
	for i := range rows {
		id, ok := parseUUID(rows[i].RequestID)
		if !ok {
			return badID(rows[i].RequestID)
		}
		byID[id] = &rows[i]
		week := schema.WeekOf(tsOf(id))
		byWeek[week] = append(byWeek[week], id)
	}

	// One round trip, and a query for each week, which reads one partition.
	b := &pgx.Batch{}
	large := make(map[uuid]*archive.Stored)
	for week, ids := range byWeek {
		from, to := schema.WeekEnds(week)
		b.Queue(selectStates, s.account, ids, from, to).Query(func(found pgx.Rows) error {
			return s.db.codec.readExcerpts(found, byID, large)
		})
	}
	if err := sendBatch(ctx, s.tx, b); err != nil || len(large) == 0 {
		return err
	}

	// A large state may have deltas, and one of these the request.
	b = &pgx.Batch{}
	for id, state := range large {
		s.db.codec.queueDeltas(b, s.account, id, tsOf(id), state)
	}
	if err := sendBatch(ctx, s.tx, b); err != nil {
		return err
	}
	for id, state := range large {
		whole, _ := state.Row()
		byID[id].InputExcerpt, byID[id].OutputExcerpt = whole.InputExcerpt, whole.OutputExcerpt
	}

	return nil
}

// readExcerpts reads the excerpts out of the rows of selectStates. It puts states that may
// have deltas into large instead.
func (c *codec) readExcerpts(found pgx.Rows, byID map[uuid]*wire.Row, large map[uuid]*archive.Stored) error {
	var id uuid
	var revision int64
	var packed, plain []byte
	_, err := pgx.ForEachRow(found, []any{&id, &revision, (*borrowed)(&packed)}, func() (err error) {
		if isLarge(packed) {
			state, err := c.unpackState(packed, id)
			large[id] = &state
			return err
		}

		if plain, err = c.unpack(packed, plain); err != nil {
			return damaged("the state of record "+id.String(), err)
		}
		archive.ReadExcerpts(plain, byID[id])
		return nil
	})

	return err
}
