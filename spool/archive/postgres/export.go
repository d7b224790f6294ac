package postgres

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/postgres/connection"
	"promptspool/spool/archive/transfer"
)

// exportPlace is how far an Export has come: an index into exportSteps, and the key of the
// last row of that table. As JSON it is the place that callers keep.
type exportPlace struct {
	Table int       `json:"table"`
	After [3]string `json:"after"` // account or hash, then the rest of the key
}

// exportSteps read the tables that Export walks, each in the order of its key. All other
// tables are derived from these. The order is part of the places that callers keep.
var exportSteps = []func(*DB, context.Context, [3]string) ([]exported, error){
	byAccount("tombstones", (*DB).exportTombstones),
	byAccount("deleted_values", (*DB).exportDeletedValues),
	byAccount("record_states", (*DB).exportRecords),
}

// exported is an item, and the key of its row.
type exported struct {
	item transfer.Item
	key  [3]string
}

// exportPage is how many rows a step of Export reads. Of records, whose bodies may be large,
// it reads fewer.
const exportPage = 1000

// Export calls fn with every item, table by table; see transfer.Mover.
func (db *DB) Export(ctx context.Context, from string, fn func(item transfer.Item, place string) error) error {
	var at exportPlace
	if from != "" && json.Unmarshal([]byte(from), &at) != nil {
		return wire.Errorf(wire.CodeInvalid,
			"The unfinished copy is of another archive: %q is not a place in this one.", from)
	}

	for at.Table < len(exportSteps) {
		page, err := exportSteps[at.Table](db, ctx, at.After)
		if err != nil {
			return err
		}

		for _, e := range page {
			// The place of this item, from which an interrupted copy goes on.
			at.After = e.key
			text, err := json.Marshal(at)
			if err == nil {
				err = fn(e.item, string(text))
			}
			if err != nil {
				return err
			}
		}
		// Only an empty page ends a table: a step may read fewer than it could.
		if len(page) == 0 {
			at = exportPlace{Table: at.Table + 1}
		}
	}

	return nil
}

// byAccount returns a step that reads one account with read, and then the next one in table.
//
// These tables may be spread over the nodes of a Citus, by account: a statement for all accounts
// would bring as many rows from each shard as the step wants in all.
func byAccount(
	table string, read func(*DB, context.Context, [3]string) ([]exported, error),
) func(*DB, context.Context, [3]string) ([]exported, error) {
	return func(db *DB, ctx context.Context, after [3]string) ([]exported, error) {
		for {
			page, err := read(db, ctx, after)
			if err != nil || len(page) > 0 {
				return page, err
			}

			var next string
			err = db.pool.WithConn(ctx, func(conn *pgx.Conn) (err error) {
				next, err = nextAccount(ctx, conn, table, after[0])
				return err
			})
			if err != nil || next == "" {
				return nil, err
			}
			after = [3]string{next}
		}
	}
}

// exportRows runs a statement and turns its rows into items.
func exportRows[T any](
	ctx context.Context, db *DB, targets func(*T) []any, item func(*T) exported, sql string, args ...any,
) ([]exported, error) {
	// A statement for each page, not one for the table: a copy takes hours, and a transaction
	// as long would keep VACUUM from its work.
	rows, err := connection.QueryRows(ctx, db.pool, targets, sql, args...)
	page := make([]exported, len(rows))
	for i := range rows {
		page[i] = item(&rows[i])
	}

	return page, err
}

// owned is a row that belongs to an account.
type owned[T any] struct {
	account string
	id      string
	number  int64
	of      T
}

func (o *owned[T]) key() [3]string { return [3]string{o.account, o.id, fmt.Sprint(o.number)} }

func (db *DB) exportTombstones(ctx context.Context, after [3]string) ([]exported, error) {
	type row = owned[transfer.Tombstone]
	return exportRows(ctx, db,
		func(o *row) []any { return []any{&o.account, &o.id, &o.of.At, &o.of.Unseen} },
		func(o *row) exported {
			o.of.RequestID = o.id
			return exported{transfer.Item{Of: accountOf(o.account), Tombstone: &o.of}, o.key()}
		},
		`SELECT account_id, request_id::text, deleted_at, unseen FROM tombstones
		WHERE account_id = $1 AND request_id > $2::uuid ORDER BY request_id LIMIT $3`,
		after[0], orZero(after[1]), exportPage)
}

func (db *DB) exportDeletedValues(ctx context.Context, after [3]string) ([]exported, error) {
	type row = owned[transfer.Forgotten]
	return exportRows(ctx, db,
		func(o *row) []any { return []any{&o.account, &o.id, &o.number} },
		func(o *row) exported {
			_, _ = hex.Decode(o.of.Hash[:], []byte(o.id))
			o.of.Before = time.Unix(0, o.number).UTC()
			return exported{transfer.Item{Of: accountOf(o.account), Forgotten: &o.of}, o.key()}
		},
		`SELECT account_id, encode(hash, 'hex'), before FROM deleted_values
		WHERE account_id = $1 AND hash > decode($2, 'hex') ORDER BY hash LIMIT $3`,
		after[0], after[1], exportPage)
}

// orZero returns the lowest UUID in place of "".
func orZero(id string) string {
	if id == "" {
		return "00000000-0000-0000-0000-000000000000"
	}
	return id
}

// accountOf reverses accountKey.
func accountOf(key string) string {
	if account, err := url.PathUnescape(key); err == nil {
		return account
	}
	return key
}

// Servers returns how many connections servers have to the database. Those of a copy do not
// count: they have another application_name.
func (db *DB) Servers(ctx context.Context) (connections int, err error) {
	err = db.pool.QueryRow(ctx, []any{&connections}, `
		SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = $1`, connection.ApplicationName)

	return connections, err
}

// stateRow is a row of record_states.
type stateRow struct {
	account string
	id      uuid
	ts      time.Time
	packed  []byte
}

// Bounds of a step through an account's records: up to so many bytes of bodies and states; a
// single record may be larger.
const (
	exportRecordsMax = 100
	exportBytesMax   = 8 << 20
)

func (db *DB) exportRecords(ctx context.Context, after [3]string) (page []exported, err error) {
	// By the primary key across all partitions, from behind the last record on: each step
	// reads only its own rows.
	rows, err := connection.QueryRows(ctx, db.pool,
		func(r *stateRow) []any { return []any{&r.account, &r.id, &r.ts, &r.packed} },
		`SELECT account_id, request_id, ts, state FROM record_states
		WHERE account_id = $1 AND request_id > $2::uuid ORDER BY request_id LIMIT $3`,
		after[0], orZero(after[1]), exportRecordsMax)
	if err != nil || len(rows) == 0 {
		return nil, err
	}

	// Unpacked one by one, so that of those that do not fit at most one is in memory.
	bytes := 0
	var ids []uuid
	var times []time.Time
	for _, r := range rows {
		state, err := db.wholeState(ctx, &r)
		if err != nil {
			return nil, err
		}

		// What does not fit comes with the next step.
		weight := state.Bytes() + state.Weight()
		if bytes+weight > exportBytesMax && bytes > 0 {
			break
		}
		bytes += weight
		ids, times = append(ids, r.id), append(times, r.ts)

		page = append(page, exported{
			item: transfer.Item{
				Of:     accountOf(r.account),
				Record: &transfer.Record{State: state.State, Bodies: map[string]json.RawMessage{}},
			},
			key: [3]string{r.account, r.id.String()},
		})
	}

	return page, db.exportBodies(ctx, rows[0].account, ids, times, page)
}

// wholeState returns a record's state with its deltas. No server may change the record
// meanwhile.
func (db *DB) wholeState(ctx context.Context, r *stateRow) (state archive.Stored, err error) {
	if state, err = db.codec.unpackState(r.packed, r.id); err != nil || !state.Large() {
		return state, err
	}

	err = db.pool.View(ctx, func(tx pgx.Tx) error {
		// Unpacked anew with each attempt: a failed one may have joined some deltas.
		if state, err = db.codec.unpackState(r.packed, r.id); err != nil {
			return err
		}
		return db.codec.joinDeltas(ctx, tx, r.account, r.id, &state)
	})

	return state, err
}

// exportBodies adds their bodies to a page of records.
func (db *DB) exportBodies(
	ctx context.Context, account string, ids []uuid, times []time.Time, page []exported,
) error {
	type row struct {
		id, event uuid
		packed    []byte
	}
	// ts = ANY names the partitions, and together with the ids the rows of the primary key.
	bodies, err := connection.QueryRows(ctx, db.pool,
		func(r *row) []any { return []any{&r.id, &r.event, &r.packed} },
		`SELECT request_id, event_id, body FROM record_bodies
		WHERE account_id = $1 AND request_id = ANY($2) AND ts = ANY($3)`, account, ids, times)
	if err != nil {
		return err
	}
	packed := make(map[[2]uuid][]byte, len(bodies))
	for _, b := range bodies {
		packed[[2]uuid{b.id, b.event}] = b.packed
	}

	for i, e := range page {
		record := e.item.Record
		for _, h := range record.State.History {
			if h.Hash == "" {
				continue
			}
			event, _ := parseUUID(h.ID)
			if record.Bodies[h.ID], err = db.codec.unpackBody(packed[[2]uuid{ids[i], event}], h); err != nil {
				return err
			}
		}
	}

	return nil
}
