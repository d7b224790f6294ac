package badgerdb

import (
	"bytes"
	"cmp"
	"context"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/archive/textindex"
	"promptspool/spool/database/badgerdb/blocks"
)

// scan is one pass over an account's list: the rows that stand alone and the blocks,
// merged.
type scan struct {
	db    *DB
	ctx   context.Context
	txn   *badger.Txn
	keys  keys
	query *query.Query
	needs rowcode.Columns // that the filter reads
	visit func(m *match) (more bool, err error)

	// skip may take the block, with the rows that stand alone in it, as a whole. nil:
	// never.
	skip func() bool

	// finder makes a page in an order other than time. It needs few rows of a block, and
	// only their number of the others. nil: every match is visited.
	finder      *query.Finder
	passed      blocks.Bits // the matches of the current block that the finder only counts
	located     block       // that far read last
	farther     *farBlock   // that far was last asked for
	oldestFirst bool        // blocks come the other way round

	after []byte           // a place: rows up to it are left out; nil means none are
	judge query.Judge      // of rows that the columns leave open
	seen  int              // rows before the first block, to look at ctx now and then
	block block            // the current one
	row   wire.Row         // the current one that stands alone
	terms []textindex.Term // that the query looks for
	page  []byte           // memory for a page of words
	alone []lone           // that stand alone in the block's part of the list
	done  bool             // visit wants no more, the budget is spent, or there was an error
	err   error            // the first
}

// fail ends the scan if there is an error, and reports whether it is over.
func (s *scan) fail(err error) bool {
	if err != nil && s.err == nil {
		s.err, s.done = err, true
	}
	return s.done
}

// match is a row that was found. It is lent until visit returns.
type match struct {
	block *block // nil for a row that stands alone
	index int
	lone  *lone
	row   *wire.Row
}

// lone is a row that stands alone.
type lone struct {
	place blocks.Place
	bytes int    // of the value
	value []byte // nil until it is read
}

// load reads the value.
func (l *lone) load(txn *badger.Txn, key []byte) error {
	item, err := txn.Get(key)
	if err != nil {
		return damaged(key, err)
	}
	return l.take(item)
}

// fill returns the row with the wanted columns.
func (m *match) fill(want rowcode.Columns) (*wire.Row, error) {
	if m.block != nil {
		return m.block.Row(m.index, want)
	}
	return m.row, m.lone.read(m.row, want)
}

// read fills in the wanted columns of a row.
func (l *lone) read(row *wire.Row, want rowcode.Columns) error {
	at, id := blocks.DecodePlace(l.place[:])
	row.ListTime = at
	if want.Has(rowcode.ColumnID) {
		row.RequestID = uuid(id).String()
		row.ID = row.RequestID
	}

	// The key alone may have everything wanted.
	if want&^rowcode.PlaceColumns == 0 {
		return nil
	}

	return rowcode.Decode(l.value, want, row)
}

// newScan prepares a pass over the rows that match q.
func (db *DB) newScan(ctx context.Context, txn *badger.Txn, k keys, q *query.Query) (*scan, error) {
	s := &scan{
		db:    db,
		ctx:   ctx,
		txn:   txn,
		keys:  k,
		query: q,
		needs: q.Columns(),
		judge: query.NewJudge(q),
		block: block{txn: txn, codec: db.codec, keys: k},
	}

	if q.After != nil {
		var ok bool
		s.after, ok = placeOf(*q.After)
		if !ok {
			return nil, archive.BadID(q.After.RequestID)
		}
	}

	if _, to := q.Span(); !to.IsZero() {
		// The list begins with the newest row. Every place after to comes before end, and
		// no row is at end: no record has the zero id.
		if end := blocks.EncodePlace(to.Add(1), uuid{}); s.after == nil || bytes.Compare(end, s.after) > 0 {
			s.after = end
		}
	}

	s.terms = q.Terms()
	return s, nil
}

// run calls visit for every match until it wants no more.
func (s *scan) run() error {
	if s.oldestFirst {
		s.runOldestFirst()
	} else {
		s.runNewestFirst()
	}

	return s.err
}

func (s *scan) runNewestFirst() {
	// Where to begin: a place after the first block's is in a block, which owns it.
	heads := s.txn.NewIterator(badger.IteratorOptions{Prefix: s.keys.table(tableBlock)})
	defer heads.Close()
	inBlock := false
	if s.after == nil {
		heads.Rewind()
	} else if owner := s.owner(s.after); owner != nil {
		heads.Seek(owner)
		inBlock = true
	} else {
		heads.Seek(s.keys.block(s.after))
	}

	if !inBlock {
		s.visitNewest(heads)
	}
	if s.done || !heads.Valid() {
		return
	}

	// Then block by block, each with the rows that stand alone in its part of the list.
	late := s.rows(tableLate)
	defer late.Close()
	for heads.Valid() && s.open(heads) {
		// heads is now at the next block, where this one's part ends.
		heads.Next()
		s.collectAlone(late, placeAt(heads))
		if s.skip == nil || !s.skip() {
			s.visitBlock()
		}

		if from, _ := s.query.Span(); !from.IsZero() && s.block.Head.Oldest < from.Unix() {
			// All blocks after it are older still.
			return
		}
	}
}

// open makes the block that an iterator is at the current one, unless the scan is over.
func (s *scan) open(heads *badger.Iterator) bool {
	return !s.fail(s.db.stopped(s.ctx)) && !s.fail(s.block.openAt(heads))
}

// placeAt returns the place of the block that an iterator is at, or nil after the last.
func placeAt(heads *badger.Iterator) []byte {
	if !heads.Valid() {
		return nil
	}
	key := heads.Item().Key()
	return key[len(key)-blocks.PlaceBytes:]
}

// rows returns an iterator over the rows of a table that stand alone, after s.after.
func (s *scan) rows(table byte) *badger.Iterator {
	it := s.txn.NewIterator(badger.IteratorOptions{Prefix: s.keys.table(table)})
	if s.after == nil {
		it.Rewind()
	} else {
		it.Seek(append(append(s.keys.table(table), s.after...), 0))
	}
	return it
}

// owner returns the key of the block that owns a place, or nil if there is none.
func (s *scan) owner(place []byte) []byte {
	it := s.txn.NewIterator(badger.IteratorOptions{Prefix: s.keys.table(tableBlock), Reverse: true})
	defer it.Close()

	// Backwards: the last block that begins at the place or before it.
	it.Seek(s.keys.block(place))
	if it.Valid() {
		return it.Item().KeyCopy(nil)
	}
	return nil
}

// before reports whether the next row that stands alone is before a block's place. A nil
// place is after all rows.
func before(rows *badger.Iterator, place []byte) bool {
	if !rows.Valid() {
		return false
	}

	// Keys of two tables, so only their places can be compared.
	row := rows.Item().Key()
	return place == nil || bytes.Compare(row[len(row)-blocks.PlaceBytes:], place) < 0
}

// visitNewest visits the rows before the first block.
func (s *scan) visitNewest(heads *badger.Iterator) {
	rows := s.rows(tableTime)
	defer rows.Close()

	var l lone
	from, _ := s.query.Span()
	for first := placeAt(heads); before(rows, first) && !s.done; rows.Next() {
		// Rows that do not match cost time too, and the caller may have left.
		if s.seen++; s.seen%checkEvery == 0 {
			s.fail(s.db.stopped(s.ctx))
		}
		if s.fail(l.take(rows.Item())) {
			return
		}

		// Newest first: every row after it is older still.
		if at, _ := blocks.DecodePlace(l.place[:]); at.Before(from) {
			s.done = true
			return
		}
		s.visitLone(&l)
	}
}

// take copies the row that an iterator is at.
func (l *lone) take(item *badger.Item) (err error) {
	key := item.Key()
	copy(l.place[:], key[len(key)-blocks.PlaceBytes:])

	l.value, err = valueOf(item, l.value)
	l.bytes = len(l.value)

	return err
}

// aloneBytes bounds the rows of one block's part of the list that a scan holds in
// memory.
const aloneBytes = 1 << 20

// collectAlone collects the rows that stand alone in the block's part of the list, which ends at
// the place next.
func (s *scan) collectAlone(rows *badger.Iterator, next []byte) {
	s.alone = s.alone[:0]
	for left := aloneBytes; before(rows, next) && !s.done; rows.Next() {
		s.collectOneAlone(rows.Item(), &left)
	}
}

// collectOneAlone adds a row to those that stand alone. Rows beyond what is left are read when they
// are visited: of a long run only so much is held.
func (s *scan) collectOneAlone(item *badger.Item, left *int) {
	l := lone{bytes: int(item.ValueSize())}
	if *left -= l.bytes; *left > 0 {
		s.fail(l.take(item))
	} else {
		key := item.Key()
		copy(l.place[:], key[len(key)-blocks.PlaceBytes:])
	}
	s.alone = append(s.alone, l)
}

// visitLone visits a row that stands alone, if it matches.
func (s *scan) visitLone(l *lone) {
	// There was no memory for it in collectAlone.
	if l.value == nil {
		read := *l
		if s.fail(read.load(s.txn, s.keys.late(l.place[:]))) {
			return
		}
		l = &read
	}
	if bytes.Equal(l.value, goneRow) || s.lacksWords(l) {
		return
	}

	s.row = wire.Row{}
	m := match{lone: l, row: &s.row}
	if s.query.Filtered() {
		// Its body is found by its id, which the filter itself may not need.
		want := s.needs
		if s.query.NeedsBody() || s.query.NeedsWhole() {
			want |= rowcode.PlaceColumns
		}

		row, err := m.fill(want)
		if err != nil {
			err = damaged(s.keys.newest(l.place[:]), err)
		}
		if s.fail(err) || !s.matches(row) {
			return
		}
	}
	s.found(&m)
}

// visitBlock visits the matching rows of the block, and those that stand alone among
// them.
func (s *scan) visitBlock() {
	b := &s.block

	// Rows up to the cursor are left out.
	begin := 0
	if s.after != nil && bytes.Compare(b.Place, s.after) <= 0 {
		i, found, err := b.Find(s.after)
		s.fail(err)
		begin = i
		if found {
			begin++
		}
	}

	docs := s.wordsIn()
	if s.done || docs != nil && len(s.alone) == 0 && *docs == (textindex.Docs{}) {
		return
	}

	// Column by column for the whole block, before its rows are looked at one by one.
	v, err := s.verdict()
	if s.fail(err) {
		return
	}
	if docs != nil {
		for i := v.May.Within(0, b.Head.Rows); i >= 0; i = v.May.Within(i+1, b.Head.Rows) {
			if !docs.Has(i) {
				v.May.Unset(i)
			}
		}
	}

	// Between each two rows that stand alone come the block's rows; a row at the same
	// place is hidden.
	for i := range s.alone {
		at, found, err := b.Find(s.alone[i].place[:])
		if s.fail(err) {
			return
		}

		s.visitRange(begin, at, v)
		if s.done {
			return
		}
		s.visitLone(&s.alone[i])
		if s.done {
			return
		}

		begin = max(begin, at)
		if found {
			begin = max(begin, at+1)
		}
	}
	s.visitRange(begin, b.Head.Rows, v)
}

// visitRange visits the matching rows from i to below end.
func (s *scan) visitRange(i, end int, v blocks.Verdict) {
	b := &s.block
	if s.passed != nil && i < end {
		s.finder.Pass(s.passed.Count(i, end))
	}

	for i = v.May.Within(i, end); i >= 0 && !s.done; i = v.May.Within(i+1, end) {
		// Where the columns have decided, the row is not even put together.
		m := match{block: b, index: i}
		if !v.Must.Has(i) || s.query.Seeks() {
			row, err := b.Row(i, s.needs|rowcode.PlaceColumns)
			if s.fail(err) || !s.matches(row) {
				continue
			}
		}

		s.found(&m)
	}
}

// matches reports whether one row matches, reading its body if need be.
func (s *scan) matches(row *wire.Row) bool {
	// A body may be large. If no caller waits for the answer any more, it is not read.
	body := func() ([]byte, error) {
		if err := s.db.stopped(s.ctx); err != nil {
			return nil, err
		}
		return s.db.requestBody(s.txn, s.keys, row.RequestID)
	}
	metadata := func() (map[string]string, error) {
		if err := s.db.stopped(s.ctx); err != nil {
			return nil, err
		}
		return s.db.metadata(s.txn, s.keys, row.RequestID)
	}

	ok, err := s.judge.Matches(s.ctx, row, body, metadata)
	if err != nil {
		s.fail(cmp.Or(s.db.stopped(s.ctx), err))
	}
	s.done = s.done || s.judge.Stopped != nil

	return ok && err == nil
}

// found hands a match to visit.
func (s *scan) found(m *match) {
	more, err := s.visit(m)
	s.fail(err)
	s.done = s.done || !more
}
