package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/database/compress"
	"promptspool/spool/database/postgres/schema"
)

// uuid is an id, which pgx reads and writes as it is.
type uuid = archive.UUID

// readRecord reads a record and the bodies of its events; if shown is set, only the bodies
// that are needed to show it.
func (db *DB) readRecord(
	ctx context.Context, account, requestID string, shown bool,
) (state archive.State, bodies map[string]json.RawMessage, err error) {
	id, ok := archive.ParseUUID(requestID)
	if !ok {
		return state, nil, wire.Errorf(wire.CodeNotFound, "There is no request %.40q.", requestID)
	}

	var stored archive.Stored
	var kept, bases keptBodies
	err = db.pool.View(ctx, func(tx pgx.Tx) error {
		// One round trip for both, from one moment.
		var packed []byte
		b := &pgx.Batch{}
		b.Queue(selectState, account, id, id.Time()).QueryRow(func(row pgx.Row) error {
			err := row.Scan(&packed)
			if errors.Is(err, pgx.ErrNoRows) {
				return wire.Errorf(wire.CodeNotFound, "There is no request %s.", requestID)
			}
			return err
		})
		// All of them: a record has a bounded size (archive.RecordBytesMax).
		b.Queue(selectBodies, account, id, id.Time()).Query(func(rows pgx.Rows) (err error) {
			kept, err = readKept(rows, nil)
			return err
		})

		err := tx.SendBatch(ctx, b).Close()
		if err == nil {
			stored, err = db.codec.unpackState(packed, id)
		}
		if err == nil {
			err = db.codec.joinDeltas(ctx, tx, account, id, &stored)
		}
		if err == nil {
			bases, err = kept.readBases(ctx, tx, account)
		}
		return err
	})
	if err != nil {
		return state, nil, err
	}

	// Unpacking comes after the transaction, so that it does not occupy a connection.
	state = stored.State
	bodies, err = db.codec.unpackBodies(&state, kept[id], bases, shown)

	return state, bodies, err
}

// selectState reads the state of a record. ts leaves one partition, of which the primary key names
// the row.
const selectState = `SELECT state FROM record_states WHERE account_id = $1 AND request_id = $2 AND ts = $3`

// These statements read the bodies of one record, and of several. The times name the partitions, and
// together with the ids the rows of the primary key.
const (
	selectBodies = `
		SELECT request_id, event_id, body FROM record_bodies
		WHERE account_id = $1 AND request_id = $2 AND ts = $3`
	selectBodiesOfMany = `
		SELECT request_id, event_id, body FROM record_bodies
		WHERE account_id = $1 AND request_id = ANY($2) AND ts = ANY($3)`
)

// fitting returns how many of the first n things fit into so many bytes together: one at least.
func fitting(n, most int, bytes func(i int) int) (fit int) {
	for fit < n {
		if most -= bytes(fit); most < 0 && fit > 0 {
			break
		}
		fit++
	}
	return fit
}

// unpackBodies unpacks the bodies of a record's events; if shown is set, only those that are
// needed to show it.
func (c *codec) unpackBodies(
	s *archive.State, packed map[uuid][]byte, bases keptBodies, shown bool,
) (map[string]json.RawMessage, error) {
	return s.Bodies(shown, c.reader(packed, bases))
}

// reader returns what reads the bodies of a record's events.
func (c *codec) reader(packed map[uuid][]byte, bases keptBodies) func(h archive.Entry) ([]byte, error) {
	return func(h archive.Entry) ([]byte, error) {
		// A body that is missing unpacks as damaged.
		event, _ := archive.ParseUUID(h.ID)
		return c.unpackBody(packed[event], bases, h)
	}
}

// queueDeltas reads the deltas of a state that was just read, and joins them to it.
//
// A state and its deltas are read by two statements. Readers see the same moment in both;
// writers find another revision if the record was changed in between.
func (c *codec) queueDeltas(b *pgx.Batch, account string, id uuid, s *archive.Stored) {
	// Most states have none, and are not asked about.
	if !s.Large() {
		return
	}

	b.Queue(`
		SELECT after, delta FROM record_deltas
		WHERE account_id = $1 AND request_id = $2 AND ts = $3 ORDER BY after`,
		account, id, id.Time()).Query(func(rows pgx.Rows) error {
		var deltas []archive.Delta
		var d archive.Delta
		var packed []byte
		// In the order in which they were added, which is that of the primary key.
		_, err := pgx.ForEachRow(rows, []any{&d.After, &packed}, func() (err error) {
			d.Value, err = c.Unpack(packed, nil)
			if err != nil {
				return damaged("a delta of record "+id.String(), err)
			}
			deltas = append(deltas, d)
			return nil
		})
		if err != nil {
			return err
		}

		if err := s.Join(deltas); err != nil {
			return damaged("the deltas of record "+id.String(), err)
		}
		return nil
	})
}

// joinDeltas is queueDeltas for one record, run immediately.
func (c *codec) joinDeltas(ctx context.Context, tx pgx.Tx, account string, id uuid, s *archive.Stored) error {
	b := &pgx.Batch{}
	c.queueDeltas(b, account, id, s)

	return sendBatch(ctx, tx, b)
}

// sendBatch sends a batch unless it is empty.
func sendBatch(ctx context.Context, tx reader, b *pgx.Batch) error {
	if b.Len() == 0 {
		return nil
	}

	return tx.SendBatch(ctx, b).Close()
}

// workers bounds the goroutines that pack, and those that unpack.
const workers = 4

// codec packs and unpacks. Safe for concurrent use.
type codec struct {
	*compress.Codec
	deltaMin int // see archive.DeltaMin
}

func newCodec() (*codec, error) {
	c, err := compress.New(workers)
	return &codec{c, archive.DeltaMin}, err
}

// packState packs the part of a state that must be written; see archive.Stored.
func (c *codec) packState(s *archive.Stored) (packed []byte, after int, err error) {
	plain, after, err := s.Encode()
	if err != nil {
		return nil, 0, err
	}
	packed = c.State(plain)
	if after == 0 && len(plain) >= c.deltaMin {
		// It may have deltas.
		packed[0] |= compress.Mark
	}

	return packed, after, nil
}

// isLarge reports whether a packed state may have deltas.
func isLarge(packed []byte) bool { return len(packed) > 0 && packed[0]&compress.Mark != 0 }

// unpackState unpacks a state, without its deltas.
func (c *codec) unpackState(packed []byte, id uuid) (s archive.Stored, err error) {
	plain, err := c.Unpack(packed, nil)
	if err == nil {
		s, err = archive.ReadStored(plain, isLarge(packed))
	}
	if err != nil {
		return archive.Stored{}, damaged("the state of record "+id.String(), err)
	}

	return s, nil
}

// unpackBody unpacks the body of an event and verifies its hash.
func (c *codec) unpackBody(packed []byte, bases keptBodies, h archive.Entry) ([]byte, error) {
	body, err := c.UnpackBody(packed, nil, bases.of)
	if err == nil && archive.HashBody(body) != h.Hash {
		err = errors.New("it is not what was stored")
	}
	if err != nil {
		return nil, damaged("the body of event "+h.ID, err)
	}
	return body, nil
}

// damaged returns an internal error for a stored value that cannot be read back. what appears
// in the log only.
func damaged(what string, cause error) error {
	return &wire.Error{
		Code:    wire.CodeInternal,
		Affects: wire.AffectsAccount,
		Message: "A value in the database is damaged; the server's log names it. " +
			"Check the database's disk (pg_amcheck, data checksums), and restore a backup.",
		Cause: fmt.Errorf("%s: %w", what, cause),
	}
}

// equal reports whether a column has the value that it should.
func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// positionRow reads the place of a row in the list.
func positionRow(row pgx.CollectableRow) (query.Position, error) {
	var p place
	err := row.Scan(&p.at, &p.id)
	return query.Position{At: time.Unix(0, p.at).UTC(), RequestID: p.id.String()}, err
}

// statesStep is how many packed states are read at a time.
const statesStep = 100

// states reads the states that a statement selects with their ids, in its order, until they weigh
// too much. all reports whether those are all.
func (db *DB) states(
	ctx context.Context, tx pgx.Tx, account, statement string, args ...any,
) (states []archive.State, all bool, err error) {
	type packedState struct {
		id     uuid
		packed []byte
	}
	rows, _ := tx.Query(ctx, statement, args...)
	page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s packedState, err error) {
		err = row.Scan(&s.id, &s.packed)
		return s, err
	})

	// One at a time, after the rows are read: a connection answers one query at a time, and
	// unpacked a state may be many times as large.
	held := 0
	for _, s := range page {
		if err != nil || held > db.heldBytesMax {
			return states, false, err
		}
		var state archive.Stored
		state, err = db.codec.unpackState(s.packed, s.id)
		if err == nil {
			err = db.codec.joinDeltas(ctx, tx, account, s.id, &state)
		}
		held += state.Weight()
		states = append(states, state.State)
	}

	return states, true, err
}

// States returns records of a part; see archive.Store.
func (db *DB) States(
	ctx context.Context, account string, of archive.Part, after string, limit int,
) (states []archive.State, next string, err error) {
	// The zero id is before all others.
	behind, _ := archive.ParseUUID(after)

	// In steps, so that packed states are not all in memory together.
	limit = min(limit, statesStep)
	err = db.pool.View(ctx, func(tx pgx.Tx) (err error) {
		// View may call this again, after a lost connection.
		states, next = nil, ""
		where, args := `orphan AND span_at IS NOT NULL`, []any{account, behind, limit}
		switch {
		case of.Trace != (uuid{}):
			where, args = `trace = $4`, append(args, of.Trace)
		case !of.Tagged:
			var weeks []time.Time
			weeks, err = orphanWeeks(ctx, tx, account)
			if err != nil || len(weeks) == 0 {
				return err
			}
			from, _ := schema.WeekEnds(weeks[0])
			_, to := schema.WeekEnds(weeks[len(weeks)-1])
			where, args = `orphan AND span_at IS NULL AND ts >= $4 AND ts < $5`, append(args, from, to)
		}

		var all bool
		states, all, err = db.states(ctx, tx, account, `
			SELECT request_id, state FROM record_states
			WHERE account_id = $1 AND request_id > $2 AND `+where+`
			ORDER BY request_id LIMIT $3`, args...)
		if err == nil && (!all || len(states) == limit) {
			next = states[len(states)-1].RequestID
		}
		return err
	})

	return states, next, err
}

// orphanWeeks returns the weeks in which an account has orphans. They are in the counts, so that no
// other partition is touched.
func orphanWeeks(ctx context.Context, tx pgx.Tx, account string) ([]time.Time, error) {
	rows, _ := tx.Query(ctx, `
		SELECT week FROM account_weeks WHERE account_id = $1
		GROUP BY week HAVING sum(orphans) <> 0 ORDER BY week`, account)
	return pgx.CollectRows(rows, pgx.RowTo[time.Time])
}
