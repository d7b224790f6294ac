package rowcode

import (
	"cmp"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"promptspool/api/wire"
)

// rowVersion begins the bytes of a row, without its time and id, which stores have
// in their keys:
//
//	1   version of this table, rowVersion
//	then for each column from ColumnFunction on, in their order
//	n   length of the value, uvarint; 0 means the row has nothing there
//	    the value
//
// It ends after the last column in which it has something, or after FirstColumns. So a row without
// anything in later columns has the bytes that it had before there were any.
//
// A value is
//
//	text           its bytes; of a text that may be absent or empty, a 1 before them
//	texts          for each its length, uvarint, and its bytes
//	pairs          for each key and value like texts; values as StoredValue
//	scores         for each its name like a text of texts, a uvarint with its kind, with 4 if it has an
//	               author, and with 8 times an integer or a boolean; a number or a text; the author
//	integer        zigzag varint
//	number         IEEE 754 bits, 8 bytes, little-endian
//	time           seconds, zigzag varint, and nanoseconds, uvarint
//
// The order time is absent where it equals the list time, which the place tells.
const rowVersion = 1

// ErrRow reports bytes that are not a row.
var ErrRow = errors.New("the row is not one that this version writes")

// Encode returns the bytes of a row, without its time and id.
func Encode(row *wire.Row) []byte { return EncodeFirst(ColumnBody, row) }

// EncodeFirst returns what Encode returned when there were only the columns before end.
func EncodeFirst(end Column, row *wire.Row) []byte {
	b := append(make([]byte, 0, 256), rowVersion)
	// The length of a value comes before it, so each is written aside first.
	var scratch []byte
	last := 0
	for c := ColumnFunction; c < end; c++ {
		scratch = AppendValue(scratch[:0], c, row)
		b = binary.AppendUvarint(b, uint64(len(scratch)))
		b = append(b, scratch...)
		if c < FirstColumns || len(scratch) > 0 {
			last = len(b)
		}
	}

	return b[:last]
}

// Decode reads the wanted columns into row and leaves its other fields. Its ListTime must
// be set. Texts are copies.
func Decode(b []byte, want Columns, row *wire.Row) error {
	if len(b) == 0 || b[0] != rowVersion {
		return ErrRow
	}

	// Unless the column says otherwise.
	if want.Has(ColumnAccepted) {
		row.AcceptedAt = row.ListTime
	}

	b = b[1:]
	for c := ColumnFunction; c < ColumnBody; c++ {
		n, used := binary.Uvarint(b)
		if len(b) == 0 && c >= FirstColumns {
			// It has nothing in this column, and in none after it.
			used = 0
		} else if used <= 0 || n > uint64(len(b)-used) {
			return ErrRow
		}
		// The others are skipped by their length, without a copy of their text.
		if want.Has(c) {
			if err := ReadValue(b[used:used+int(n)], c, row); err != nil {
				return err
			}
		}
		b = b[used+int(n):]
	}

	return nil
}

// AppendValue appends what a row has in a column, or nothing.
func AppendValue(b []byte, c Column, row *wire.Row) []byte {
	return definitions[c].value.append(b, row)
}

// HasFrom reports whether a row has anything in a column from c on.
func HasFrom(c Column, row *wire.Row) bool {
	for ; c < ColumnBody; c++ {
		if len(AppendValue(nil, c, row)) > 0 {
			return true
		}
	}
	return false
}

// ReadValue reads what AppendValue wrote into the row's field. An empty value means that
// the row has nothing there.
func ReadValue(b []byte, c Column, row *wire.Row) error {
	r := Reader{Rest: b}
	definitions[c].value.read(&r, row)
	return r.Err
}

// Share copies one column of a row to another row, with whatever it points to.
func Share(c Column, from, row *wire.Row) { definitions[c].value.share(from, row) }

// IsInteger reports whether IntegerOf and LendInteger know the column.
func IsInteger(c Column) bool {
	_, ok := definitions[c].value.(wholeValue)
	return ok
}

// IntegerOf returns what a row has in a column, as an integer. That is an integer itself, 1 for
// true, billionths, or nanoseconds since 1970. exact is false if no integer represents it.
func IntegerOf(c Column, row *wire.Row) (n int64, present, exact bool) {
	return definitions[c].value.(wholeValue).integer(row)
}

// LendInteger gives a row what IntegerOf returned of another one, or nothing unless ok. The row
// may point to the cell.
func LendInteger(c Column, n int64, ok bool, row *wire.Row, cell *Cell) {
	definitions[c].value.(wholeValue).lend(n, ok, row, cell)
}

// Compared converts an integer that IntegerOf returned to what a filter compares.
func Compared(c Column, n int64) float64 { return definitions[c].value.(wholeValue).compared(n) }

// Texts returns what tells the texts that a row has in the column, which belong to the row. It is
// nil for a column without texts.
func (d *Definition) Texts() func(row *wire.Row) []string {
	switch v := d.value.(type) {
	case text:
		return func(row *wire.Row) []string {
			if s := *v(row); s != "" {
				return []string{s}
			}
			return nil
		}
	case optional:
		return func(row *wire.Row) []string {
			if s := *v(row); s != nil {
				return []string{*s}
			}
			return nil
		}
	case texts:
		return func(row *wire.Row) []string { return *v.of(row) }
	}
	return nil
}

// Number returns what tells the number that a row has in the column, as filters compare it. It is
// nil for a column without numbers.
func (d *Definition) Number() func(row *wire.Row) (x float64, ok bool) {
	switch v := d.value.(type) {
	case integer:
		return func(row *wire.Row) (float64, bool) {
			if n := *v(row); n != nil {
				return float64(*n), true
			}
			return 0, false
		}
	case number:
		return func(row *wire.Row) (float64, bool) {
			if x := *v.of(row); x != nil {
				return v.filtered(*x), true
			}
			return 0, false
		}
	}
	return nil
}

// Time returns what tells the time that a row has in the column. It is nil for a column without
// times.
func (d *Definition) Time() func(row *wire.Row) (t time.Time, ok bool) {
	switch v := d.value.(type) {
	case moment:
		return func(row *wire.Row) (t time.Time, ok bool) {
			if at := *v(row); at != nil {
				return *at, true
			}
			return t, false
		}
	case accepted:
		return func(row *wire.Row) (time.Time, bool) { return row.AcceptedAt, true }
	}
	return nil
}

// Clone returns a deep copy of a row that is valid only for a call.
func Clone(row *wire.Row) wire.Row {
	r := *row
	// The memory that the row points to is copied too: the scan may reuse it.
	for c := ColumnFunction; c < ColumnBody; c++ {
		definitions[c].value.own(&r)
	}
	return r
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p

	return &v
}

// Weight returns about how many bytes a row holds: its texts, and a little for all else.
func Weight(row *wire.Row) int {
	// Roughly what is not text: numbers, times, and what Go adds to each string.
	const fixed, each = 200, 8

	n := fixed + len(row.FunctionName) + len(row.Engine) + len(row.Sidecar)
	for _, m := range row.Metadata {
		n += each + len(m.Key) + len(m.Value)
	}
	for i := range row.Scores {
		n += each + len(row.Scores[i].Name) + len(row.Scores[i].Author) + len(row.Scores[i].Text)
	}
	for _, texts := range [][]string{row.Tags, row.GroupIDs, row.ToolNames} {
		for _, text := range texts {
			n += each + len(text)
		}
	}

	return n
}

// CompareMetadata orders metadata by key, then by value.
func CompareMetadata(a, b wire.MetadataRow) int {
	return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Value, b.Value))
}

// Optional returns nil for the zero value, which stands for unknown.
func Optional[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}

	return &v
}
