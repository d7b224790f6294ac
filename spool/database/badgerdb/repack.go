package badgerdb

import (
	"bytes"
	"context"

	"github.com/dgraph-io/badger/v4"

	"promptspool/spool/archive"
	"promptspool/spool/database/compress"
	"promptspool/spool/database/repack"
)

// readBody reads the body under a key, and what it is packed against.
func (db *DB) readBody(txn *badger.Txn, k keys, key []byte) (plain []byte, err error) {
	var dependent []byte
	item, err := txn.Get(key)
	if err == nil {
		err = item.Value(func(value []byte) (err error) {
			// Badger locks the file of the value meanwhile, and that of the base may be the same.
			if _, ok := compress.BaseOf(value); ok {
				dependent = bytes.Clone(value)
				return nil
			}
			plain, err = db.codec.Unpack(value, nil)
			return err
		})
	}
	if err == nil && dependent != nil {
		plain, err = db.codec.UnpackBody(dependent, nil, func(b compress.Base) ([]byte, error) {
			return loadBytes(txn, k.body(b.Request, b.Event))
		})
	}
	if err != nil {
		return nil, damaged(key, err)
	}

	return plain, nil
}

// Repack packs bodies against each other; see repack.Store. It does so while others write, and then
// stores nothing if one of the bodies was written meanwhile.
func (db *DB) Repack(
	ctx context.Context, account string, ids []uuid, pack func([]repack.Body) ([]repack.Body, error),
) error {
	k := keysOf(account)
	var changed []repack.Body
	versions := make(map[string]uint64)
	err := db.view(func(txn *badger.Txn) error {
		bodies, err := db.storedBodies(ctx, txn, k, ids, versions)
		if err == nil {
			changed, err = pack(bodies)
		}
		return err
	})
	if err != nil || len(changed) == 0 {
		return err
	}

	replaced := int64(0)
	err = db.exclusively(func(txn *badger.Txn) (writes []write, err error) {
		for _, b := range changed {
			key := k.body(b.Request, b.Event)
			item, err := txn.Get(key)
			if err != nil || item.Version() != versions[string(key)] {
				return nil, repack.ErrChanged
			}
			if b.Value != nil {
				writes = append(writes, write{key, b.Value})
				replaced += item.ValueSize()
			}
			if b.Dependants != nil {
				writes = append(writes, write{k.base(b.Request, b.Event), b.Dependants})
			}
		}
		return writes, nil
	})
	if err == nil {
		db.repacked.Add(replaced)
	}

	return err
}

// storedBodies reads the bodies of records as they are stored, and notes their versions by key.
func (db *DB) storedBodies(
	ctx context.Context, txn *badger.Txn, k keys, ids []uuid, versions map[string]uint64,
) (bodies []repack.Body, err error) {
	// One iterator for all: making one takes longer than reading a body.
	it := txn.NewIterator(badger.IteratorOptions{Prefix: k.table(tableBody)})
	defer it.Close()

	for _, id := range ids {
		if err := db.stopped(ctx); err != nil {
			return nil, err
		}

		prefix := append(k.table(tableBody), id[:]...)
		for it.Seek(prefix); it.ValidForPrefix(prefix); it.Next() {
			b := repack.Body{Request: id, Event: uuid(it.Item().Key()[len(prefix):])}
			b.Value, err = valueOf(it.Item(), nil)
			if err != nil {
				return nil, err
			}
			versions[string(it.Item().Key())] = it.Item().Version()

			b.Dependants, err = loadBytes(txn, k.base(id, b.Event))
			if err != nil {
				return nil, err
			}
			bodies = append(bodies, b)
		}
	}

	return bodies, nil
}

// free packs by itself each body that is packed against one which goes or changes. If the group writes such
// a body, too, that comes after it.
func (f *folding) free(id, event uuid) error {
	list := f.keys.base(id, event)
	dependants, err := loadBytes(f.txn, list)
	if err != nil || dependants == nil {
		return err
	}
	base := repack.Body{Request: id, Event: event, Dependants: dependants}
	base.Value, err = loadBytes(f.txn, f.keys.body(id, event))
	if err != nil {
		return err
	}
	f.freed = append(f.freed, write{key: list})

	return repack.Free(f.db.codec, base, func(request, event archive.UUID) ([]byte, error) {
		if r := f.group.Record(f.account, request); r != nil && r.Removed {
			return nil, nil
		}
		return loadBytes(f.txn, f.keys.body(request, event))
	}, func(b repack.Body) {
		f.freed = append(f.freed, write{f.keys.body(b.Request, b.Event), b.Value})
	})
}
