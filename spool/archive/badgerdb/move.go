package badgerdb

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/accounts"
	"promptspool/spool/archive/transfer"
)

// copyingKey exists while a copy into this database is unfinished: how far it has come.
var copyingKey = []byte{ofServer, 'c'}

// accountMoves are the tables of an account that Export walks; everything else derives
// from them.
var accountMoves = []byte{
	tableAudit, tableSidecar, tableLast, tableHead, tableVersion, tableTombstone, tableSelector, tableRecord,
}

// errTime is for a tombstone that holds no time.
var errTime = errors.New("it is not a time")

// Export walks over everything; see transfer.Mover. A place is a key in base64.
func (db *DB) Export(ctx context.Context, place string, fn func(item transfer.Item, place string) error) error {
	after, err := base64.RawURLEncoding.DecodeString(place)
	if err != nil {
		return wire.Errorf(wire.CodeInvalid, "The copy is not of this archive: %q is no place in it.", place)
	}

	names, err := db.accountKeys()
	if err != nil {
		return err
	}

	var prefixes [][]byte
	for _, t := range accounts.Moves {
		prefixes = append(prefixes, serverKey(t, ""))
	}
	for k := range names {
		for _, table := range accountMoves {
			prefixes = append(prefixes, k.table(table))
		}
	}

	// In the order of the keys themselves, so that a key tells what comes behind it.
	slices.SortFunc(prefixes, bytes.Compare)

	// One snapshot for all of it, as of the moment at which the copy begins or goes on.
	return db.view(func(txn *badger.Txn) error {
		for _, prefix := range prefixes {
			// A copy that is resumed begins behind the last key that it has.
			from := prefix
			if bytes.HasPrefix(after, prefix) {
				from = append(bytes.Clone(after), 0)
			} else if bytes.Compare(prefix, after) < 0 { // copied before
				continue
			}

			err := db.each(ctx, txn, prefix, from, func(key, value []byte) (bool, error) {
				item, err := db.item(txn, key, value)
				if err == nil {
					err = fn(item, base64.RawURLEncoding.EncodeToString(key))
				}
				return err == nil, err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// item reads what is under a key of a table that moves.
func (db *DB) item(txn *badger.Txn, key, value []byte) (item transfer.Item, err error) {
	if key[0] == ofServer {
		row, err := accountRow(key, value)
		return row.Item(), err
	}

	k, table, rest := accountOf(key)
	item.Of = string(k[2:])
	switch table {
	case tableAudit:
		item.Audit = new(wire.AuditEntry)
		err = decode(key, value, item.Audit)
	case tableSidecar:
		item.Sidecar = new(wire.FleetSidecar)
		err = decode(key, value, item.Sidecar)
	case tableLast:
		item.Registry = new(archive.Registry)
		err = decode(key, value, item.Registry)
	case tableHead:
		item.Template = new(wire.Template)
		err = decode(key, value, item.Template)
	case tableVersion:
		item.Version = new(wire.Version)
		err = decode(key, value, item.Version)
	case tableTombstone:
		// Its length shows if there was a record; see tombstoneBytes.
		at, ok := readTime(value)
		if !ok {
			return item, damaged(key, errTime)
		}
		item.Tombstone = &transfer.Tombstone{
			RequestID: uuid(rest).String(),
			At:        at,
			Unseen:    len(value) > tombstoneBytes,
		}
	case tableSelector:
		at, ok := readTime(value)
		if !ok {
			return item, damaged(key, errTime)
		}
		item.Forgotten = &transfer.Forgotten{Hash: [16]byte(rest), Before: at}
	case tableRecord:
		item.Record, err = db.moved(txn, k, uuid(rest), value)
	}
	return item, err
}

// moved reads a record with its bodies.
func (db *DB) moved(txn *badger.Txn, k keys, id uuid, value []byte) (*transfer.Record, error) {
	state, err := db.joinState(txn, k, id, value)
	if err != nil {
		return nil, err
	}

	// All bodies, also of events that no longer show: the other side must have them too.
	bodies, err := db.bodies(txn, k, id, &state.State, false)
	return &transfer.Record{State: state.State, Bodies: bodies}, err
}

// Import stores items of another database; see transfer.Mover.
func (db *DB) Import(ctx context.Context, items []transfer.Item, place string) error {
	listed := map[keys]int{} // rows written
	err := db.commit.do(ctx, 0, func(txn *badger.Txn) (writes []write, err error) {
		clear(listed)
		records := map[string]*folding{} // by account, so that each counts its records only once

		for i := range items {
			item := &items[i]
			if item.Record != nil {
				f := records[item.Of]
				if f == nil {
					k, err := keysOf(item.Of)
					if err != nil {
						return nil, err
					}
					if f, err = db.newFolding(txn, k); err != nil {
						return nil, err
					}
					records[item.Of] = f
				}
				err = f.bring(item.Record)
			} else {
				writes, err = bring(writes, item)
			}
			if item.Forgotten != nil { // not yet known to the selectors in memory
				clear(db.selectors)
			}
			if err != nil {
				return nil, err
			}
		}
		// Only now: an account's counts are written once, for all its records.
		for _, f := range records {
			own, err := f.finish()
			if err != nil {
				return nil, err
			}
			writes = append(writes, own...)
			listed[f.keys] += f.listed
		}

		return append(writes, write{copyingKey, []byte(place + "\n")}), nil // never an empty value
	})
	if err != nil {
		return err
	}

	// After the commit, as with events: packing reads what is stored.
	for k, rows := range listed {
		db.rowsWritten(k, rows)
	}
	return nil
}

// bring stores an item that is not a record.
func bring(writes []write, item *transfer.Item) ([]write, error) {
	if item.Of == "" {
		tx := accountTx{writes: writes}
		err := accounts.Import(&tx, item)
		return tx.writes, err
	}

	k, err := keysOf(item.Of)
	if err != nil {
		return nil, err
	}

	switch {
	case item.Audit != nil:
		id, ok := parseUUID(item.Audit.ID)
		if !ok {
			return nil, archive.BadID(item.Audit.ID)
		}
		return store(writes, k.audit(id), item.Audit)
	case item.Sidecar != nil:
		id, ok := parseUUID(item.Sidecar.ID)
		if !ok {
			return nil, archive.BadID(item.Sidecar.ID)
		}
		return store(writes, k.sidecar(id), item.Sidecar)
	case item.Registry != nil:
		return store(writes, k.last(), item.Registry)
	case item.Template != nil:
		// The keys that derive from a template do not travel.
		t := item.Template
		writes = append(writes,
			write{k.templateName(t.ID), []byte(t.Name)},
			write{k.change(t.Revision), []byte(t.Name)},
		)
		return store(writes, k.head(t.Name), t)
	case item.Version != nil:
		return store(writes, k.version(item.Version.TemplateID, item.Version.Number), item.Version)
	case item.Tombstone != nil:
		id, ok := parseUUID(item.Tombstone.RequestID)
		if !ok {
			return nil, archive.BadID(item.Tombstone.RequestID)
		}
		value := tombstoneOf(item.Tombstone.At, item.Tombstone.Unseen)
		return append(writes, write{k.tombstone(id), value}), nil
	case item.Forgotten != nil:
		return append(writes, write{k.selector(item.Forgotten.Hash), appendTime(nil, item.Forgotten.Before)}), nil
	}
	return writes, nil
}

// bring stores a record as it was elsewhere, unless it is already here.
func (f *folding) bring(w *transfer.Record) error {
	if err := f.load(w.State.RequestID); err != nil {
		return err
	}
	r, err := f.group.Add(f.account, w.State.RequestID)
	if err != nil {
		return err
	}

	var bodies []archive.PackedBody
	for id, body := range w.Bodies {
		event, ok := parseUUID(id)
		if !ok {
			return archive.BadID(id)
		}
		bodies = append(bodies, archive.PackedBody{Event: event, Bytes: f.db.codec.Body(body)})
	}
	f.group.Bring(r, w.State, bodies)

	return nil
}

// Copying returns how far an unfinished copy has come; see transfer.Mover.
func (db *DB) Copying(context.Context) (place string, unfinished bool, err error) {
	err = db.view(func(txn *badger.Txn) error {
		value, err := loadBytes(txn, copyingKey)
		place, unfinished = string(bytes.TrimSuffix(value, []byte("\n"))), value != nil

		return err
	})
	return place, unfinished, err
}

// Copied notes that the copy is finished; see transfer.Mover.
func (db *DB) Copied(ctx context.Context) error {
	err := db.commit.do(ctx, 0, func(*badger.Txn) ([]write, error) {
		return []write{{key: copyingKey}}, nil
	})
	if err != nil {
		return err
	}

	// Import writes tombstones without counting them.
	db.tombstones.Store(0)
	return db.countTombstones()
}
