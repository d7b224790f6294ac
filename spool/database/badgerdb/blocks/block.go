package blocks

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"
	"time"

	"github.com/google/uuid"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// Reader reads the parts of a block out of a store. It is asked once for each part of a
// block that is needed, not for each row.
type Reader interface {
	// Read returns a part of the block at a place, as Encode made it. It uses buffer if
	// that has space.
	Read(place []byte, part Part, buffer []byte) (plain []byte, err error)

	// Damaged returns the error for a part that was read but cannot be decoded.
	Damaged(place []byte, part Part, cause error) error
}

// Block reads one block at a time. A column is read when it is first needed, into memory
// that is used again for the next block. Only Open may set its fields.
type Block struct {
	Place []byte
	Head  Head

	reader  Reader
	columns [rowcode.ColumnBody]slot
	byKey   []slot // columns of Head.keys, then of Head.slots
	scratch scratch

	// err is the first error. A column that cannot be read has no values from then on, so that no
	// step on the way asks for it: what was made of it must not be used.
	err error
}

// slot holds a column. Its buffer remains when the column goes.
type slot struct {
	column column
	buffer []byte
	loaded bool
}

// slotBytesMax bounds the buffer that remains.
const slotBytesMax = 512 << 10

// unload frees memory for the column of another block.
func (s *slot) unload() {
	s.loaded = false
	if cap(s.buffer) > slotBytesMax {
		*s = slot{}
	}
}

// scratch is the memory that a lent row points into.
type scratch struct {
	row      wire.Row
	metadata []wire.MetadataRow
	scores   []wire.Score
	cells    [rowcode.ColumnBody]rowcode.Cell // what row points to
}

// Open moves on to another block, which reader reads. Whatever was read from the one
// before is no longer valid.
func (b *Block) Open(reader Reader, place []byte, head Head) {
	b.reader = reader
	b.Place, b.Head, b.err = append(b.Place[:0], place...), head, nil

	// The memory of the columns stays for the next block, except where it grew large.
	for i := range b.columns {
		b.columns[i].unload()
	}
	for i := range b.byKey {
		b.byKey[i].unload()
	}
	for len(b.byKey) < len(head.keys)+len(head.slots) {
		b.byKey = append(b.byKey, slot{})
	}
}

// column reads a column. ColumnMetadata and ColumnScores are everything without a separate column.
func (b *Block) column(c rowcode.Column) *column {
	s := &b.columns[c]
	// Checked before anything else: this is called for every row.
	if !s.loaded {
		b.load(s, Part{column: c})
	}
	return &s.column
}

// metadata reads the column of a metadata key, or returns nil if it has none.
func (b *Block) metadata(key string) *column {
	// DecodeHead keeps the order of HeadOf, which sorts them.
	i, ok := slices.BinarySearch(b.Head.keys, key)
	if !ok {
		return nil
	}

	s := &b.byKey[i]
	if !s.loaded {
		b.load(s, ofMetadataKey(key))
	}
	return &s.column
}

// scores reads the column of Head.slots[i].
func (b *Block) scores(i int) *column {
	s := &b.byKey[len(b.Head.keys)+i]
	if !s.loaded {
		b.load(s, ofScore(b.Head.slots[i]))
	}
	return &s.column
}

// load reads a column into a slot.
func (b *Block) load(s *slot, part Part) {
	s.loaded = true
	if part.column < b.Head.columns {
		plain, err := b.reader.Read(b.Place, part, s.buffer)
		if err == nil && b.decode(s, plain) {
			return
		}
		if err == nil {
			err = b.reader.Damaged(b.Place, part, errColumn)
		}
		b.fail(err)
	}

	// A block that is older than the column has no values in it.
	b.decode(s, encodeAbsent(b.Head.Rows, s.buffer))
}

// decode decodes a column, which aliases plain: the slot owns both. Only a column with a value for each
// row can be read by the index of a row.
func (b *Block) decode(s *slot, plain []byte) bool {
	s.buffer = plain
	err := decodeColumn(plain, &s.column)
	s.column.block = b
	return err == nil && s.column.n == b.Head.Rows
}

// fail notes an error, unless it follows from another.
func (b *Block) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Places are the places of a block's rows. They are valid until the block is opened again.
type Places struct{ ids *column }

// Places reads the places of the block's rows.
func (b *Block) Places() (Places, error) {
	ids := b.column(rowcode.ColumnID)
	return Places{ids}, b.err
}

// At returns the place of row i.
func (p Places) At(i int) Place { return p.ids.place(i) }

// Find returns the index of the first row at or after a place, and whether it is at the
// place.
func (b *Block) Find(place []byte) (i int, found bool, err error) {
	c := b.column(rowcode.ColumnID)

	// Only the places that the search meets are put together from their transposed bytes.
	i, found = sort.Find(b.Head.Rows, func(i int) int {
		p := c.place(i)
		return bytes.Compare(place, p[:])
	})

	return i, found, b.err
}

// Bits has a bit for each row of a block.
type Bits []uint64

// newBits returns n bits, all clear or all set.
func newBits(n int, set bool) Bits {
	b := make(Bits, (n+63)/64)
	if set {
		for i := range b {
			b[i] = ^uint64(0)
		}

		// The bits after the last row stay clear: next must not find them.
		if n%64 != 0 {
			b[len(b)-1] = 1<<(n%64) - 1
		}
	}

	return b
}

// Has reports whether the bit of row i is set.
func (b Bits) Has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

func (b Bits) set(i int) { b[i/64] |= 1 << (i % 64) }

// Unset clears the bit of row i.
func (b Bits) Unset(i int) { b[i/64] &^= 1 << (i % 64) }

// next returns the first set bit at or after i, or -1.
func (b Bits) next(i int) int {
	for word := i / 64; word < len(b); word++ {
		// In the first word, the bits before i do not count.
		w := b[word]
		if word == i/64 {
			w &= ^uint64(0) << (i % 64)
		}

		if w != 0 {
			return word*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// Within returns the first set bit from i to below end, or -1.
func (b Bits) Within(i, end int) int {
	if n := b.next(i); n >= 0 && n < end {
		return n
	}
	return -1
}

// Without returns the bits that are not set in other, which has as many.
func (b Bits) Without(other Bits) Bits {
	rest := slices.Clone(b)
	for i := range rest {
		rest[i] &^= other[i]
	}
	return rest
}

// Count returns how many bits are set from i to below end.
func (b Bits) Count(i, end int) (n int) {
	for word := i / 64; word < len(b) && word*64 < end; word++ {
		w := b[word]
		if word == i/64 {
			w &= ^uint64(0) << (i % 64)
		}
		if end-word*64 < 64 {
			w &= 1<<(end-word*64) - 1
		}
		n += bits.OnesCount64(w)
	}
	return n
}

// PlaceBytes is the length of a place.
const PlaceBytes = 12 + 16

// Place is where a row is in its account's list, as in a key: its time and its id. Sorted
// by their bytes, places begin with the newest.
type Place [PlaceBytes]byte

// EncodePlace returns the place of a row.
func EncodePlace(at time.Time, id [16]byte) []byte {
	// With the sign bit turned, years before 1970 sort as well.
	seconds := ^(uint64(at.Unix()) ^ 1<<63)
	key := binary.BigEndian.AppendUint64(make([]byte, 0, PlaceBytes), seconds)
	key = binary.BigEndian.AppendUint32(key, ^uint32(at.Nanosecond()))

	for _, b := range id {
		key = append(key, ^b)
	}
	return key
}

// DecodePlace reads the time and the id from a place, or from a key that ends in one.
func DecodePlace(key []byte) (at time.Time, id [16]byte) {
	key = key[len(key)-PlaceBytes:]

	seconds := int64(^binary.BigEndian.Uint64(key) ^ 1<<63)
	at = time.Unix(seconds, int64(^binary.BigEndian.Uint32(key[8:]))).UTC()
	for i := range id {
		id[i] = ^key[12+i]
	}
	return at, id
}

// Placed is a row with its place, as in a key.
type Placed struct {
	Place Place
	Row   wire.Row
}

// Weight returns the weight of all rows together.
func Weight(rows []Placed) (n int) {
	for i := range rows {
		n += rowcode.Weight(&rows[i].Row)
	}
	return n
}

// Merge returns the block's rows without the hidden ones, together with those that stand
// alone. alone is in order.
func (b *Block) Merge(alone []Placed, hidden map[Place]bool) ([]Placed, error) {
	ids, err := b.Places()
	if err != nil {
		return nil, err
	}

	rows := make([]Placed, 0, b.Head.Rows+len(alone))
	for i := range b.Head.Rows {
		p := ids.At(i)
		for len(alone) > 0 && bytes.Compare(alone[0].Place[:], p[:]) < 0 {
			rows, alone = append(rows, alone[0]), alone[1:]
		}

		// Its newer form is among alone, or it was deleted.
		if hidden[p] {
			continue
		}
		row, err := b.Row(i, rowcode.AllColumns)
		if err != nil {
			return nil, err
		}

		// The block lends its row until the next call.
		rows = append(rows, Placed{p, rowcode.Clone(row)})
	}

	return append(rows, alone...), nil
}

// Row returns a row with the wanted columns. It is lent until the next call. Columns that
// were not wanted keep what an earlier row had.
func (b *Block) Row(i int, want rowcode.Columns) (*wire.Row, error) {
	// The same row each time: one for each match would be most of a scan's garbage.
	row := &b.scratch.row
	for c := rowcode.ColumnID; c < rowcode.ColumnBody; c++ {
		// The place of a row is filled in once: its id takes longer than all else.
		if !want.Has(c) || c == rowcode.ColumnTime && want.Has(rowcode.ColumnID) {
			continue
		}
		b.fill(i, c, row)
	}
	return row, b.err
}

// fill fills in one column of a row.
func (b *Block) fill(i int, of rowcode.Column, row *wire.Row) {
	switch of {
	case rowcode.ColumnMetadata:
		b.fillMetadata(i, row)
		return
	case rowcode.ColumnScores:
		b.fillScores(i, row)
		return
	// The same column has both.
	case rowcode.ColumnID, rowcode.ColumnTime:
		p := b.column(rowcode.ColumnID).place(i)
		at, id := DecodePlace(p[:])

		// Both fields hold the id, and share one string.
		row.ListTime, row.RequestID = at, uuid.UUID(id).String()
		row.ID = row.RequestID
		return
	// The order time is the list time, unless the column has another.
	case rowcode.ColumnAccepted:
		p := b.column(rowcode.ColumnID).place(i)
		row.AcceptedAt, _ = DecodePlace(p[:])
	}

	c := b.column(of)
	if c.kind == 'i' {
		n, ok := c.number(i)
		rowcode.LendInteger(of, n, ok, row, &b.scratch.cells[of])
		return
	}

	// All rows with this value share the decoded entry, so a lent row must not be
	// changed.
	rowcode.Share(of, c.entry(of, c.code(i)), row)
}

// fillMetadata merges a row's keys, sorted: those with their own column, and the
// others.
func (b *Block) fillMetadata(i int, row *wire.Row) {
	rest := b.column(rowcode.ColumnMetadata)
	others := rest.entry(rowcode.ColumnMetadata, rest.code(i))

	all := b.scratch.metadata[:0]
	for _, key := range b.Head.keys {
		// An own column has an entry for the rows that lack the key, too.
		if value, ok := b.metadata(key).text(i); ok {
			all = append(all, wire.MetadataRow{Key: key, Value: value})
		}
	}
	all = withOthers(all, others.Metadata, rowcode.CompareMetadata)
	b.scratch.metadata, row.Metadata = all, all
}

// withOthers adds what the shared column has to what own columns have, sorted. A row with nothing has
// an empty list, in JSON as well.
func withOthers[T any](all, others []T, compare func(a, b T) int) []T {
	if all == nil {
		all = []T{}
	}
	all = append(all, others...)
	if len(others) > 0 {
		slices.SortStableFunc(all, compare)
	}

	return all
}

// fillScores merges a row's scores, as fillMetadata does its keys.
func (b *Block) fillScores(i int, row *wire.Row) {
	rest := b.column(rowcode.ColumnScores)
	others := rest.entry(rowcode.ColumnScores, rest.code(i))

	b.ownScores(i, 0, len(b.Head.slots), row)
	row.Scores = withOthers(row.Scores, others.Scores, wire.CompareScores)
	b.scratch.scores = row.Scores
}

// ownScores fills in the scores in some of Head.slots.
func (b *Block) ownScores(i, from, to int, row *wire.Row) {
	row.Scores = b.scratch.scores[:0]
	for at := from; at < to; at++ {
		if value, ok := b.scores(at).score(i); ok {
			row.Scores = append(row.Scores, wire.Score{ScoreSlot: b.Head.slots[at], ScoreValue: value})
		}
	}
	b.scratch.scores = row.Scores
}
