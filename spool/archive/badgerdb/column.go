package badgerdb

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/klauspost/compress/zstd"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/rowcode"
)

// columnVersion begins a stored column. A column of a block is one value:
//
//	1   version of this table, columnVersion
//	1   how the rest is packed: 0 as it is, 1 zstd
//	then, unpacked
//	1   how it is coded: 'd' dictionary, 'i' integers, 'p' places
//	4   number of rows, little-endian
//	'd' 4 number of entries; for each its length, uvarint, and its value as in a row;
//	    then for each row its entry's number, in 1, 2 or 4 bytes, as few as the number of
//	    entries allows; in none if there is one entry
//	'i' 1 width w of a number: 1, 2, 4 or 8 bytes; 8 the least number; then a bit for each
//	    row, set if it has a number; then for each row its number minus the least, in w
//	    bytes, little-endian
//	'p' for each row its time and id as in its key, 28 bytes, transposed: the first byte of
//	    each row, then the second of each ...
const (
	columnVersion = 1
	packedPlain   = 0
	packedZstd    = 1
)

// columnRowsMax is more than a block ever has.
const columnRowsMax = 1 << 20

var errColumn = errors.New("this version does not write such a column")

// column is a column of a block, decoded. It aliases the buffer that it was decoded from.
type column struct {
	kind    byte
	n       int      // rows
	entries [][]byte // 'd'
	width   int      // of a code or a number, in bytes
	codes   []byte   // 'd' and 'i': of each row; 'p': all bytes
	least   int64    // 'i'
	present []byte   // 'i': a bit for each row

	// entries, decoded into rows that have nothing else; see entry.
	lent []*wire.Row
	read []bool // the row of lent is decoded, for this column
}

// codec packs and unpacks values. It is safe for concurrent use.
type codec struct {
	encoder *zstd.Encoder // of columns
	bodies  *zstd.Encoder // with the dictionary
	decoder *zstd.Decoder
}

// workers bounds how many goroutines pack or unpack at the same time, each with its own
// memory.
const workers = 2

// newCodec returns a codec with the dictionary for bodies.
func newCodec() (*codec, error) {
	dictionary := []byte(archive.BodyDictionary)

	o := []zstd.EOption{
		zstd.WithEncoderConcurrency(workers),
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(128 << 10),
	}
	columns, err1 := zstd.NewWriter(nil, o...)
	bodies, err2 := zstd.NewWriter(nil, append(o, zstd.WithEncoderDictRaw(archive.BodyDictionaryID, dictionary))...)

	decoder, err3 := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(workers),
		zstd.WithDecoderMaxMemory(unpackedMax),
		zstd.WithDecoderDictRaw(archive.BodyDictionaryID, dictionary))

	return &codec{columns, bodies, decoder}, errors.Join(err1, err2, err3)
}

// unpackedMax bounds what one value may unpack to: the largest body. No column is as
// large.
const unpackedMax = 256 << 20

// pack packs a column, unless it would stay larger than a third: what that saves is
// little compared to the bodies (0.5 % of the disk), and unpacking it costs a search a
// third of its time.
func (c *codec) pack(version byte, plain []byte) []byte {
	return pack(c.encoder, version, plain, len(plain)/3)
}

// packBody packs a body. One that is too short to gain stays as it is.
func (c *codec) packBody(plain []byte) []byte { return pack(c.bodies, bodyVersion, plain, len(plain)) }

// pack packs plain if fewer than most bytes result. Otherwise it returns it as it is.
func pack(encoder *zstd.Encoder, version byte, plain []byte, most int) []byte {
	packed := encoder.EncodeAll(plain, append(make([]byte, 0, len(plain)/2+64), version, packedZstd))
	if len(packed)-2 < most {
		return packed
	}
	return append(append(packed[:0], version, packedPlain), plain...)
}

// unpack returns what pack was given. It uses buffer if that has room.
func (c *codec) unpack(version byte, value, buffer []byte) ([]byte, error) {
	switch {
	case len(value) < 2 || value[0] != version:
		return nil, errColumn
	case value[1] == packedPlain:
		return append(buffer[:0], value[2:]...), nil
	case value[1] == packedZstd:
		return c.decoder.DecodeAll(value[2:], buffer[:0])
	}
	return nil, errColumn
}

// read reads and unpacks the value under key, into buffer if that has room.
func (c *codec) read(txn *badger.Txn, version byte, key, buffer []byte) (plain []byte, err error) {
	item, err := txn.Get(key)
	if err == nil {
		err = item.Value(func(value []byte) (err error) {
			plain, err = c.unpack(version, value, buffer)
			return err
		})
	}
	if err != nil {
		return nil, damaged(key, err)
	}
	return plain, nil
}

// encodeDictionary encodes a column of n rows as a dictionary. value appends the value of
// a row; a row without one appends nothing.
func encodeDictionary(n int, value func(i int, b []byte) []byte) []byte {
	numbers := make(map[string]uint32)
	codes := make([]uint32, n)
	var entries, scratch []byte
	for i := range n {
		scratch = value(i, scratch[:0])

		number, ok := numbers[string(scratch)]
		if !ok {
			number = uint32(len(numbers))
			numbers[string(scratch)] = number
			entries = append(binary.AppendUvarint(entries, uint64(len(scratch))), scratch...)
		}
		codes[i] = number
	}

	b := append(make([]byte, 0, len(entries)+n*2+16), 'd')
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(numbers)))
	b = append(b, entries...)

	// As narrow as the number of entries allows: most columns take a byte or nothing.
	width := codeWidth(len(numbers))
	for _, code := range codes {
		b = appendWidth(b, width, uint64(code))
	}

	return b
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

// encodeIntegers encodes a column of numbers.
func encodeIntegers(numbers []int64, present []bool) []byte {
	// Only rows that have a number count.
	least, most, some := int64(math.MaxInt64), int64(math.MinInt64), false
	for i, n := range numbers {
		if present[i] {
			least, most, some = min(least, n), max(most, n), true
		}
	}
	if !some {
		least, most = 0, 0
	}

	width := 8
	switch span := uint64(most) - uint64(least); {
	case span < 1<<8:
		width = 1
	case span < 1<<16:
		width = 2
	case span < 1<<32:
		width = 4
	}

	b := append(make([]byte, 0, len(numbers)*(width+1)+16), 'i')
	b = binary.LittleEndian.AppendUint32(b, uint32(len(numbers)))
	b = append(b, byte(width))
	b = binary.LittleEndian.AppendUint64(b, uint64(least))

	bits := make([]byte, (len(numbers)+7)/8)
	for i, p := range present {
		if p {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	b = append(b, bits...)

	for i, n := range numbers {
		if !present[i] {
			n = least
		}
		b = appendWidth(b, width, uint64(n)-uint64(least))
	}

	return b
}

// appendWidth appends the low bytes of n, little-endian.
func appendWidth(b []byte, width int, n uint64) []byte {
	switch width {
	case 1:
		return append(b, byte(n))
	case 2:
		return binary.LittleEndian.AppendUint16(b, uint16(n))
	case 4:
		return binary.LittleEndian.AppendUint32(b, uint32(n))
	case 8:
		return binary.LittleEndian.AppendUint64(b, n)
	}

	return b
}

// encodePlaces encodes a column of times and ids. Byte by byte they compress far better:
// most leading bytes are the same in all rows.
func encodePlaces(places [][placeBytes]byte) []byte {
	b := append(make([]byte, 0, len(places)*placeBytes+8), 'p')
	b = binary.LittleEndian.AppendUint32(b, uint32(len(places)))

	for j := range placeBytes {
		for i := range places {
			b = append(b, places[i][j])
		}
	}
	return b
}

// decodeColumn decodes plain, which c aliases. The memory of c is used again.
func decodeColumn(plain []byte, c *column) error {
	// Rows already lent stay allocated; clearing read has them filled in again.
	*c = column{entries: c.entries[:0], lent: c.lent, read: c.read}
	clear(c.read)

	if len(plain) < 5 {
		return errColumn
	}

	r := rowcode.Reader{Rest: plain[5:]}
	c.kind, c.n = plain[0], int(binary.LittleEndian.Uint32(plain[1:]))
	if c.n > columnRowsMax {
		return errColumn
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
		c.width = placeBytes
	default:
		return errColumn
	}

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

// code returns the number of a row's entry.
func (c *column) code(i int) int {
	switch c.width {
	case 1:
		return int(c.codes[i])
	case 2:
		return int(binary.LittleEndian.Uint16(c.codes[2*i:]))
	case 4:
		return int(binary.LittleEndian.Uint32(c.codes[4*i:]))
	}
	return 0
}

// number returns the number of a row. ok is false if it has none.
func (c *column) number(i int) (n int64, ok bool) {
	if c.present[i/8]&(1<<(i%8)) == 0 {
		return 0, false
	}

	switch c.width {
	case 1:
		return c.least + int64(c.codes[i]), true
	case 2:
		return c.least + int64(binary.LittleEndian.Uint16(c.codes[2*i:])), true
	case 4:
		return c.least + int64(binary.LittleEndian.Uint32(c.codes[4*i:])), true
	}

	return int64(uint64(c.least) + binary.LittleEndian.Uint64(c.codes[8*i:])), true
}

// place returns a row's time and id as in its key.
func (c *column) place(i int) (p [placeBytes]byte) {
	for j := range p {
		p[j] = c.codes[j*c.n+i]
	}
	return p
}

// entry returns an entry of the dictionary as a row that has nothing else. The row is
// shared, and must not be changed.
func (c *column) entry(of rowcode.Column, number int) (*wire.Row, error) {
	if len(c.lent) < len(c.entries) || len(c.read) < len(c.entries) {
		c.lent, c.read = make([]*wire.Row, len(c.entries)), make([]bool, len(c.entries))
	}

	row := c.lent[number]
	if !c.read[number] {
		if row == nil {
			row = new(wire.Row)
			c.lent[number] = row
		}
		if err := rowcode.ReadValue(c.entries[number], of, row); err != nil {
			return nil, err
		}
		c.read[number] = true
	}
	return row, nil
}

// integerOf returns what a row has in a column that blocks keep as integers. exact is
// false if an integer cannot represent it.
func integerOf(c rowcode.Column, row *wire.Row) (n int64, present, exact bool) {
	switch c {
	case rowcode.ColumnCost:
		return billionths(row.Price, dollarsOf)
	case rowcode.ColumnLatency:
		return billionths(row.Latency, secondsOf)
	case rowcode.ColumnStart:
		return nanosOf(row.StartTime)
	case rowcode.ColumnEnd:
		return nanosOf(row.EndTime)
	}

	n, present = rowcode.IntegerOf(c, row)
	return n, present, true
}

// billionths converts x to an integer, and checks that back returns the same x.
func billionths(x *float64, back func(int64) float64) (n int64, present, exact bool) {
	if x == nil {
		return 0, false, true
	}

	// Up to here the billionths stay below 2^53, where a float64 has every integer.
	if math.Abs(*x) > 1e6 {
		return 0, true, false
	}

	n = int64(math.Round(*x * 1e9))
	return n, true, back(n) == *x
}

// secondsOf returns a latency from its nanoseconds, as a row has it, to the last bit.
func secondsOf(n int64) float64 { return time.Duration(n).Seconds() }

// dollarsOf returns a price from its billionths, as a row has it, to the last bit.
func dollarsOf(n int64) float64 { return float64(n) / 1e9 }

// nanosOf returns a time in nanoseconds since 1970.
func nanosOf(t *time.Time) (n int64, present, exact bool) {
	if t == nil {
		return 0, false, true
	}

	n = t.UnixNano()
	return n, true, t.Equal(time.Unix(0, n))
}

// isInteger reports whether blocks keep a column as integers, if they can.
func isInteger(c rowcode.Column) bool {
	switch c {
	case rowcode.ColumnInputTokens, rowcode.ColumnOutputTokens,
		rowcode.ColumnCachedTokens, rowcode.ColumnReasoningTokens,
		rowcode.ColumnTurns, rowcode.ColumnReadable, rowcode.ColumnVersion,
		rowcode.ColumnCost, rowcode.ColumnLatency, rowcode.ColumnStart, rowcode.ColumnEnd:
		return true
	}
	return false
}
