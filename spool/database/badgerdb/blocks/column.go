package blocks

import (
	"encoding/binary"
	"errors"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// A column of a block is
//
//	1   how it is coded: 'd' dictionary, 'i' integers, 'p' places; see scoreForms for others, like 'i'
//	4   number of rows, little-endian
//	'd' 4 number of entries; for each its length, uvarint, and its value as in a row;
//	    then for each row its entry's number, in 1, 2 or 4 bytes, as few as the number of
//	    entries allows; in none if there is one entry
//	'i' 1 width w of a number: 1, 2, 4 or 8 bytes; 8 the least number; then a bit for each
//	    row, set if it has a number; then for each row its number minus the least, in w
//	    bytes, little-endian
//	'p' for each row its time and id as in its key, 28 bytes, transposed: the first byte of
//	    each row, then the second of each ...

// columnRowsMax is more than a block ever has.
const columnRowsMax = 1 << 20

var errColumn = errors.New("this version does not write such a column")

// column is a column of a block, decoded. It aliases the buffer that it was decoded from.
type column struct {
	block   *Block // that it is of
	kind    byte
	n       int        // rows
	entries [][]byte   // 'd'
	width   int        // of a code or a number, in bytes
	codes   []byte     // 'd' and 'i': of each row; 'p': all bytes
	least   int64      // 'i'
	present []byte     // 'i': a bit for each row
	form    *scoreForm // 'i': what it means for scores

	// entries, decoded into rows that have nothing else; see entry.
	lent []*wire.Row
	read []bool // the row of lent is decoded for this column
}

// decodeColumn decodes plain, which c aliases. The memory of c is used again.
func decodeColumn(plain []byte, c *column) error {
	// Rows already lent stay allocated; clearing read has them filled in again.
	*c = column{entries: c.entries[:0], lent: c.lent, read: c.read}
	clear(c.read)

	if len(plain) < 5 {
		return errColumn
	}

	// The bytes may be damaged, so their own claim of how many rows there are is bounded.
	r := rowcode.Reader{Rest: plain[5:]}
	c.kind, c.n = plain[0], int(binary.LittleEndian.Uint32(plain[1:]))
	if c.n > columnRowsMax {
		return errColumn
	}

	for i := range scoreForms {
		if c.kind == scoreForms[i].coded {
			c.kind, c.form = 'i', &scoreForms[i]
		}
	}

	switch c.kind {
	case 'd':
		count := r.Take(4)
		if r.Err != nil {
			return errColumn
		}

		// No size is trusted before the bytes for it are there: a damaged one must not
		// take memory.
		entries := int(binary.LittleEndian.Uint32(count))
		for range entries {
			c.entries = append(c.entries, r.Take(r.Uvarint()))
			if r.Err != nil {
				return errColumn
			}
		}

		c.width = codeWidth(entries)
		if entries == 0 && c.n > 0 {
			return errColumn
		}
	case 'i':
		head := r.Take(9)
		if r.Err != nil {
			return errColumn
		}
		c.width, c.least = int(head[0]), int64(binary.LittleEndian.Uint64(head[1:]))
		if c.width != 1 && c.width != 2 && c.width != 4 && c.width != 8 {
			return errColumn
		}

		c.present = r.Take(uint64(c.n+7) / 8)
	case 'p':
		c.width = PlaceBytes
	default:
		return errColumn
	}

	// All rows are there and nothing more: number and place need not check an index.
	c.codes = r.Take(uint64(c.n) * uint64(c.width))
	if r.Err != nil || len(r.Rest) > 0 {
		return errColumn
	}

	return c.verify()
}

// verify proves that no code is beyond the entries, so that no reader has to check again.
func (c *column) verify() error {
	if c.kind != 'd' || c.width == 0 {
		return nil
	}
	for i := range c.n {
		if c.code(i) >= len(c.entries) {
			return errColumn
		}
	}
	return nil
}

// codeWidth returns how many bytes the number of an entry takes.
func codeWidth(entries int) int {
	switch {
	case entries <= 1:
		return 0
	case entries <= 1<<8:
		return 1
	case entries <= 1<<16:
		return 2
	}
	return 4
}

// code returns the number of a row's entry.
func (c *column) code(i int) int { return int(c.offset(i)) }

// has reports whether a row has a number.
func (c *column) has(i int) bool { return c.present[i/8]&(1<<(i%8)) != 0 }

// number returns the number of a row. ok is false if it has none.
func (c *column) number(i int) (n int64, ok bool) {
	if !c.has(i) {
		return 0, false
	}

	// The difference of two integers may be larger than any: it is added modulo 2^64.
	return int64(uint64(c.least) + c.offset(i)), true
}

// score returns the score of a row in a column of them. ok is false if it has none.
func (c *column) score(i int) (v wire.ScoreValue, ok bool) {
	if c.kind == 'i' {
		n, ok := c.number(i)
		if !ok {
			return v, false
		}
		return wire.ScoreValue{Kind: c.form.kind, Number: c.form.number(n)}, true
	}

	entry := c.entry(rowcode.ColumnScores, c.code(i))
	if len(entry.Scores) == 0 {
		return v, false
	}
	return entry.Scores[0].ScoreValue, true
}

// offset returns by how much the number of a row exceeds the least.
func (c *column) offset(i int) uint64 {
	switch c.width {
	case 0:
		return 0
	case 1:
		return uint64(c.codes[i])
	case 2:
		return uint64(binary.LittleEndian.Uint16(c.codes[2*i:]))
	case 4:
		return uint64(binary.LittleEndian.Uint32(c.codes[4*i:]))
	}
	return binary.LittleEndian.Uint64(c.codes[8*i:])
}

// place returns a row's time and id as in its key.
func (c *column) place(i int) (p Place) {
	// The column could not be read.
	if c.kind != 'p' {
		return p
	}
	for j := range p {
		p[j] = c.codes[j*c.n+i]
	}
	return p
}

// entry returns an entry of the dictionary as a row that has nothing else. The row is
// shared, and must not be changed.
func (c *column) entry(of rowcode.Column, number int) *wire.Row {
	if len(c.lent) < len(c.entries) || len(c.read) < len(c.entries) {
		c.lent, c.read = make([]*wire.Row, len(c.entries)), make([]bool, len(c.entries))
	}

	// Decoded when the first row asks for it: after most filters few entries are needed.
	row := c.lent[number]
	if !c.read[number] {
		if row == nil {
			row = new(wire.Row)
			c.lent[number] = row
		}
		if err := rowcode.ReadValue(c.entries[number], of, row); err != nil {
			c.block.fail(err)
		}
		c.read[number] = true
	}
	return row
}

// text returns a row's value in a column of texts. ok is false if it has none.
func (c *column) text(i int) (s string, ok bool) {
	entry := c.entries[c.code(i)]
	if len(entry) == 0 {
		return "", false
	}
	// A copy: what a query keeps must not hold the whole block.
	// The first byte marks that it has one.
	return string(entry[1:]), true
}
