package postgres

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/keyed"
	"promptspool/spool/database/postgres/connection"
	"promptspool/spool/database/postgres/schema"
	"promptspool/spool/database/transfer"
)

// exportPlace is how far an Export has come: an index into exportSteps, and the last row of
// that table. As JSON it is the place that callers keep.
type exportPlace struct {
	Table   int    `json:"table"`
	Account string `json:"account"`
	After   string `json:"after"` // an id or a hash
}

// exportSteps read the tables that Export walks, some rows of an account after one, in the
// order of their keys. All other tables are derived from these. The order is part of the
// places that callers keep.
//
// They may be spread over the nodes of a Citus, by account: a statement for all accounts would
// bring as many rows from each shard as the step wants in all.
var exportSteps = []struct {
	table string
	read  func(db *DB, ctx context.Context, account, after string) ([]exported, error)
}{
	{"tombstones", (*DB).exportTombstones},
	{"deleted_values", (*DB).exportDeletedValues},
	{"record_states", (*DB).exportRecords},
}

// exported is an item, and what its row's key has after the account.
type exported struct {
	item transfer.Item
	key  string
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
		// A statement for each page, not one for the table: a copy takes hours, and a
		// transaction as long would keep VACUUM from its work.
		step := exportSteps[at.Table]
		page, err := step.read(db, ctx, at.Account, at.After)
		if err != nil {
			return err
		}

		for _, e := range page {
			// The place of this item, from which an interrupted copy continues.
			at.After = e.key
			text, err := json.Marshal(at)
			if err == nil {
				err = fn(e.item, string(text))
			}
			if err != nil {
				return err
			}
		}

		// Only an empty page ends an account: a step may read fewer than it could.
		if len(page) > 0 {
			continue
		}
		err = db.pool.WithConn(ctx, func(conn *pgx.Conn) error {
			next, err := nextAccount(ctx, conn, step.table, at.Account)
			if err != nil {
				return err
			}
			if next == "" {
				at.Table++
			}
			at.Account, at.After = next, ""
			return nil
		})
		if err != nil {
			return err
		}
	}

	return nil
}

func (db *DB) exportTombstones(ctx context.Context, account, after string) (page []exported, err error) {
	rows, err := connection.QueryRows(ctx, db.pool, pgx.RowToStructByPos[transfer.Tombstone],
		`SELECT request_id::text, deleted_at, unseen FROM tombstones t
		WHERE account_id = $1 AND request_id > $2::uuid ORDER BY t.request_id LIMIT $3`,
		account, orZero(after), exportPage)
	for i := range rows {
		item := transfer.Item{Of: schema.AccountOf(account), Tombstone: &rows[i]}
		page = append(page, exported{item, rows[i].RequestID})
	}
	return page, err
}

func (db *DB) exportDeletedValues(ctx context.Context, account, after string) (page []exported, err error) {
	type row struct {
		Hash   []byte
		Before int64
	}
	rows, err := connection.QueryRows(ctx, db.pool, pgx.RowToStructByPos[row],
		`SELECT hash, before FROM deleted_values
		WHERE account_id = $1 AND hash > decode($2, 'hex') ORDER BY hash LIMIT $3`,
		account, after, exportPage)
	for _, r := range rows {
		forgotten := &transfer.Forgotten{Hash: [16]byte(r.Hash), Before: time.Unix(0, r.Before).UTC()}
		item := transfer.Item{Of: schema.AccountOf(account), Forgotten: forgotten}
		page = append(page, exported{item, hex.EncodeToString(r.Hash)})
	}
	return page, err
}

// orZero returns the lowest UUID in place of "".
func orZero(id string) string {
	if id == "" {
		return "00000000-0000-0000-0000-000000000000"
	}
	return id
}

// Servers returns how many connections servers have to the database. Those of a copy do not
// count: they have another application_name.
func (db *DB) Servers(ctx context.Context) (connections int, err error) {
	err = db.pool.QueryRow(ctx, []any{&connections}, `
		SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = $1`, connection.ApplicationName)

	return connections, err
}

// Bounds of a step through an account's records: up to so many bytes of bodies; a single
// record may be larger.
const (
	exportRecordsMax = 100
	exportBytesMax   = 8 << 20
)

func (db *DB) exportRecords(ctx context.Context, account, after string) (page []exported, err error) {
	err = db.pool.View(ctx, func(tx pgx.Tx) error {
		page = nil // View may call this again, after a lost connection
		// By the primary key across all partitions, from after the last record on: each step
		// reads only its own rows. The rest comes with the next step.
		states, _, err := db.states(ctx, tx, account, `
			SELECT request_id, state FROM record_states
			WHERE account_id = $1 AND request_id > $2::uuid ORDER BY request_id LIMIT $3`,
			account, orZero(after), exportRecordsMax)
		if err != nil || len(states) == 0 {
			return err
		}
		states = states[:fitting(len(states), exportBytesMax, func(i int) int { return states[i].Bytes() })]

		ids, times := make([]uuid, len(states)), make([]time.Time, len(states))
		for i := range states {
			ids[i], _ = archive.ParseUUID(states[i].RequestID)
			times[i] = ids[i].Time()
		}
		packed, err := readBodies(tx.Query(ctx, selectBodiesOfMany, account, ids, times))
		if err != nil {
			return err
		}
		for i, state := range states {
			bodies, err := db.codec.unpackBodies(&state, packed[ids[i]], false)
			if err != nil {
				return err
			}
			record := &transfer.Record{State: state, Bodies: bodies}
			page = append(page, exported{transfer.Item{Of: schema.AccountOf(account), Record: record}, state.RequestID})
		}
		return nil
	})

	return page, err
}

// Small returns what is not about records; see transfer.Mover.
func (db *DB) Small() keyed.Store { return db.small() }

// Import stores items of another database; see transfer.Mover. Items and mark are committed
// together, so an interrupted copy continues exactly after them.
func (db *DB) Import(ctx context.Context, items []transfer.Item, mark keyed.Entry) error {
	f, err := db.newImport(ctx, items)
	if err != nil {
		return err
	}

	return db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		for i := range items {
			if err := queueItem(b, &items[i]); err != nil {
				return err
			}
		}
		if err := queueSmall(b, []keyed.Entry{mark}); err != nil {
			return err
		}
		if err := sendBatch(ctx, tx, b); err != nil {
			return err
		}

		return f.importRecords(ctx, tx, items)
	})
}

// queueItem queues an item that is not a record. Existing items stay as they are.
func queueItem(b *pgx.Batch, i *transfer.Item) error {
	key, err := schema.AccountKey(i.Of)
	if err != nil {
		return err
	}

	switch {
	case i.Tombstone != nil:
		id, ok := archive.ParseUUID(i.Tombstone.RequestID)
		if !ok {
			return archive.BadID(i.Tombstone.RequestID)
		}
		queueTombstones(b, [][]any{{key, id, i.Tombstone.At.UTC(), i.Tombstone.Unseen}})

	case i.Forgotten != nil:
		b.Queue(`
			INSERT INTO deleted_values (account_id, hash, before) VALUES ($1, $2, $3)
			ON CONFLICT DO NOTHING`,
			key, slices.Clone(i.Forgotten.Hash[:]), schema.Nanos(i.Forgotten.Before))
	}

	return nil
}

// newImport prepares a folding of the records among items.
func (db *DB) newImport(ctx context.Context, items []transfer.Item) (*folding, error) {
	f := db.newFolding(0)
	f.Group = archive.NewGroup(math.MaxInt) // the items bound it
	for i := range items {
		if items[i].Record == nil {
			continue
		}
		key, err := schema.AccountKey(items[i].Of)
		if err == nil {
			_, err = f.Add(key, items[i].Record.State.RequestID)
		}
		if err != nil {
			return nil, err
		}
	}

	// Before the transaction, which would otherwise hold the locks on the parent tables.
	return f, db.tables.Ensure(ctx, f.weeks())
}

// importRecords writes records as they were elsewhere, except those that already exist.
func (f *folding) importRecords(ctx context.Context, tx pgx.Tx, items []transfer.Item) error {
	if len(f.Records) == 0 {
		return nil
	}
	if err := f.load(ctx, tx, false); err != nil {
		return err
	}

	for i := range items {
		whole := items[i].Record
		if whole == nil {
			continue
		}
		// Added by newImport already, which is why load has read it.
		key, _ := schema.AccountKey(items[i].Of) // checked by newImport
		r, err := f.Add(key, whole.State.RequestID)
		if err != nil {
			return err
		}
		if err := f.Bring(r, whole.State, whole.Bodies, f.db.codec.Body); err != nil {
			return err
		}
	}

	return f.write(ctx, tx)
}
