package rowcode

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"promptspool/api/wire"
)

// value is where a row has a column's value, and how that is written and read. A row may have
// nothing there, which is written as nothing.
type value interface {
	append(b []byte, row *wire.Row) []byte
	read(r *Reader, row *wire.Row)
	share(from, row *wire.Row) // row has what from has, with everything that it points to
	own(row *wire.Row)         // row has a copy of what it points to
}

// wholeValue is a value that blocks keep as an integer, if one represents it.
type wholeValue interface {
	value

	// integer returns the integer. exact is false if none represents the value.
	integer(row *wire.Row) (n int64, present, exact bool)
	// lend gives row the value of an integer, or nothing unless ok. row may point to the cell.
	lend(n int64, ok bool, row *wire.Row, cell *Cell)
	// compared converts an integer to what a filter compares.
	compared(n int64) float64
}

// Cell is memory that a value of a lent row points to.
type Cell struct {
	integer int64
	number  float64
	moment  time.Time
}

// lent returns p if ok, otherwise nil.
func lent[T any](p *T, ok bool) *T {
	if !ok {
		return nil
	}
	return p
}

// text is absent where it is empty.
type text func(*wire.Row) *string

func (v text) append(b []byte, row *wire.Row) []byte { return append(b, *v(row)...) }
func (v text) read(r *Reader, row *wire.Row)         { *v(row) = string(r.Rest) }
func (v text) share(from, row *wire.Row)             { *v(row) = *v(from) }
func (v text) own(*wire.Row)                         {}

// optional is a text that may be absent or empty.
type optional func(*wire.Row) **string

func (v optional) append(b []byte, row *wire.Row) []byte {
	if s := *v(row); s != nil {
		// The 1 tells an empty text from none.
		b = append(append(b, 1), *s...)
	}
	return b
}

func (v optional) read(r *Reader, row *wire.Row) {
	*v(row) = nil
	if len(r.Rest) > 0 {
		s := string(r.Rest[1:])
		*v(row) = &s
	}
}

func (v optional) share(from, row *wire.Row) { *v(row) = *v(from) }
func (v optional) own(row *wire.Row)         { *v(row) = clone(*v(row)) }

// texts is a list; none is the one of a row that has none.
type texts struct {
	of   func(*wire.Row) *[]string
	none []string
}

func (v texts) append(b []byte, row *wire.Row) []byte { return AppendTexts(b, *v.of(row)) }

func (v texts) read(r *Reader, row *wire.Row) {
	all := v.none
	for len(r.Rest) > 0 && r.Err == nil {
		all = append(all, r.Text())
	}
	*v.of(row) = all
}

func (v texts) share(from, row *wire.Row) { *v.of(row) = *v.of(from) }
func (v texts) own(row *wire.Row)         { *v.of(row) = slices.Clone(*v.of(row)) }

// metadata is never nil, or lists would show null where they show [] of a record. Its order is
// that of State.Row, so that equal rows have equal bytes.
type metadata struct{}

func (metadata) append(b []byte, row *wire.Row) []byte {
	for _, m := range row.Metadata {
		b = AppendText(AppendText(b, m.Key), m.Value)
	}
	return b
}

func (metadata) read(r *Reader, row *wire.Row) {
	row.Metadata = []wire.MetadataRow{}
	for len(r.Rest) > 0 && r.Err == nil {
		row.Metadata = append(row.Metadata, wire.MetadataRow{Key: r.Text(), Value: r.Text()})
	}
}

func (metadata) share(from, row *wire.Row) { row.Metadata = from.Metadata }
func (metadata) own(row *wire.Row)         { row.Metadata = slices.Clone(row.Metadata) }

// scores are never nil, as metadata.
type scores struct{}

// The bits after a score's name: its kind, and whether it has an author.
const (
	scoreKindBits = 2
	scoreAuthored = 1 << scoreKindBits
)

func (scores) append(b []byte, row *wire.Row) []byte {
	for i := range row.Scores {
		b = appendScore(b, &row.Scores[i])
	}
	return b
}

func appendScore(b []byte, s *wire.Score) []byte {
	head := uint64(s.Kind)
	if s.Author != "" {
		head |= scoreAuthored
	}
	if s.Kind == wire.ScoreInteger || s.Kind == wire.ScoreBoolean {
		// The number is 0 to 100.
		head |= uint64(s.Number) << (scoreKindBits + 1)
	}
	b = binary.AppendUvarint(AppendText(b, s.Name), head)

	switch s.Kind {
	case wire.ScoreNumber:
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(s.Number))
	case wire.ScoreCategory:
		b = AppendText(b, s.Text)
	}
	if s.Author != "" {
		b = AppendText(b, s.Author)
	}

	return b
}

func (scores) read(r *Reader, row *wire.Row) {
	row.Scores = []wire.Score{}
	for len(r.Rest) > 0 && r.Err == nil {
		row.Scores = append(row.Scores, readScore(r))
	}
}

func readScore(r *Reader) (s wire.Score) {
	s.Name = r.Text()
	head := r.Uvarint()
	s.Kind = wire.ScoreKind(head & (scoreAuthored - 1))

	switch s.Kind {
	case wire.ScoreNumber:
		if bits := r.Take(8); r.Err == nil {
			s.Number = math.Float64frombits(binary.LittleEndian.Uint64(bits))
		}
	case wire.ScoreCategory:
		s.Text = r.Text()
	default:
		s.Number = float64(min(head>>(scoreKindBits+1), 100))
	}
	if head&scoreAuthored != 0 {
		s.Author = r.Text()
	}

	return s
}

func (scores) share(from, row *wire.Row) { row.Scores = from.Scores }
func (scores) own(row *wire.Row)         { row.Scores = slices.Clone(row.Scores) }

// integer is a whole number that may be absent.
type integer func(*wire.Row) **int64

func (v integer) append(b []byte, row *wire.Row) []byte { return appendInteger(b, v, row) }

func (v integer) read(r *Reader, row *wire.Row) {
	*v(row) = nil
	if len(r.Rest) > 0 {
		n := r.Varint()
		*v(row) = &n
	}
}

func (v integer) share(from, row *wire.Row) { *v(row) = *v(from) }
func (v integer) own(row *wire.Row)         { *v(row) = clone(*v(row)) }

func (v integer) integer(row *wire.Row) (n int64, present, exact bool) {
	if p := *v(row); p != nil {
		return *p, true, true
	}
	return 0, false, true
}

func (v integer) lend(n int64, ok bool, row *wire.Row, cell *Cell) {
	cell.integer, *v(row) = n, lent(&cell.integer, ok)
}

func (v integer) compared(n int64) float64 { return float64(n) }

// count is a whole number that is absent where it is 0.
type count func(*wire.Row) *int

func (v count) append(b []byte, row *wire.Row) []byte { return appendInteger(b, v, row) }
func (v count) share(from, row *wire.Row)             { *v(row) = *v(from) }
func (v count) own(*wire.Row)                         {}
func (v count) compared(n int64) float64              { return float64(n) }

func (v count) read(r *Reader, row *wire.Row) {
	*v(row) = 0
	if len(r.Rest) > 0 {
		*v(row) = int(r.Varint())
	}
}

func (v count) integer(row *wire.Row) (n int64, present, exact bool) {
	return int64(*v(row)), *v(row) != 0, true
}

func (v count) lend(n int64, ok bool, row *wire.Row, _ *Cell) {
	*v(row) = 0
	if ok {
		*v(row) = int(n)
	}
}

// flag is absent where it is false.
type flag func(*wire.Row) *bool

func (v flag) append(b []byte, row *wire.Row) []byte         { return appendInteger(b, v, row) }
func (v flag) read(r *Reader, row *wire.Row)                 { *v(row) = len(r.Rest) > 0 }
func (v flag) share(from, row *wire.Row)                     { *v(row) = *v(from) }
func (v flag) own(*wire.Row)                                 {}
func (v flag) integer(row *wire.Row) (int64, bool, bool)     { return 1, *v(row), true }
func (v flag) lend(_ int64, ok bool, row *wire.Row, _ *Cell) { *v(row) = ok }
func (v flag) compared(n int64) float64                      { return float64(n) }

// appendInteger appends the integer of a value that always is one.
func appendInteger(b []byte, v wholeValue, row *wire.Row) []byte {
	if n, present, _ := v.integer(row); present {
		b = binary.AppendVarint(b, n)
	}
	return b
}

// number is a number that may be absent. Blocks keep its billionths.
type number struct {
	of       func(*wire.Row) **float64
	back     func(billionths int64) float64 // as a row has it, to the last bit
	filtered func(float64) float64          // as filters compare it
}

func whole(billionths int64) float64 { return float64(billionths) / 1e9 }
func seconds(nanos int64) float64    { return time.Duration(nanos).Seconds() }
func asItIs(x float64) float64       { return x }

// Milliseconds converts a row's seconds to latency_ms; *1000 alone gives
// 1234.0000000000002.
func Milliseconds(seconds float64) float64 { return math.Round(seconds*1e9) / 1e6 }

func (v number) append(b []byte, row *wire.Row) []byte {
	if x := *v.of(row); x != nil {
		// The bits as they are: a sum must not depend on how its numbers were stored.
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(*x))
	}
	return b
}

func (v number) read(r *Reader, row *wire.Row) {
	*v.of(row) = nil
	if len(r.Rest) == 0 {
		return
	}
	if bits := r.Take(8); r.Err == nil {
		x := math.Float64frombits(binary.LittleEndian.Uint64(bits))
		*v.of(row) = &x
	}
}

func (v number) share(from, row *wire.Row) { *v.of(row) = *v.of(from) }
func (v number) own(row *wire.Row)         { *v.of(row) = clone(*v.of(row)) }

func (v number) integer(row *wire.Row) (n int64, present, exact bool) {
	x := *v.of(row)
	switch {
	case x == nil:
		return 0, false, true
	// Up to here the billionths stay below 2^53, where a float64 has every integer.
	case math.Abs(*x) > 1e6:
		return 0, true, false
	}

	n = int64(math.Round(*x * 1e9))
	return n, true, v.back(n) == *x
}

func (v number) lend(n int64, ok bool, row *wire.Row, cell *Cell) {
	cell.number, *v.of(row) = v.back(n), lent(&cell.number, ok)
}

func (v number) compared(n int64) float64 { return v.filtered(v.back(n)) }

// moment is a time that may be absent.
type moment func(*wire.Row) **time.Time

func (v moment) append(b []byte, row *wire.Row) []byte {
	if t := *v(row); t != nil {
		b = appendTime(b, *t)
	}
	return b
}

func (v moment) read(r *Reader, row *wire.Row) {
	*v(row) = nil
	if len(r.Rest) > 0 {
		t := readTime(r)
		*v(row) = &t
	}
}

func (v moment) share(from, row *wire.Row) { *v(row) = *v(from) }
func (v moment) own(row *wire.Row)         { *v(row) = clone(*v(row)) }

func (v moment) integer(row *wire.Row) (n int64, present, exact bool) {
	t := *v(row)
	if t == nil {
		return 0, false, true
	}
	return nanosOf(*t)
}

func (v moment) lend(n int64, ok bool, row *wire.Row, cell *Cell) {
	cell.moment, *v(row) = time.Unix(0, n).UTC(), lent(&cell.moment, ok)
}

func (v moment) compared(n int64) float64 { return float64(n) }

// accepted is the order time, absent where it equals the list time, which the place tells.
type accepted struct{}

func (accepted) append(b []byte, row *wire.Row) []byte {
	if !row.AcceptedAt.Equal(row.ListTime) {
		b = appendTime(b, row.AcceptedAt)
	}
	return b
}

func (accepted) read(r *Reader, row *wire.Row) {
	if len(r.Rest) > 0 {
		row.AcceptedAt = readTime(r)
	}
}

func (accepted) share(from, row *wire.Row) {
	if !from.AcceptedAt.IsZero() {
		row.AcceptedAt = from.AcceptedAt
	}
}

func (accepted) own(*wire.Row) {}

func (accepted) integer(row *wire.Row) (n int64, present, exact bool) {
	if row.AcceptedAt.Equal(row.ListTime) {
		return 0, false, true
	}
	return nanosOf(row.AcceptedAt)
}

func (accepted) lend(n int64, ok bool, row *wire.Row, _ *Cell) {
	if ok {
		row.AcceptedAt = time.Unix(0, n).UTC()
	}
}

func (accepted) compared(n int64) float64 { return float64(n) }

// nanosOf returns a time in nanoseconds since 1970.
func nanosOf(t time.Time) (n int64, present, exact bool) {
	// Outside 1677 to 2262 the result is undefined, which the comparison finds out.
	n = t.UnixNano()
	return n, true, t.Equal(time.Unix(0, n))
}

// appendTime appends seconds and nanoseconds. One count of nanoseconds reaches from 1678 to 2262
// only, and callers write what they like.
func appendTime(b []byte, t time.Time) []byte {
	return binary.AppendUvarint(binary.AppendVarint(b, t.Unix()), uint64(t.Nanosecond()))
}

func readTime(r *Reader) time.Time {
	seconds := r.Varint()
	return time.Unix(seconds, int64(r.Uvarint())).UTC()
}

// Reader takes values off the front of bytes. After a fault it returns zero values. Not
// safe for concurrent use.
type Reader struct {
	Rest []byte // what was not read yet; nil after a fault
	Err  error  // nil, or ErrRow
}

// Fail ends the reading: what was read makes no sense.
func (r *Reader) Fail() { r.Rest, r.Err = nil, ErrRow }

// Uvarint reads what binary.AppendUvarint wrote.
func (r *Reader) Uvarint() uint64 {
	// Most are that small; millions of them are read for one answer.
	if len(r.Rest) > 0 && r.Rest[0] < 0x80 {
		n := r.Rest[0]
		r.Rest = r.Rest[1:]
		return uint64(n)
	}

	return r.longUvarint()
}

func (r *Reader) longUvarint() uint64 {
	// After a fault Rest is empty, so this fails again and returns 0.
	n, used := binary.Uvarint(r.Rest)
	if used <= 0 {
		r.Fail()
		return 0
	}
	r.Rest = r.Rest[used:]

	return n
}

// Varint reads what binary.AppendVarint wrote.
func (r *Reader) Varint() int64 {
	n := r.Uvarint()
	return int64(n>>1) ^ -int64(n&1)
}

// Take returns the next n bytes, which alias those that are read.
func (r *Reader) Take(n uint64) []byte {
	// The length comes from the bytes, which may be damaged.
	if n > uint64(len(r.Rest)) {
		r.Fail()
		return nil
	}
	b := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return b
}

// Text reads what AppendText wrote.
func (r *Reader) Text() string { return string(r.Take(r.Uvarint())) }

// AppendText appends a text and its length.
func AppendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// AppendTexts appends texts, not their number.
func AppendTexts(b []byte, texts []string) []byte {
	for _, s := range texts {
		b = AppendText(b, s)
	}
	return b
}

// A metadata value of more than longBytes is only in the body of its event. States and
// rows hold a reference to it instead, which is
//
//	longMark   a noncharacter, which no text should have; what begins with it is referred to as well
//	32         HashValue, in hex
//	           the beginning of the value, at most longPrefixBytes
//
// so that equal values have equal references, and only they.
const (
	LongBytes       = 1024
	longPrefixBytes = 256
	longMark        = "\U0010FFFF"
)

// StoredValue returns what states and rows hold of a metadata value: itself,
// or a reference.
func StoredValue(key, value string) string {
	// A short value that begins with the mark gets a reference
	// too: as it is, it would be read as one.
	if len(value) <= LongBytes && !strings.HasPrefix(value, longMark) {
		return value
	}
	hash := HashValue(key, value)

	return longMark + hex.EncodeToString(hash[:]) + CutBytes(value, longPrefixBytes)
}

// HashStored returns HashValue of what a state or a row holds.
func HashStored(key, stored string) [16]byte {
	if hash, _, ok := readReference(stored); ok {
		return hash
	}

	return HashValue(key, stored)
}

// readReference takes a reference apart; ok is false for anything else.
func readReference(stored string) (hash [16]byte, prefix string, ok bool) {
	rest, ok := strings.CutPrefix(stored, longMark)
	if !ok || len(rest) < hex.EncodedLen(len(hash)) {
		return hash, "", false
	}
	digits, prefix := rest[:hex.EncodedLen(len(hash))], rest[hex.EncodedLen(len(hash)):]
	_, err := hex.Decode(hash[:], []byte(digits))

	return hash, prefix, err == nil
}

// IsReference reports whether a stored value is a reference to a long one.
func IsReference(stored string) bool {
	_, _, ok := readReference(stored)
	return ok
}

// ShownValue returns what lists show of a stored value.
func ShownValue(stored string) string {
	if _, prefix, ok := readReference(stored); ok {
		return prefix + "…"
	}

	return stored
}

// HashValue returns what a tombstone keeps of a metadata value. It does not reveal
// the value, because its owner asked to be forgotten. All stores use it, so
// tombstones can be copied.
func HashValue(name, value string) [16]byte {
	h := sha256.New()
	// The length comes first: otherwise "ab"+"c" and "a"+"bc" would be the same.
	h.Write(binary.AppendUvarint(nil, uint64(len(name))))
	h.Write([]byte(name))
	h.Write([]byte(value))
	return [16]byte(h.Sum(nil))
}

// CutBytes shortens a text to at most that many bytes, between two characters.
func CutBytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}

	// A copy: the short text must not keep a long body in memory.
	return strings.Clone(s[:most])
}
