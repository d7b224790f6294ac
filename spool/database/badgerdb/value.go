package badgerdb

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rollup"
	"promptspool/spool/database/badgerdb/blocks"
	"promptspool/spool/database/compress"
)

// loadBytes returns a copy of the value under key, or nil if the key does not exist.
func loadBytes(txn *badger.Txn, key []byte) ([]byte, error) {
	item, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, damaged(key, err)
	}

	return valueOf(item, nil)
}

// valueOf returns a copy of an item's value, which may be kept beyond the transaction, in buffer if that
// has space.
func valueOf(item *badger.Item, buffer []byte) ([]byte, error) {
	value, err := item.ValueCopy(buffer)
	if err == nil && len(value) == 0 {
		err = errUnreadable
	}
	if err != nil {
		return nil, damaged(item.KeyCopy(nil), err)
	}
	return value, nil
}

// workers bounds how many goroutines pack or unpack at the same time, each with its own
// memory.
const workers = 2

// readPacked reads and unpacks the value under key, into buffer if that has space.
func readPacked(txn *badger.Txn, c *compress.Codec, key, buffer []byte) (plain []byte, err error) {
	item, err := txn.Get(key)
	if err == nil {
		err = item.Value(func(value []byte) (err error) {
			plain, err = c.Unpack(value, buffer)
			return err
		})
	}
	if err != nil {
		return nil, damaged(key, err)
	}
	return plain, nil
}

// errUnreadable is for an empty value. We store none, but Badger returns one without an
// error where a value log is damaged or missing.
var errUnreadable = errors.New("its value cannot be read")

// damaged is the error for a stored value that cannot be read. The log, not the caller,
// gets the key.
func damaged(key []byte, cause error) error {
	return &wire.Error{
		Code:    wire.CodeInternal,
		Affects: wire.AffectsAccount,
		Message: "A value on this server's disk is damaged; its log says which. Check the disk, and restore a backup.",
		Cause:   fmt.Errorf("key %q: %w", key, cause),
	}
}

// decode decodes a stored value into v, which must be zero.
func decode(key, value []byte, v any) error {
	if err := json.Unmarshal(value, v); err != nil {
		return damaged(key, err)
	}
	return nil
}

// each calls fn for the keys that begin with prefix, in order from the key from on (nil:
// the first). It ends when fn returns false or an error, or when no caller waits any
// more. key and value are valid until fn returns. In a transaction that writes, it sees
// the transaction's own writes.
func (db *DB) each(
	ctx context.Context, txn *badger.Txn, prefix, from []byte, fn func(key, value []byte) (more bool, err error),
) error {
	return db.eachItem(ctx, txn, prefix, from, func(item *badger.Item) (more bool, err error) {
		// Both are Badger's memory, and lent to fn: most walks keep little of what they see.
		key := item.Key()
		err = item.Value(func(value []byte) (err error) {
			if len(value) == 0 {
				return damaged(key, errUnreadable)
			}
			more, err = fn(key, value)
			return err
		})
		return more, err
	})
}

// eachItem is each for those who may do without the values.
func (db *DB) eachItem(
	ctx context.Context, txn *badger.Txn, prefix, from []byte, fn func(*badger.Item) (more bool, err error),
) error {
	// Values are not prefetched: many walks end early, or need only the keys.
	it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()

	if from == nil {
		from = prefix
	}

	n := 0
	more := true
	for it.Seek(from); it.Valid() && more; it.Next() {
		if n++; n%checkEvery == 0 {
			if err := db.stopped(ctx); err != nil {
				return err
			}
		}

		var err error
		more, err = fn(it.Item())
		if err != nil {
			return err
		}
	}
	return nil
}

// goneRow is the value of a row that was deleted but is still in a block: it hides that
// one.
var goneRow = []byte{0}

// mark is the value of the two keys where the first block begins, among the rows that
// stand alone. After them are only Badger's tombstones of packed rows, which a walk has
// to pass one by one until Badger has compacted them away. An iterator reads one key
// ahead, so with two marks it never gets there.
var mark = []byte{1}

// tagged is stored in place of mark for a span with metadata.
var tagged = []byte{2}

// largeState is the first byte of a state that may have deltas.
var largeState = []byte{1}

// packedStateMin is the size from which a state is packed: a smaller one is in the tables, which Badger
// packs itself.
const packedStateMin = valueThreshold

// appendTime appends a time as 12 bytes: seconds and nanoseconds.
func appendTime(b []byte, at time.Time) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(at.Unix()))
	return binary.BigEndian.AppendUint32(b, uint32(at.Nanosecond()))
}

// readTime reads what appendTime wrote. ok is false if it is too short.
func readTime(b []byte) (at time.Time, ok bool) {
	if len(b) < 12 {
		return time.Time{}, false
	}
	return time.Unix(int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint32(b[8:]))).UTC(), true
}

// Tables of an account; see the layout in doc.go.
const (
	tableRecord    = 'r'
	tableDelta     = 'e'
	tableBody      = 'b'
	tableBase      = 'a'
	tableTime      = 't'
	tableLate      = 'u'
	tableBlock     = 'd'
	tableColumn    = 'k'
	tableCount     = 'n'
	tableTombstone = 'x'
	tableSelector  = 'y'
	tableHidden    = 'p'
	tableOrphan    = 'o'
	tableSpan      = 'g'
	tableTrace     = 'j'
	tableSet       = 'm'
	tableRollup    = 's'
	tableWords     = 'w'
)

// The first byte of a key.
const (
	ofServer  = 0
	ofAccount = 1
	ofKind    = 2
)

// keys is what all keys of one account begin with. Its methods return its keys.
type keys string

// keysOf returns the keys of an account, whose id is far shorter than a byte can count.
func keysOf(account string) keys {
	return keys([]byte{ofAccount, byte(len(account))}) + keys(account)
}

// table returns what all keys of a table begin with, with capacity for the longest fixed
// rest.
func (k keys) table(table byte) []byte {
	return append(append(make([]byte, 0, len(k)+1+32), k...), table)
}

func (k keys) record(id uuid) []byte { return append(k.table(tableRecord), id[:]...) }

func (k keys) body(id, event uuid) []byte {
	return append(append(k.table(tableBody), id[:]...), event[:]...)
}

// base returns the key of what is packed against a body.
func (k keys) base(id, event uuid) []byte {
	return append(append(k.table(tableBase), id[:]...), event[:]...)
}

func (k keys) count() []byte { return k.table(tableCount) }

func (k keys) orphan(id uuid) []byte { return append(k.table(tableOrphan), id[:]...) }

// newest returns the key of a row that stands alone before the first block.
func (k keys) newest(place []byte) []byte { return append(k.table(tableTime), place...) }

// after returns the first key after newest.
func (k keys) behind(place []byte) []byte { return append(k.newest(place), 0) }

// late returns the key of a row that stands alone in a block's part of the list.
func (k keys) late(place []byte) []byte { return append(k.table(tableLate), place...) }

// block returns the key of a block's head.
func (k keys) block(place []byte) []byte { return append(k.table(tableBlock), place...) }

// part returns the key of a part of a block.
func (k keys) part(place []byte, part blocks.Part) []byte {
	return part.AppendTo(append(k.table(tableColumn), place...))
}

// span returns the key of a record that is only a span, by its place.
func (k keys) span(place []byte) []byte { return append(k.table(tableSpan), place...) }

// trace returns the key of a record that has a span of a trace.
func (k keys) trace(trace, id uuid) []byte {
	return append(append(k.table(tableTrace), trace[:]...), id[:]...)
}

// set returns the key of an archive.Set.
func (k keys) set(key uuid) []byte { return append(k.table(tableSet), key[:]...) }

// rollup returns the key of a roll-up.
func (k keys) rollup(kind rollup.Kind, name string) []byte {
	return append(append(k.table(tableRollup), byte(kind)), name...)
}

// deltas returns what the keys of all deltas of a record begin with.
func (k keys) deltas(id uuid) []byte { return append(k.table(tableDelta), id[:]...) }

func (k keys) delta(id uuid, after int) []byte {
	return binary.BigEndian.AppendUint32(k.deltas(id), uint32(after))
}

// deltaAfter reads archive.Delta.After from a key that delta returned.
func deltaAfter(key []byte) int { return int(binary.BigEndian.Uint32(key[len(key)-4:])) }

// hidden returns the key that finds a record by a metadata value that its row does not
// show.
func (k keys) hidden(hash [16]byte, id uuid) []byte {
	return append(append(k.table(tableHidden), hash[:]...), id[:]...)
}

// tombstone returns the key that keeps a deleted record out.
func (k keys) tombstone(id uuid) []byte { return append(k.table(tableTombstone), id[:]...) }

// selector returns the key that keeps out records with a metadata value; see
// rowcode.HashValue.
func (k keys) selector(hash [16]byte) []byte {
	return append(k.table(tableSelector), hash[:]...)
}

// placeOf returns the place of a position in a list. ok is false if its id is not a UUID.
func placeOf(p query.Position) ([]byte, bool) {
	id, ok := parseUUID(p.RequestID)
	return blocks.EncodePlace(p.At, id), ok
}

// accountOf splits a key of an account into its account's keys, the table and the rest.
func accountOf(key []byte) (k keys, table byte, rest []byte) {
	n := 2 + int(key[1])
	return keys(key[:n]), key[n], key[n+1:]
}

// eraseKey exists while something that was deleted may still be in the files.
var eraseKey = []byte{ofServer, 'x'}

// uuid is an id as in a key.
type uuid = archive.UUID

func parseUUID(s string) (uuid, bool) { return archive.ParseUUID(s) }
