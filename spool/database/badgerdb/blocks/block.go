package blocks

import (
	"bytes"
	"slices"

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
	if s.loaded = false; cap(s.buffer) > slotBytesMax {
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
	b.Place, b.Head = append(b.Place[:0], place...), head

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
func (b *Block) column(c rowcode.Column) (*column, error) {
	s := &b.columns[c]
	// Checked before anything else: this is called for every row.
	if s.loaded {
		return &s.column, nil
	}
	return b.load(s, Part{column: c})
}

// metadata reads the column of a metadata key, or returns nil if it has none.
func (b *Block) metadata(key string) (*column, error) {
	// DecodeHead keeps the order of HeadOf, which sorts them.
	i, ok := slices.BinarySearch(b.Head.keys, key)
	if !ok {
		return nil, nil
	}

	s := &b.byKey[i]
	if s.loaded {
		return &s.column, nil
	}

	return b.load(s, ofMetadataKey(key))
}

// scores reads the column of Head.slots[i].
func (b *Block) scores(i int) (*column, error) {
	s := &b.byKey[len(b.Head.keys)+i]
	if s.loaded {
		return &s.column, nil
	}

	return b.load(s, ofScore(b.Head.slots[i]))
}

// load reads a column into a slot.
func (b *Block) load(s *slot, part Part) (*column, error) {
	var err error
	// A block that is older than the column has no values in it.
	plain := encodeAbsent(b.Head.Rows, s.buffer)
	if part.column < b.Head.columns {
		plain, err = b.reader.Read(b.Place, part, s.buffer)
	}
	if err != nil {
		return nil, err
	}

	// The column aliases the buffer, so the slot owns both.
	// Only a column with a value for each row can be read by the index of a row.
	s.buffer = plain
	if err = decodeColumn(plain, &s.column); err == nil && s.column.n != b.Head.Rows {
		err = errColumn
	}
	if err != nil {
		return nil, b.reader.Damaged(b.Place, part, err)
	}

	s.loaded = true
	return &s.column, nil
}

// Places are the places of a block's rows. They are valid until the block is opened again.
type Places struct{ ids *column }

// Places reads the places of the block's rows.
func (b *Block) Places() (Places, error) {
	ids, err := b.column(rowcode.ColumnID)
	return Places{ids}, err
}

// At returns the place of row i.
func (p Places) At(i int) Place { return p.ids.place(i) }

// Find returns the index of the first row at or after a place, and whether it is at the
// place.
func (b *Block) Find(place []byte) (i int, found bool, err error) {
	c, err := b.column(rowcode.ColumnID)
	if err != nil {
		return 0, false, err
	}

	// Only the places that the search meets are put together from their transposed bytes.
	low, high := 0, b.Head.Rows
	for low < high {
		mid := int(uint(low+high) >> 1)
		p := c.place(mid)
		if bytes.Compare(p[:], place) < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}

	if low < b.Head.Rows {
		p := c.place(low)
		found = bytes.Equal(p[:], place)
	}

	return low, found, nil
}
