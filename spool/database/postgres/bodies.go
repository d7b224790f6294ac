package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive"
	"promptspool/spool/database/compress"
	"promptspool/spool/database/postgres/schema"
)

// place is a row that was read in full before its record is looked into.
type place struct {
	at   int64
	id   uuid
	line []byte
}

// stepPlaces visits rows that need more than their line: first it reads them to the end, because a
// connection serves one query at a time. If the query looks at bodies, it reads as many of these at
// a time as memory allows, which it finds from their sizes.
func (s *scan) stepPlaces(ctx context.Context, rows pgx.Rows) (n int, err error) {
	places, err := s.places(rows)
	if err != nil || len(places) == 0 {
		return len(places), err
	}

	// Sizes first: a page of small bodies is one query, one of large ones is many.
	var sizes map[uuid]int64
	if s.query.NeedsBody() {
		sizes, err = s.sizes(ctx, places)
	}
	for err == nil && n < len(places) && !s.done {
		rest := places[n:]
		fit := fitting(len(rest), int(s.db.bodiesBytesMax), func(i int) int { return int(sizes[rest[i].id]) })
		err = s.visitPlaces(ctx, rest[:fit])
		n += fit
	}

	return n, err
}

// metadata returns the metadata of the current record with long values in full.
func (s *scan) metadata(ctx context.Context) (map[string]string, error) {
	state, err := s.state(ctx, s.id)
	if err != nil {
		return nil, err
	}

	packed, bases, err := readBodies(ctx, s.tx, s.account, selectBodies, s.account, s.id, s.id.Time())
	if err != nil {
		return nil, err
	}
	bodies, err := s.db.codec.unpackBodies(&state.State, packed[s.id], bases, true)
	state.Restore(bodies)

	return state.Whole(), err
}

// places reads rows until they fill the memory for a step; it then sets s.cut.
func (s *scan) places(rows pgx.Rows) (places []place, err error) {
	defer rows.Close()

	s.cut = false
	for bytes := int64(0); !s.cut && rows.Next(); {
		var p place
		if err := rows.Scan(&p.at, &p.id, &p.line); err != nil {
			return nil, err
		}
		places = append(places, p)
		bytes += int64(len(p.line))
		s.seen, s.bytes = s.seen+1, s.bytes+len(p.line)
		s.cut = bytes >= s.db.bodiesBytesMax
	}

	// The error of a query that we left early is that we left it.
	if s.cut {
		rows.Close()
		return places, nil
	}

	return places, rows.Err()
}

// bodiesBytesDefault bounds the packed bodies that a search holds in memory at a time. A
// single body may be larger.
const bodiesBytesDefault = 16 << 20

// visitPlaces visits rows, with the bodies of their requests if the query looks at them.
func (s *scan) visitPlaces(ctx context.Context, places []place) (err error) {
	var bodies map[uuid][]byte
	var bases keptBodies
	if s.query.NeedsBody() {
		bodies, bases, err = s.bodies(ctx, places)
		if err != nil {
			return err
		}
	}

	// It is reused for each body.
	var plain []byte
	for _, p := range places {
		s.at, s.id, s.line = p.at, p.id, p.line
		err := s.visitIfMatch(ctx, func() (_ []byte, err error) {
			plain, err = s.db.codec.UnpackBody(bodies[p.id], plain, bases.of)
			if err != nil {
				err = damaged("the body of record "+p.id.String(), err)
			}
			return plain, err
		})
		if err != nil || s.done {
			return err
		}
	}

	return nil
}

// bodies reads the packed bodies of the records' requests, and what they are packed against.
//
// Most records have one body. One has several if different requests came under its id, or
// part of an event could not be read; its state then says which body is the request's.
func (s *scan) bodies(ctx context.Context, places []place) (map[uuid][]byte, keptBodies, error) {
	ids, first, last := idsAndTimes(places)
	found, bases, err := readBodies(ctx, s.tx, s.account, `
		SELECT request_id, event_id, body FROM record_bodies
		WHERE account_id = $1 AND ts >= $2 AND ts <= $3 AND request_id = ANY($4)`,
		pgx.QueryExecModeCacheDescribe, s.account, first, last, ids)
	if err != nil {
		return nil, nil, err
	}

	// A record's state is read only if it has several bodies, which is rare.
	bodies := make(map[uuid][]byte, len(found))
	for id, events := range found {
		for _, body := range events {
			bodies[id] = body
		}
		if len(events) > 1 {
			bodies[id], err = s.requestBody(ctx, id, events)
			if err != nil {
				return nil, nil, err
			}
		}
	}

	return bodies, bases, nil
}

// sizes returns how many bytes the bodies of each record have, packed, and what they are packed
// against. That counts once. The database finds them without reading the bodies.
func (s *scan) sizes(ctx context.Context, places []place) (map[uuid]int64, error) {
	ids, first, last := idsAndTimes(places)
	// The lengths are stored with the pointers to the bodies: no body is fetched.
	rows, err := s.tx.Query(ctx, `
		SELECT request_id, octet_length(body)::bigint, substring(body FROM 1 FOR $5) FROM record_bodies
		WHERE account_id = $1 AND ts >= $2 AND ts <= $3 AND request_id = ANY($4)`,
		pgx.QueryExecModeCacheDescribe, s.account, first, last, ids, compress.HeadBytes)
	if err != nil {
		return nil, err
	}

	sizes := make(map[uuid]int64, len(places))
	counted := make(map[compress.Base]bool)
	var id uuid
	var size int64
	var head []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &size, &head}, func() error {
		sizes[id] += size
		if base, ok := compress.BaseOf(head); ok && !counted[base] {
			counted[base] = true
			sizes[id] += int64(base.Bytes)
		}
		return nil
	})

	return sizes, err
}

// idsAndTimes returns the ids of rows, and the first and last of the times in them, from
// which the database finds the partitions to read.
func idsAndTimes(places []place) (ids []uuid, first, last time.Time) {
	// Rows next to each other in the list have ids of nearly the same time.
	ids = make([]uuid, len(places))
	for i, p := range places {
		ids[i] = p.id
	}
	times := timesOf(ids)

	return ids, times[0], times[len(times)-1]
}

// requestBody returns the body of the request among the bodies of a record.
func (s *scan) requestBody(ctx context.Context, id uuid, bodies map[uuid][]byte) ([]byte, error) {
	state, err := s.state(ctx, id)
	if err != nil {
		return nil, err
	}

	h, _ := state.Searched()
	event, _ := archive.ParseUUID(h.ID)
	if bodies[event] == nil {
		return nil, damaged("the body of record "+id.String(), fmt.Errorf("event %s has none", h.ID))
	}

	return bodies[event], nil
}

// state reads the state of a record that is in the list.
func (s *scan) state(ctx context.Context, id uuid) (archive.Stored, error) {
	state, err := s.stored(ctx, id)
	if err == nil && !state.Listed() {
		err = damaged("the state of record "+id.String(), errors.New("it is listed but has no request"))
	}

	return state, err
}

// eachState calls small with each of these records that exists, and its packed state, which is
// valid during the call. Those whose states may have deltas it passes to large instead, at the end.
func (s *scan) eachState(
	ctx context.Context, ids []uuid, small func(id uuid, packed []byte) error,
	large func(id uuid, state *archive.Stored),
) error {
	byWeek := make(map[time.Time][]uuid)
	for _, id := range ids {
		week := schema.WeekOf(id.Time())
		byWeek[week] = append(byWeek[week], id)
	}

	// One round trip. Each query reads the partition of a week.
	b := &pgx.Batch{}
	var rest []uuid
	for _, week := range slices.SortedFunc(maps.Keys(byWeek), time.Time.Compare) {
		from, to := schema.WeekEnds(week)
		b.Queue(selectStates, s.account, byWeek[week], from, to).Query(func(found pgx.Rows) error {
			var id uuid
			var revision int64
			var packed []byte
			_, err := pgx.ForEachRow(found, []any{&id, &revision, (*borrowed)(&packed)}, func() error {
				if !isLarge(packed) {
					return small(id, packed)
				}
				rest = append(rest, id)
				return nil
			})
			return err
		})
	}
	if err := sendBatch(ctx, s.tx, b); err != nil {
		return err
	}

	// One at a time, since reading deltas now would need a second connection, and all of them
	// may be more than fits in memory.
	for _, id := range rest {
		state, err := s.stored(ctx, id)
		if err != nil {
			return err
		}
		large(id, &state)
	}

	return nil
}

// stored reads the state of a record, whether it is listed or not.
func (s *scan) stored(ctx context.Context, id uuid) (state archive.Stored, err error) {
	var packed []byte
	err = s.tx.QueryRow(ctx, selectState, s.account, id, id.Time()).Scan(&packed)
	if err == nil {
		state, err = s.db.codec.unpackState(packed, id)
	}
	if err == nil {
		err = s.db.codec.joinDeltas(ctx, s.tx, s.account, id, &state)
	}

	return state, err
}
