package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Record returns a state and the body that it shows; see archive.Store.
func (db *DB) Record(ctx context.Context, account, requestID string) (archive.State, json.RawMessage, error) {
	state, bodies, err := db.readRecord(ctx, account, requestID, true)
	if err != nil {
		return archive.State{}, nil, err
	}

	// Long values are in the bodies only; the state has the beginning of each.
	state.Restore(bodies)

	return state, state.ShownBody(bodies), nil
}

// Bodies returns a state and the bodies of its events; see archive.Store.
func (db *DB) Bodies(
	ctx context.Context, account, requestID string,
) (archive.State, map[string]json.RawMessage, error) {
	return db.readRecord(ctx, account, requestID, false)
}

// readRecord reads a record and the bodies of its events; if shown is set, only the bodies
// that are needed to show it.
func (db *DB) readRecord(
	ctx context.Context, account, requestID string, shown bool,
) (state archive.State, bodies map[string]json.RawMessage, err error) {
	key, err := accountKey(account)
	if err != nil {
		return state, nil, err
	}
	id, ok := parseUUID(requestID)
	if !ok {
		return state, nil, wire.Errorf(wire.CodeNotFound, "There is no request %.40q.", requestID)
	}

	var stored archive.Stored
	var kept map[uuid][]byte
	err = db.pool.View(ctx, func(tx pgx.Tx) error {
		// One round trip for both, from one moment.
		var packed []byte
		b := &pgx.Batch{}
		b.Queue(`SELECT state FROM record_states WHERE account_id = $1 AND request_id = $2 AND ts = $3`,
			key, id, tsOf(id)).
			QueryRow(func(row pgx.Row) error {
				err := row.Scan(&packed)
				if errors.Is(err, pgx.ErrNoRows) {
					return wire.Errorf(wire.CodeNotFound, "There is no request %s.", requestID)
				}
				return err
			})
		// All of them: a record has a bounded size (archive.RecordBytesMax).
		b.Queue(`SELECT event_id, body FROM record_bodies WHERE account_id = $1 AND request_id = $2 AND ts = $3`,
			key, id, tsOf(id)).
			Query(func(rows pgx.Rows) (err error) {
				kept, err = packedBodies(rows)
				return err
			})

		err := tx.SendBatch(ctx, b).Close()
		if err == nil {
			stored, err = db.codec.unpackState(packed, id)
		}
		if err == nil {
			err = db.codec.joinDeltas(ctx, tx, key, id, &stored)
		}
		return err
	})
	if err != nil {
		return state, nil, err
	}

	// Unpacking comes after the transaction, so that it does not occupy a connection.
	state = stored.State
	bodies, err = db.codec.unpackBodies(&state, kept, shown)

	return state, bodies, err
}

// packedBodies reads rows of event ids and bodies.
func packedBodies(rows pgx.Rows) (map[uuid][]byte, error) {
	packed := make(map[uuid][]byte)
	var event uuid
	var body []byte
	_, err := pgx.ForEachRow(rows, []any{&event, &body}, func() error {
		packed[event] = body
		body = nil // so that the next row does not overwrite it
		return nil
	})

	return packed, err
}

// unpackBodies unpacks the bodies of a record's events; if shown is set, only those that are
// needed to show it.
func (c *codec) unpackBodies(
	s *archive.State, packed map[uuid][]byte, shown bool,
) (map[string]json.RawMessage, error) {
	return s.Bodies(shown, func(h archive.Entry) ([]byte, error) {
		// A body that is missing unpacks as damaged.
		event, _ := parseUUID(h.ID)
		return c.unpackBody(packed[event], h)
	})
}
