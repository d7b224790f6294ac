package badgerdb

import (
	"bytes"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/badgerdb/blocks"
)

// farBlock is a block that is opened later on.
type farBlock struct {
	place []byte
	head  blocks.Head
}

// far returns how to find the place of the block's row i later on: few are needed, and
// their column is the largest.
func (s *scan) far(i int) query.Locate {
	// One for all rows of the block: there may be many.
	if s.farther == nil || !bytes.Equal(s.farther.place, s.block.Place) {
		s.farther = &farBlock{bytes.Clone(s.block.Place), s.block.Head}
	}
	of := s.farther

	return func() (query.Position, error) {
		b := &s.located
		b.txn, b.codec, b.keys = s.txn, s.db.codec, s.keys
		if !bytes.Equal(b.Place, of.place) {
			b.open(of.place, of.head)
		}

		row, err := b.Row(i, rowcode.PlaceColumns)
		if err != nil {
			return query.Position{}, err
		}
		return query.PositionOf(row), nil
	}
}

// runOldestFirst is run from the oldest block to the newest. Within a block, rows still
// come newest first.
func (s *scan) runOldestFirst() error {
	heads := s.txn.NewIterator(badger.IteratorOptions{Prefix: s.keys.table(tableBlock), Reverse: true})
	defer heads.Close()

	// From the block on that has the oldest rows of the span, or what comes before them.
	if from, _ := s.query.Span(); !from.IsZero() {
		heads.Seek(s.keys.block(blocks.EncodePlace(from, uuid{})))
	} else {
		heads.Seek(append(s.keys.table(tableBlock), 0xff))
	}

	next, err := s.db.nextBlock(s.ctx, s.txn, s.keys, placeAt(heads))
	if err != nil {
		return err
	}
	late := s.txn.NewIterator(badger.IteratorOptions{Prefix: s.keys.table(tableLate), Reverse: true})
	defer late.Close()
	if next == nil {
		late.Seek(append(s.keys.table(tableLate), 0xff))
	} else {
		late.Seek(s.keys.late(next))
	}

	newest := true
	for ; heads.Valid() && newest; heads.Next() {
		if err := s.db.stopped(s.ctx); err != nil {
			return err
		}
		if err := s.block.openAt(heads); err != nil {
			return err
		}

		// Nothing above the end of the span is wanted.
		begin := s.block.Place
		if newest = s.after == nil || bytes.Compare(begin, s.after) > 0; !newest {
			begin = s.after
		}
		if err := s.collectAloneBackwards(late, begin, next); err != nil {
			return err
		}
		if err := s.visitBlock(); err != nil {
			return err
		}
		next = bytes.Clone(s.block.Place)
	}

	if !newest {
		return nil
	}
	first := s.txn.NewIterator(badger.IteratorOptions{Prefix: s.keys.table(tableBlock)})
	defer first.Close()
	first.Rewind()

	return s.visitNewest(first)
}

// collectAloneBackwards is collectAlone for rows that come oldest first, down to the place begin.
func (s *scan) collectAloneBackwards(rows *badger.Iterator, begin, next []byte) error {
	s.alone = s.alone[:0]
	for left := aloneBytes; rows.Valid() && !before(rows, begin); rows.Next() {
		// The walk may begin at the next block's place.
		if !before(rows, next) {
			continue
		}
		if err := s.collectOneAlone(rows.Item(), &left); err != nil {
			return err
		}
	}
	slices.Reverse(s.alone)
	return nil
}

// verdict returns which rows of the block may match, and sets which of them the finder
// only counts.
func (s *scan) verdict() (v blocks.Verdict, err error) {
	b := &s.block
	if s.passed = nil; s.finder == nil {
		return b.Evaluate(s.query)
	}

	enter, err := b.Within(s.finder.Bounds())
	if err != nil {
		return v, err
	}
	if !s.finder.Counts() && enter.Within(0, b.Head.Rows) < 0 {
		return blocks.Verdict{Must: enter, May: enter}, nil
	}
	if v, err = b.Evaluate(s.query); err != nil {
		return v, err
	}

	// Rows that certainly match and cannot enter are counted. Where only the row can
	// decide, it is visited.
	s.passed = v.Must.Without(enter)
	v.Must, v.May = v.Must.Without(s.passed), v.May.Without(s.passed)

	return v, nil
}
