package badgerdb

import (
	"bytes"
	"context"
	"slices"
	"sort"

	"github.com/dgraph-io/badger/v4"

	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/badgerdb/blocks"
)

// packing holds the sizes that decide when rows are packed, and into how large blocks.
//
// Rows come in one by one and stand alone until there are enough for a block. The newest
// stay alone for a while, because scores and metadata often arrive soon after.
//
// Lists go by the start of calls, so slow calls and imports of old ones come into many
// blocks at a time. A look packs only some of these: so each row costs no more than its
// share of them, in whatever order rows come. Tidying packs the rest.
type packing struct {
	every   int // rows written between two looks for something to pack
	newest  int // newest rows that stay alone
	step    int // rows beyond those that are worth packing
	inBlock int // rows that may stand alone in a block's part of the list
	blocks  int // packed again by one look, those with the most such rows
	rows    int // per block; half as many again once rows came in between
	bytes   int // of the rows of a block, likewise; a single larger row has a block of its own
}

var packingDefault = packing{
	every:   1024,
	newest:  512,
	step:    1024,
	inBlock: 128,
	blocks:  2,
	rows:    4096,
	bytes:   4 << 20,
}

// span is a part of the list: a block with the rows that stand alone in it, or everything
// before the first block.
type span struct {
	place []byte // where its block begins; nil before the first block
	next  []byte // where the following block begins; nil for the last span
	head  blocks.Head
	lone  int // rows that stand alone
}

// due counts rows written for an account and reports whether it is time to pack.
func (db *DB) due(k keys, rows int) bool {
	db.packMu.Lock()
	defer db.packMu.Unlock()

	db.unpacked[k] += rows
	if db.unpacked[k] < db.packing.every {
		return false
	}

	// Whoever asked for it packs now; what others write meanwhile counts anew.
	db.unpacked[k] = 0
	return true
}

// pack puts rows that stand alone into blocks, one block at a time; other writes come in
// between.
func (db *DB) pack(ctx context.Context, k keys) error {
	_, err := db.packSome(ctx, k)
	return err
}

// packSome is pack, and reports whether it left crowded blocks.
func (db *DB) packSome(ctx context.Context, k keys) (left bool, err error) {
	err = db.packCrowded(ctx, k, func(spans []span) []span {
		chosen := slices.DeleteFunc(spans, func(s span) bool { return !db.packing.crowded(&s) })

		// The rows before the first block always, and of the blocks those with the most rows.
		first := 0
		if len(chosen) > 0 && chosen[0].place == nil {
			first = 1
		}
		late := chosen[first:]
		sort.SliceStable(late, func(i, j int) bool { return late[i].lone > late[j].lone })
		left = len(late) > db.packing.blocks

		return chosen[:first+min(len(late), db.packing.blocks)]
	})
	return left, err
}

// packRest packs what pack has left, of all accounts. Writers come in between.
func (db *DB) packRest(ctx context.Context) error {
	accounts, err := db.accountKeys()
	for k := range accounts {
		for left := true; left && err == nil; {
			left, err = db.packSome(ctx, k)
		}
	}
	return err
}

// packCrowded packs the spans that choose returns.
func (db *DB) packCrowded(ctx context.Context, k keys, choose func(spans []span) []span) error {
	db.packOne.Lock() // one at a time, for its memory
	defer db.packOne.Unlock()

	// A short read of heads and keys each time: the rows themselves are read step by step.
	for {
		var spans []span
		err := db.view(func(txn *badger.Txn) (err error) {
			spans, err = db.spans(ctx, txn, k)
			return err
		})
		if err != nil {
			return err
		}

		left := false
		for _, s := range choose(spans) {
			// Each step commits by itself, so an end in between loses nothing.
			for more := true; more; {
				step, err := db.packStep(ctx, k, s)
				if err != nil {
					return err
				}
				more = step.more
				left = left || step.left
			}
		}

		// Rows that were left are now in other spans, so the spans have to be read again.
		if !left {
			return nil
		}
	}
}

// crowded reports whether a span has enough rows to pack.
func (p *packing) crowded(s *span) bool {
	if s.place == nil {
		return s.lone >= p.step+p.newest
	}
	return s.lone >= p.inBlock
}

// spans returns the parts of the list, newest first.
func (db *DB) spans(ctx context.Context, txn *badger.Txn, k keys) ([]span, error) {
	spans := []span{{}}
	err := db.each(ctx, txn, k.table(tableBlock), nil, func(key, value []byte) (bool, error) {
		head, err := blocks.DecodeHead(value)
		if err != nil {
			return false, damaged(key, err)
		}
		place := bytes.Clone(key[len(key)-blocks.PlaceBytes:])
		spans[len(spans)-1].next = place
		spans = append(spans, span{place: place, head: head})

		return true, nil
	})
	if err != nil {
		return nil, err
	}

	// Rows of tableTime are counted up to the first block only: behind it are just the
	// marks, and Badger's tombstones of packed rows.
	if err := db.countLone(txn, k, spans[:1], tableTime); err != nil {
		return nil, err
	}
	return spans, db.countLone(txn, k, spans, tableLate)
}

// countLone counts the rows of a table in spans. It stops behind the last span.
func (db *DB) countLone(txn *badger.Txn, k keys, spans []span, table byte) error {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: k.table(table)})
	defer it.Close()

	i := 0
	for it.Rewind(); it.Valid(); it.Next() {
		key := it.Item().Key()
		// Keys and spans are in the same order, so one pass over both is enough.
		for spans[i].next != nil && bytes.Compare(key[len(key)-blocks.PlaceBytes:], spans[i].next) >= 0 {
			if i++; i == len(spans) {
				return nil
			}
		}

		spans[i].lone++
	}
	return nil
}

// packSpan packs a span, or one block off its old end. It only computes the step.
func (db *DB) packSpan(ctx context.Context, txn *badger.Txn, k keys, s span) (step packStep, err error) {
	// Since the span was read, a block may have come behind it.
	if s.next, err = db.nextBlock(ctx, txn, k, s.place); err != nil {
		return step, err
	}
	lone, err := db.lonePlaces(ctx, txn, k, s)
	if err != nil {
		return step, err
	}

	if s.place == nil {
		return db.packNewest(ctx, txn, k, s, lone)
	}

	head, found, err := loadHead(txn, k, s.place)
	if err != nil || !found {
		return step, err
	}

	// Rows that do not fit stay alone behind all that is packed, so in some block's part
	// of the list. There is always a block for them: deleted rows weigh nothing, so the
	// packed part has at least one row.
	n := fit(lone, len(lone), db.packing.bytes)
	step.left = n < len(lone)
	step.late = lone[:n]

	rows, err := db.merge(txn, k, s.place, head, step.late)
	if err != nil {
		return step, err
	}

	step.from, step.to = s.place, s.next
	step.writes = k.removeBlock(s.place, &head)
	for len(rows) > 0 {
		n := db.packing.next(rows)
		step.writeBlock(db.codec, k, rows[:n])
		rows = rows[n:]
	}
	return step, nil
}

// fit returns how many of the first rows, at most a number, are packed together. The last
// of them is the one that reaches the given bytes.
func fit(lone []lone, most, bytes int) (n int) {
	for n < len(lone) && n < most && bytes > 0 {
		bytes -= lone[n].bytes
		n++
	}
	return n
}

// next returns how many of the rows go into the next block.
func (p *packing) next(rows []blocks.Placed) (n int) {
	bytes := blocks.Weight(rows)
	if len(rows) <= p.rows+p.rows/2 && bytes <= p.bytes+p.bytes/2 {
		return len(rows)
	}

	// At least one row, however heavy: else there would be no end.
	for bytes = 0; n < len(rows) && n < p.rows; n++ {
		bytes += rowcode.Weight(&rows[n].Row)
		if n > 0 && bytes > p.bytes {
			break
		}
	}
	return n
}

// nextBlock returns the place of the first block behind a place, or nil if there is none.
// A nil place is before all blocks.
func (db *DB) nextBlock(ctx context.Context, txn *badger.Txn, k keys, place []byte) (next []byte, err error) {
	from := k.block(place)
	if place != nil {
		from = append(from, 0)
	}

	err = db.each(ctx, txn, k.table(tableBlock), from, func(key, _ []byte) (bool, error) {
		next = bytes.Clone(key[len(key)-blocks.PlaceBytes:])
		return false, nil // the first is enough
	})
	return next, err
}

// packNewest packs the oldest of the rows before the first block. They join the first
// block while that has room, so that no small blocks remain; otherwise they get one of
// their own.
func (db *DB) packNewest(
	ctx context.Context, txn *badger.Txn, k keys, s span, lone []lone,
) (step packStep, err error) {
	p := &db.packing
	if len(lone) < p.step+p.newest {
		return step, nil
	}
	slices.Reverse(lone) // the oldest first, while they are chosen
	lone = lone[:fit(lone[:len(lone)-p.newest], p.rows, p.bytes)]
	slices.Reverse(lone)

	step.more = true
	step.newest = lone
	step.from, step.first, step.to = lone[0].place[:], s.next, s.next

	var behind []blocks.Placed
	if s.next != nil {
		if behind, err = db.takeFirst(ctx, txn, k, s.next, &step); err != nil {
			return step, err
		}
	}

	// The new block stands before the old first one, so its rows come first.
	rows, err := db.readLone(txn, k.newest, lone)
	if err != nil {
		return step, err
	}
	if rows = append(rows, behind...); len(rows) > 0 {
		step.writeBlock(db.codec, k, rows)
	}
	return step, nil
}

// takeFirst moves the rows of the first block into a step if they fit behind the rows of
// the step. It returns none if they do not.
func (db *DB) takeFirst(
	ctx context.Context, txn *badger.Txn, k keys, place []byte, step *packStep,
) (rows []blocks.Placed, err error) {
	before := step.newest
	head, _, err := loadHead(txn, k, place)
	if err != nil || head.Rows+len(before) > db.packing.rows {
		return nil, err
	}

	first := span{place: place}
	if first.next, err = db.nextBlock(ctx, txn, k, place); err != nil {
		return nil, err
	}
	in, err := db.lonePlaces(ctx, txn, k, first)
	if err != nil {
		return nil, err
	}

	// An estimate: the head has the weight of rows as they are in memory, a lone row that
	// of its value.
	bytes := head.Weight
	for _, part := range [][]lone{before, in} {
		for i := range part {
			bytes += part[i].bytes
		}
	}
	if bytes > db.packing.bytes {
		return nil, nil
	}

	if rows, err = db.merge(txn, k, place, head, in); err != nil {
		return nil, err
	}

	step.late, step.to = in, first.next
	step.writes = k.removeBlock(place, &head)
	return rows, nil
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
// rows that they hide.
func (db *DB) merge(txn *badger.Txn, k keys, place []byte, head blocks.Head, lone []lone) ([]blocks.Placed, error) {
	alone, err := db.readLone(txn, k.late, lone)
	if err != nil {
		return nil, err
	}

	// By place, and including deleted rows: those hide a row and bring none.
	hidden := make(map[blocks.Place]bool, len(lone))
	for i := range lone {
		hidden[lone[i].place] = true
	}

	b := block{txn: txn, codec: db.codec, keys: k}
	b.open(place, head)

	return b.Merge(alone, hidden)
}

// newest returns the key of a row that stands alone before the first block.
func (k keys) newest(place []byte) []byte { return append(k.table(tableTime), place...) }

// behind returns the first key behind newest.
func (k keys) behind(place []byte) []byte { return append(k.newest(place), 0) }

// late returns the key of a row that stands alone in a block's part of the list.
func (k keys) late(place []byte) []byte { return append(k.table(tableLate), place...) }

// loneKey returns the key under which the row of a place stands alone. Only changes call
// it, because db.firsts is theirs.
func (db *DB) loneKey(txn *badger.Txn, k keys, place []byte) ([]byte, error) {
	// Asked for every row that is written, so remembered until the first block changes.
	first, known := db.firsts[k]
	if !known {
		var err error
		if first, err = db.nextBlock(context.Background(), txn, k, nil); err != nil {
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
	if head, err = blocks.DecodeHead(raw); err != nil {
		return head, false, damaged(key, err)
	}
	return head, true, nil
}

// owner returns the block whose part of the list a place is in, and whether it has a row
// there.
func (db *DB) owner(txn *badger.Txn, k keys, place []byte) (b *block, found bool, err error) {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: k.table(tableBlock), Reverse: true})
	defer it.Close()

	// Backwards from the place: the block that begins there, or else the one before.
	it.Seek(k.block(place))
	if !it.Valid() {
		return nil, false, nil
	}

	key := it.Item().KeyCopy(nil)
	value, err := it.Item().ValueCopy(nil)
	if err != nil {
		return nil, false, damaged(key, err)
	}
	head, err := blocks.DecodeHead(value)
	if err != nil {
		return nil, false, damaged(key, err)
	}

	b = &block{txn: txn, codec: db.codec, keys: k}
	b.open(key[len(key)-blocks.PlaceBytes:], head)
	_, found, err = b.Find(place)
	return b, found, err
}

// hide returns the write that takes the row of a place out of the list. A row in a block
// cannot be removed, so a goneRow hides it.
func (db *DB) hide(txn *badger.Txn, k keys, place []byte) (write, error) {
	// Before the first block nothing is hidden: the row's own key is deleted.
	key, err := db.loneKey(txn, k, place)
	if err != nil || key[len(k)] == tableTime {
		return write{key: key}, err
	}

	_, found, err := db.owner(txn, k, place)
	if err != nil || !found {
		return write{key: key}, err
	}
	return write{key, goneRow}, nil
}
