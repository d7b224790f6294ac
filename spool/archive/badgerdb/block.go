package badgerdb

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// headVersion begins a block's head.
//
// A block holds rows that follow each other in the list, column by column. It owns all
// places from its key to the next block's. A row that stands alone in this part hides the
// block's row of the same place, or comes in between the block's rows. The head of a
// block is
//
//	1   version of this table, headVersion
//	n   rows, uvarint
//	n   seconds of the oldest row's order time, zigzag varint
//	n   seconds of the earliest and latest start, zigzag varints; earliest > latest: none has one
//	n   metadata keys with a column of their own, uvarint; then for each its length and bytes
//	n   weight of the rows (rowcode.Weight), uvarint; missing from heads of an older version
const headVersion = 1

// Bounds of a block.
const (
	blockRowsMax  = 4096
	blockBytesMax = 4 << 20
	blockKeysMax  = 32 // metadata keys with a column of their own; all others share one
)

var errHead = errors.New("this version does not write such a head")

// blockHead is the head of a block, decoded. Times are in seconds; see headVersion.
type blockHead struct {
	rows               int
	oldest             int64
	startMin, startMax int64    // startMin > startMax: no row has a start
	keys               []string // sorted
	bytes              int      // 0: unknown
}

// encode returns the head as it is stored.
func (h *blockHead) encode() []byte {
	b := binary.AppendUvarint([]byte{headVersion}, uint64(h.rows))
	for _, n := range []int64{h.oldest, h.startMin, h.startMax} {
		b = binary.AppendVarint(b, n)
	}

	b = rowcode.AppendTexts(binary.AppendUvarint(b, uint64(len(h.keys))), h.keys)
	return binary.AppendUvarint(b, uint64(h.bytes))
}

// decodeHead reads what encode returned.
func decodeHead(b []byte) (h blockHead, err error) {
	if len(b) == 0 || b[0] != headVersion {
		return h, errHead
	}

	r := rowcode.Reader{Rest: b[1:]}
	h.rows = int(r.Uvarint())
	h.oldest, h.startMin, h.startMax = r.Varint(), r.Varint(), r.Varint()
	for n := r.Uvarint(); n > 0 && r.Err == nil; n-- {
		h.keys = append(h.keys, r.Text())
	}

	if len(r.Rest) > 0 {
		h.bytes = int(r.Uvarint())
	}

	if r.Err != nil || h.rows < 1 {
		return h, errHead
	}

	return h, nil
}

// placed is a row with its place, as in a key.
type placed struct {
	place [placeBytes]byte
	row   wire.Row
}

// column returns the key of a block's column. That of ColumnMetadata holds what the
// columns of single metadata keys leave.
func (k keys) column(place []byte, c rowcode.Column) []byte {
	return append(append(k.table(tableColumn), place...), byte(c))
}

// metadataColumn returns the key of the column of one metadata key.
func (k keys) metadataColumn(place []byte, key string) []byte {
	return append(append(k.column(place, rowcode.ColumnMetadata), 1), key...)
}

// summary returns the key of the summary of a block's rows.
func (k keys) summary(place []byte) []byte { return k.column(place, summaryColumn) }

// summaryColumn is the summary's place among the columns.
const summaryColumn rowcode.Column = 0xff

// block returns the key of a block's head.
func (k keys) block(place []byte) []byte { return append(k.table(tableBlock), place...) }

// writeBlock returns the writes of a block at a place. There must be rows, in order.
func (c *codec) writeBlock(k keys, place []byte, rows []placed) []write {
	head := headOf(rows)
	writes := []write{
		{k.block(place), head.encode()},
		{k.newest(place), mark},
		{k.behind(place), mark},
	}

	// The summary is not packed: unpacking it would take as long as merging it.
	summary := query.Summarize(len(rows), func(i int) *wire.Row { return &rows[i].row })
	plain := append([]byte{columnVersion, packedPlain}, summary...)
	writes = append(writes, write{k.summary(place), plain})

	put := func(key, plain []byte) {
		writes = append(writes, write{key, c.pack(columnVersion, plain)})
	}

	places := make([][placeBytes]byte, len(rows))
	for i := range rows {
		places[i] = rows[i].place
	}
	put(k.column(place, rowcode.ColumnID), encodePlaces(places))

	for column := rowcode.ColumnFunction; column < rowcode.ColumnBody; column++ {
		if column == rowcode.ColumnMetadata {
			continue // below: its columns are by key
		}

		plain := encodeNumbers(column, rows)
		if plain == nil {
			plain = encodeDictionary(len(rows), func(i int, b []byte) []byte {
				return rowcode.AppendValue(b, column, &rows[i].row)
			})
		}
		put(k.column(place, column), plain)
	}

	// The frequent metadata keys have a column each; the others share one.

	for _, key := range head.keys {
		put(k.metadataColumn(place, key), encodeDictionary(len(rows), func(i int, b []byte) []byte {
			for _, m := range rows[i].row.Metadata {
				if m.Key == key {
					b = append(append(b, 1), m.Value...)
				}
			}

			return b
		}))
	}

	put(k.column(place, rowcode.ColumnMetadata), encodeDictionary(len(rows), func(i int, b []byte) []byte {
		for _, m := range rows[i].row.Metadata {
			if _, separate := slices.BinarySearch(head.keys, m.Key); !separate {
				b = rowcode.AppendText(rowcode.AppendText(b, m.Key), m.Value)
			}
		}

		return b
	}))

	return writes
}

// encodeNumbers encodes a column as integers. It returns nil if the column has none, or
// has values that an integer cannot represent.
func encodeNumbers(c rowcode.Column, rows []placed) []byte {
	if !isInteger(c) {
		return nil
	}

	numbers, present := make([]int64, len(rows)), make([]bool, len(rows))
	for i := range rows {
		var exact bool
		if numbers[i], present[i], exact = integerOf(c, &rows[i].row); !exact {
			return nil
		}
	}

	return encodeIntegers(numbers, present)
}

// headOf returns the head for rows, which are in order.
func headOf(rows []placed) blockHead {
	h := blockHead{rows: len(rows), startMin: 1, bytes: bytesOf(rows)}

	// The last row is the oldest: the list begins with the newest.
	at, _ := rowPlace(rows[len(rows)-1].place[:])
	h.oldest = at.Unix()

	keys := make(map[string]int)
	for i := range rows {
		row := &rows[i].row
		if row.StartTime != nil {
			s := row.StartTime.Unix()
			if h.startMin > h.startMax {
				h.startMin, h.startMax = s, s
			}
			h.startMin, h.startMax = min(h.startMin, s), max(h.startMax, s)
		}

		for _, m := range row.Metadata {
			keys[m.Key]++
		}
	}

	// A column for a key of one or two rows would cost more than it saves.
	maps.DeleteFunc(keys, func(key string, n int) bool {
		return len(key) > 256 || n*64 < len(rows)
	})
	h.keys = slices.SortedFunc(maps.Keys(keys), func(a, b string) int {
		return cmp.Or(cmp.Compare(keys[b], keys[a]), cmp.Compare(a, b)) // the most frequent first
	})
	h.keys = h.keys[:min(len(h.keys), blockKeysMax)]
	slices.Sort(h.keys)

	return h
}

// removeBlock returns the writes that delete a block.
func (k keys) removeBlock(place []byte, head *blockHead) []write {
	writes := []write{
		{key: k.block(place)},
		{key: k.newest(place)},
		{key: k.behind(place)},
		{key: k.column(place, rowcode.ColumnID)},
		{key: k.summary(place)},
	}
	for column := rowcode.ColumnFunction; column < rowcode.ColumnBody; column++ {
		writes = append(writes, write{key: k.column(place, column)})
	}
	for _, key := range head.keys {
		writes = append(writes, write{key: k.metadataColumn(place, key)})
	}
	return writes
}

// block reads one block at a time. A column is read when it is first needed, into memory
// that is used again for the next block.
type block struct {
	txn   *badger.Txn
	codec *codec
	keys  keys
	place []byte
	head  blockHead

	columns [rowcode.ColumnBody]slot
	byKey   []slot // columns of head.keys
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

// unload makes room for the column of another block.
func (s *slot) unload() {
	if s.loaded = false; cap(s.buffer) > slotBytesMax {
		*s = slot{}
	}
}

// scratch is the memory that a lent row points into.
type scratch struct {
	row      wire.Row
	metadata []wire.MetadataRow
	numbers  numbers
}

// open moves on to another block. Whatever was read from the one before is no longer
// valid.
func (b *block) open(place []byte, head blockHead) {
	b.place, b.head = append(b.place[:0], place...), head

	for i := range b.columns {
		b.columns[i].unload()
	}
	for i := range b.byKey {
		b.byKey[i].unload()
	}
	for len(b.byKey) < len(head.keys) {
		b.byKey = append(b.byKey, slot{})
	}
}

// column reads a column. ColumnMetadata is what has no column of its own.
func (b *block) column(c rowcode.Column) (*column, error) {
	s := &b.columns[c]
	if s.loaded { // checked before the key is built: this is called for every row
		return &s.column, nil
	}
	return b.load(s, b.keys.column(b.place, c))
}

// metadata reads the column of a metadata key, or returns nil if it has none.
func (b *block) metadata(key string) (*column, error) {
	// decodeHead keeps the order of headOf, which sorts them.
	i, ok := slices.BinarySearch(b.head.keys, key)
	if !ok {
		return nil, nil
	}

	s := &b.byKey[i]
	if s.loaded {
		return &s.column, nil
	}

	return b.load(s, b.keys.metadataColumn(b.place, key))
}

// load reads the column under key into a slot.
func (b *block) load(s *slot, key []byte) (*column, error) {
	plain, err := b.codec.read(b.txn, columnVersion, key, s.buffer)
	if err != nil {
		return nil, err
	}

	// The column aliases the buffer, so the slot owns both.
	s.buffer = plain
	if err = decodeColumn(plain, &s.column); err == nil && s.column.n != b.head.rows {
		err = errColumn
	}
	if err != nil {
		return nil, damaged(key, err)
	}

	s.loaded = true
	return &s.column, nil
}

// find returns the index of the first row at or behind a place, and whether it is at the
// place.
func (b *block) find(place []byte) (i int, found bool, err error) {
	c, err := b.column(rowcode.ColumnID)
	if err != nil {
		return 0, false, err
	}

	low, high := 0, b.head.rows
	for low < high {
		mid := int(uint(low+high) >> 1)
		p := c.place(mid)
		if bytes.Compare(p[:], place) < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}

	if low < b.head.rows {
		p := c.place(low)
		found = bytes.Equal(p[:], place)
	}

	return low, found, nil
}
