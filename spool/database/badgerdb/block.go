package badgerdb

import (
	"bytes"
	"context"

	"github.com/dgraph-io/badger/v4"

	"promptspool/spool/archive/rowcode"
	"promptspool/spool/archive/textindex"
	"promptspool/spool/database/badgerdb/blocks"
	"promptspool/spool/database/compress"
)

// block is a block with the transaction that it is read in.
type block struct {
	blocks.Block

	txn   *badger.Txn
	codec *compress.Codec
	keys  keys
}

// open moves on to another block; see blocks.Block.
func (b *block) open(place []byte, head blocks.Head) { b.Open(b, place, head) }

// openAt moves on to the block that an iterator over heads is at.
func (b *block) openAt(heads *badger.Iterator) error {
	key := heads.Item().KeyCopy(nil)
	var head blocks.Head
	err := heads.Item().Value(func(value []byte) (err error) {
		head, err = blocks.DecodeHead(value)
		return err
	})
	if err != nil {
		return damaged(key, err)
	}
	b.open(key[len(key)-blocks.PlaceBytes:], head)

	return nil
}

// Read reads a part of the block at a place; see blocks.Reader.
func (b *block) Read(place []byte, part blocks.Part, buffer []byte) ([]byte, error) {
	return readPacked(b.txn, b.codec, b.keys.part(place, part), buffer)
}

// Damaged names the key of a part that cannot be decoded; see blocks.Reader.
func (b *block) Damaged(place []byte, part blocks.Part, cause error) error {
	return damaged(b.keys.part(place, part), cause)
}

// readSummary reads the block's summary, into buffer if that has space. Without one it is
// empty.
func (b *block) readSummary(buffer []byte) ([]byte, error) {
	return b.Read(b.Place, blocks.Summary, buffer)
}

// writeBlock returns the writes of a block at a place. There must be rows, in order.
func writeBlock(c *compress.Codec, k keys, place []byte, rows []blocks.Placed) []write {
	head := blocks.HeadOf(rows)
	writes := []write{
		{k.block(place), head.Encode()},
		{k.newest(place), mark},
		{k.behind(place), mark},
	}

	blocks.Encode(&head, rows, func(part blocks.Part, plain []byte) {
		var value []byte
		if part == blocks.Summary {
			// Not packed: unpacking it would take as long as merging it.
			value = compress.Plain(plain)
		} else {
			value = c.Column(plain)
		}

		writes = append(writes, write{k.part(place, part), value})
	})

	return writes
}

// removeBlock returns the writes that delete a block.
func (k keys) removeBlock(place []byte, head *blocks.Head) []write {
	writes := []write{
		{key: k.block(place)},
		{key: k.newest(place)},
		{key: k.behind(place)},
	}
	for _, part := range head.Parts() {
		writes = append(writes, write{key: k.part(place, part)})
	}
	for page := range textindex.Pages {
		writes = append(writes, write{key: k.words(page, place)})
	}
	return writes
}

// nextBlock returns the place of the first block after a place, or nil if there is none.
// A nil place is before all blocks.
func (db *DB) nextBlock(ctx context.Context, txn *badger.Txn, k keys, place []byte) (next []byte, err error) {
	from := k.block(place)
	if place != nil {
		from = append(from, 0)
	}

	err = db.each(ctx, txn, k.table(tableBlock), from, func(key, _ []byte) (bool, error) {
		next = bytes.Clone(key[len(key)-blocks.PlaceBytes:])
		// The first is enough.
		return false, nil
	})
	return next, err
}

// lonePlaces returns the rows that stand alone in a span, without their values.
func (db *DB) lonePlaces(ctx context.Context, txn *badger.Txn, k keys, s span) (rows []lone, err error) {
	table := k.newest
	if s.place != nil {
		table = k.late
	}

	it := txn.NewIterator(badger.IteratorOptions{Prefix: table(nil)})
	defer it.Close()
	for it.Seek(table(s.place)); it.Valid(); it.Next() {
		if len(rows)%checkEvery == 0 {
			if err := db.stopped(ctx); err != nil {
				return nil, err
			}
		}

		key := it.Item().Key()
		l := lone{bytes: int(it.Item().ValueSize())}
		copy(l.place[:], key[len(key)-blocks.PlaceBytes:])
		if s.next != nil && bytes.Compare(l.place[:], s.next) >= 0 {
			break
		}
		rows = append(rows, l)
	}
	return rows, nil
}

// readLone reads rows of a table, without those that were deleted.
func (db *DB) readLone(txn *badger.Txn, table func(place []byte) []byte, lone []lone) ([]blocks.Placed, error) {
	rows := make([]blocks.Placed, 0, len(lone))
	for i := range lone {
		l := lone[i]
		if err := l.load(txn, table(l.place[:])); err != nil {
			return nil, err
		}

		// It hides a row of the block, and brings none.
		if bytes.Equal(l.value, goneRow) {
			continue
		}

		rows = append(rows, blocks.Placed{Place: l.place})
		if err := l.read(&rows[len(rows)-1].Row, rowcode.AllColumns); err != nil {
			return nil, damaged(table(l.place[:]), err)
		}
	}
	return rows, nil
}

// merge returns a block's rows, with those that stand alone in its part in place of the
// rows that they hide. before is the block until now.
func (db *DB) merge(
	txn *badger.Txn, k keys, place []byte, head blocks.Head, lone []lone,
) (rows []blocks.Placed, before packed, err error) {
	alone, err := db.readLone(txn, k.late, lone)
	if err != nil {
		return nil, before, err
	}

	// By place, and including deleted rows: those hide a row and bring none.
	hidden := make(map[blocks.Place]bool, len(lone))
	for i := range lone {
		hidden[lone[i].place] = true
	}

	b := block{txn: txn, codec: db.codec, keys: k}
	b.open(place, head)
	before, err = packedRows(&b)
	if err != nil {
		return nil, before, err
	}
	before.forget(hidden, alone)
	rows, err = b.Merge(alone, hidden)

	return rows, before, err
}

// loneKey returns the key under which the row of a place stands alone. Only changes call
// it, because db.firsts is theirs.
func (db *DB) loneKey(txn *badger.Txn, k keys, place []byte) ([]byte, error) {
	// Asked for every row that is written, so remembered until the first block changes.
	first, known := db.firsts[k]
	if !known {
		var err error
		first, err = db.nextBlock(context.Background(), txn, k, nil)
		if err != nil {
			return nil, err
		}

		db.firsts[k] = first
	}

	if first != nil && bytes.Compare(place, first) >= 0 {
		return k.late(place), nil
	}
	return k.newest(place), nil
}

// loadHead reads the head of the block that begins at a place.
func loadHead(txn *badger.Txn, k keys, place []byte) (head blocks.Head, found bool, err error) {
	key := k.block(place)
	raw, err := loadBytes(txn, key)
	if raw == nil || err != nil {
		return head, false, err
	}
	head, err = blocks.DecodeHead(raw)
	if err != nil {
		return head, false, damaged(key, err)
	}
	return head, true, nil
}

// hide returns the write that takes the row of a place out of the list. Before the first block the row's own
// key is deleted. A row in a block cannot be removed, so a goneRow hides it, or nothing if the block has none.
func (db *DB) hide(txn *badger.Txn, k keys, place []byte) (write, error) {
	key, err := db.loneKey(txn, k, place)
	if err != nil || key[len(k)] == tableTime {
		return write{key: key}, err
	}
	return write{key, goneRow}, nil
}
