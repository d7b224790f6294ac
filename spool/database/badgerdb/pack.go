package badgerdb

import (
	"bytes"
	"context"
	"slices"
	"sort"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/crashpoint"
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
	bytes   int // of the rows of a block; a single larger row has its own block
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

	// The caller that asked for it packs now; rows that others write meanwhile count
	// again.
	db.unpacked[k] = 0
	return true
}

// pack puts rows that stand alone into blocks, one block at a time; other writes come in
// between.
func (db *DB) pack(ctx context.Context, k keys) error {
	_, err := db.packSome(ctx, k, (*packing).crowded)
	return err
}

// packSome is pack for spans that are due, and reports whether it left such blocks.
func (db *DB) packSome(ctx context.Context, k keys, due func(*packing, *span) bool) (left bool, err error) {
	err = db.packChosen(ctx, k, func(spans []span) []span {
		chosen := slices.DeleteFunc(spans, func(s span) bool { return !due(&db.packing, &s) })

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

// packAll packs all spans that are due, of all accounts. Writers come in between.
func (db *DB) packAll(ctx context.Context, due func(*packing, *span) bool) error {
	accounts, err := db.accountKeys()
	for k := range accounts {
		for left := true; left && err == nil; {
			left, err = db.packSome(ctx, k, due)
			crashpoint.Reach(crashpoint.RenewWritten)
		}
	}
	return err
}

// packChosen packs the spans that choose returns.
func (db *DB) packChosen(ctx context.Context, k keys, choose func(spans []span) []span) error {
	// One at a time, for its memory.
	db.packOne.Lock()
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

// old reports whether a span has a block of an earlier form.
func (p *packing) old(s *span) bool { return s.place != nil && s.head.IsOld() }

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

	// Rows of tableTime are counted up to the first block only: after it are just the
	// marks, and Badger's tombstones of packed rows.
	if err := db.countLone(txn, k, spans[:1], tableTime); err != nil {
		return nil, err
	}
	return spans, db.countLone(txn, k, spans, tableLate)
}

// countLone counts the rows of a table in spans. It stops after the last span.
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
	// Since the span was read, a block may have come after it.
	s.next, err = db.nextBlock(ctx, txn, k, s.place)
	if err != nil {
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

	// Rows that do not fit stay alone after all packed ones, so in some block's part of
	// the list. There is always a block for them: deleted rows weigh nothing, so the
	// packed part has at least one row.
	n := fit(lone, len(lone), db.packing.bytes)
	step.left = n < len(lone)
	step.late = lone[:n]

	rows, before, err := db.merge(txn, k, s.place, head, step.late)
	if err != nil {
		return step, err
	}

	step.from, step.to = s.place, s.next
	step.writes = k.removeBlock(s.place, &head)
	for len(rows) > 0 {
		n := db.packing.next(rows)
		if err := db.addBlock(ctx, txn, k, &step, rows[:n], before); err != nil {
			return step, err
		}
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

// packNewest packs the oldest of the rows before the first block. They join the first
// block while that has space, so that no small blocks remain; otherwise they get a new
// one.
func (db *DB) packNewest(
	ctx context.Context, txn *badger.Txn, k keys, s span, lone []lone,
) (step packStep, err error) {
	p := &db.packing
	if len(lone) < p.step+p.newest {
		return step, nil
	}
	// The oldest first, while they are chosen.
	slices.Reverse(lone)
	lone = lone[:fit(lone[:len(lone)-p.newest], p.rows, p.bytes)]
	slices.Reverse(lone)

	step.more = true
	step.newest = lone
	step.from, step.first, step.to = lone[0].place[:], s.next, s.next

	var behind []blocks.Placed
	var before packed
	if s.next != nil {
		behind, before, err = db.takeFirst(ctx, txn, k, s.next, &step)
		if err != nil {
			return step, err
		}
	}

	// The new block is before the old first one, so its rows come first.
	rows, err := db.readLone(txn, k.newest, lone)
	if err != nil {
		return step, err
	}
	rows = append(rows, behind...)
	if len(rows) > 0 {
		err = db.addBlock(ctx, txn, k, &step, rows, before)
	}
	return step, err
}

// takeFirst moves the rows of the first block into a step if they fit after the rows of
// the step. It returns none if they do not.
func (db *DB) takeFirst(
	ctx context.Context, txn *badger.Txn, k keys, place []byte, step *packStep,
) (rows []blocks.Placed, packed packed, err error) {
	before := step.newest
	head, _, err := loadHead(txn, k, place)
	if err != nil || head.Rows+len(before) > db.packing.rows {
		return nil, packed, err
	}

	first := span{place: place}
	first.next, err = db.nextBlock(ctx, txn, k, place)
	if err != nil {
		return nil, packed, err
	}
	in, err := db.lonePlaces(ctx, txn, k, first)
	if err != nil {
		return nil, packed, err
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
		return nil, packed, nil
	}

	rows, packed, err = db.merge(txn, k, place, head, in)
	if err != nil {
		return nil, packed, err
	}

	step.late, step.to = in, first.next
	step.writes = k.removeBlock(place, &head)
	return rows, packed, nil
}

// rowsWritten packs an account's rows when there are enough. A writer of many rows waits
// until that is done; a writer of few does not wait for what others wrote. Packing only
// rearranges what is already stored, so its failure does no harm.
func (db *DB) rowsWritten(k keys, rows int) {
	if !db.due(k, rows) {
		return
	}
	// A caller that writes that much waits for its packing, or rows would pile up faster
	// than they are packed.
	if rows >= db.packing.every/packedByFew {
		db.packNow(k)
		return
	}

	db.packMu.Lock()
	defer db.packMu.Unlock()

	switch {
	case db.packEnded:
		// The database is being closed.
	case db.packingInBackground:
		// The next write tries again.
		db.unpacked[k] = db.packing.every
	default:
		db.packingInBackground = true
		db.packers.Go(func() {
			db.packNow(k)

			db.packMu.Lock()
			db.packingInBackground = false
			db.packMu.Unlock()
		})
	}
}

// packedByFew sets what counts as few rows: less than this fraction of packing.every.
const packedByFew = 16

// packNow packs an account's rows, and logs a failure that the caller need not know.
func (db *DB) packNow(k keys) {
	if err := db.pack(context.Background(), k); err != nil && !wire.IsCode(err, wire.CodeUnavailable) {
		db.logger.Error("rows could not be packed into blocks; searches still work, but slower", "error", err)
	}
}
