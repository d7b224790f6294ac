package blocks

import (
	"encoding/binary"
	"math"
	"slices"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// Encode calls put with each part of a block and its content, which put may keep. head is
// HeadOf the rows.
func Encode(head *Head, rows []Placed, put func(part Part, plain []byte)) {
	put(Summary, query.Summarize(len(rows), func(i int) *wire.Row { return &rows[i].Row }))

	// One column after the other: packed by put, it is small before the next is made.
	places := make([]Place, len(rows))
	for i := range rows {
		places[i] = rows[i].Place
	}
	put(Part{column: rowcode.ColumnID}, encodePlaces(places))

	for column := rowcode.ColumnFunction; column < rowcode.ColumnBody; column++ {
		if column == rowcode.ColumnMetadata || column == rowcode.ColumnScores {
			// Below: their columns are by key.
			continue
		}

		plain := encodeNumbers(column, rows)
		if plain == nil {
			plain = encodeDictionary(len(rows), func(i int, b []byte) []byte {
				return rowcode.AppendValue(b, column, &rows[i].Row)
			})
		}
		put(Part{column: column}, plain)
	}

	// The frequent metadata keys have a column each; the others share one.
	for _, key := range head.keys {
		put(ofMetadataKey(key), encodeDictionary(len(rows), func(i int, b []byte) []byte {
			for _, m := range rows[i].Row.Metadata {
				if m.Key == key {
					b = append(append(b, 1), m.Value...)
				}
			}

			return b
		}))
	}

	put(Part{column: rowcode.ColumnMetadata}, encodeDictionary(len(rows), func(i int, b []byte) []byte {
		for _, m := range rows[i].Row.Metadata {
			if _, separate := slices.BinarySearch(head.keys, m.Key); !separate {
				b = rowcode.AppendText(rowcode.AppendText(b, m.Key), m.Value)
			}
		}

		return b
	}))

	// As for metadata, frequent scores have columns.
	for _, slot := range head.slots {
		put(ofScore(slot), encodeScores(rows, slot))
	}

	put(Part{column: rowcode.ColumnScores}, encodeDictionary(len(rows), func(i int, b []byte) []byte {
		return appendScores(b, &rows[i].Row, func(s *wire.Score) bool {
			_, separate := slices.BinarySearchFunc(head.slots, s.ScoreSlot, wire.ScoreSlot.Compare)
			return !separate
		})
	}))
}

// appendScores appends some of a row's scores.
func appendScores(b []byte, row *wire.Row, which func(s *wire.Score) bool) []byte {
	for i := range row.Scores {
		if which(&row.Scores[i]) {
			b = rowcode.AppendValue(b, rowcode.ColumnScores, &wire.Row{Scores: row.Scores[i : i+1]})
		}
	}
	return b
}

// scoreForm is how a column of scores of one kind is coded as integers.
type scoreForm struct {
	coded   byte // the column's first byte
	kind    wire.ScoreKind
	integer func(x float64) int64
	number  func(n int64) float64
}

// scoreForms are tried in this order.
var scoreForms = []scoreForm{
	{'i', wire.ScoreInteger, func(x float64) int64 { return int64(x) }, asFloat},
	{'t', wire.ScoreBoolean, func(x float64) int64 { return int64(x) }, asFloat},
	{'n', wire.ScoreNumber,
		func(x float64) int64 { return int64(math.Round(x * 1e9)) },
		func(n int64) float64 { return float64(n) / 1e9 }},
	{'f', wire.ScoreNumber,
		func(x float64) int64 { return int64(math.Float64bits(x)) },
		func(n int64) float64 { return math.Float64frombits(uint64(n)) }},
}

func asFloat(n int64) float64 { return float64(n) }

// encodeScores encodes the scores in a slot as integers or, if these are not exact, as a dictionary.
func encodeScores(rows []Placed, slot wire.ScoreSlot) []byte {
	numbers, present := make([]int64, len(rows)), make([]bool, len(rows))
	for _, form := range scoreForms {
		exact := true
		for i := 0; exact && i < len(rows); i++ {
			at, ok := slices.BinarySearchFunc(rows[i].Row.Scores, slot, func(s wire.Score, slot wire.ScoreSlot) int {
				return s.ScoreSlot.Compare(slot)
			})
			if !ok {
				continue
			}
			s := &rows[i].Row.Scores[at]
			numbers[i], present[i] = form.integer(s.Number), true
			exact = s.Kind == form.kind && form.number(numbers[i]) == s.Number
		}
		if exact {
			b := encodeIntegers(numbers, present)
			b[0] = form.coded
			return b
		}
	}

	return encodeDictionary(len(rows), func(i int, b []byte) []byte {
		return appendScores(b, &rows[i].Row, func(s *wire.Score) bool { return s.ScoreSlot == slot })
	})
}

// encodeNumbers encodes a column as integers. It returns nil if the column has none, or
// has values that an integer cannot represent.
func encodeNumbers(c rowcode.Column, rows []Placed) []byte {
	if !rowcode.IsInteger(c) {
		return nil
	}

	numbers, present := make([]int64, len(rows)), make([]bool, len(rows))
	for i := range rows {
		var exact bool
		// One value that does not fit makes the whole column a dictionary, so that a reader
		// has to look at one form only.
		numbers[i], present[i], exact = rowcode.IntegerOf(c, &rows[i].Row)
		if !exact {
			return nil
		}
	}

	return encodeIntegers(numbers, present)
}

// encodeDictionary encodes a column of n rows as a dictionary. value appends the value of
// a row; a row without one appends nothing.
func encodeDictionary(n int, value func(i int, b []byte) []byte) []byte {
	numbers := make(map[string]uint32)
	codes := make([]uint32, n)
	var entries, scratch []byte
	for i := range n {
		scratch = value(i, scratch[:0])

		// Looking it up copies nothing. Only a new entry does, and most are not.
		number, ok := numbers[string(scratch)]
		if !ok {
			number = uint32(len(numbers))
			numbers[string(scratch)] = number
			entries = append(binary.AppendUvarint(entries, uint64(len(scratch))), scratch...)
		}
		codes[i] = number
	}

	// Only now is the number of entries known, and with it the width of a code.
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

// encodeAbsent returns a column in which none of n rows has a value, in buffer if that has space.
func encodeAbsent(n int, buffer []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(append(buffer[:0], 'd'), uint32(n)), 1, 0, 0, 0, 0)
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

	// Unsigned: the difference of two int64 need not fit into one.
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
		// A row without a number takes as much space, so that each is where its index says.
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
func encodePlaces(places []Place) []byte {
	b := append(make([]byte, 0, len(places)*PlaceBytes+8), 'p')
	b = binary.LittleEndian.AppendUint32(b, uint32(len(places)))

	for j := range PlaceBytes {
		for i := range places {
			b = append(b, places[i][j])
		}
	}
	return b
}
