package query

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// Order is the order of a search. The zero Order is newest first by list time.
type Order struct {
	By        string // as wire.IsSortField allows; "" means the list time, then by request id
	Ascending bool
}

// Position is a record's place in a list.
type Position struct {
	At        time.Time
	RequestID string
	Value     SortValue // the zero one in the order of time
}

// SortValue is what a record is sorted by: a number, a text, or nothing if it is unknown.
type SortValue struct {
	Known  bool
	Number float64
	Text   string
}

// compileOrder checks the order of a search.
func compileOrder(by, order string) (Order, error) {
	o := Order{By: by, Ascending: order == "asc"}
	switch {
	case by != "" && !wire.IsSortField(by):
		return o, invalid("sort_by", "must be one of: %s", strings.Join(wire.SortWords, ", "))
	case order != "" && order != "asc" && order != "desc":
		return o, invalid("sort_order", "must be asc or desc")
	case by == "" && o.Ascending:
		return o, invalid("sort_order", "needs sort_by; without it, rows come newest first")
	}

	return o, nil
}

// Column returns what the order looks at besides time and id.
func (o Order) Column() rowcode.Column {
	switch _, ofScore := o.Score(); {
	case o.By == "":
		return rowcode.ColumnTime
	case ofScore:
		return rowcode.ColumnScores
	}
	return fields[o.By].column
}

// Score returns the name of the score that the order is of, if it is.
func (o Order) Score() (name string, ok bool) { return strings.CutPrefix(o.By, wire.ScoreSort) }

// HasTops reports whether Tops have the order: scores have too many names.
func (o Order) HasTops() bool { return slices.Contains(wire.SortFields, o.By) }

// ByTime reports whether it is one of times, nearly that of the list.
func (o Order) ByTime() bool {
	switch o.By {
	case "", "list_time", "accepted_at", "request_start_time":
		return true
	}
	return false
}

// PositionOf returns the position of a row.
func (o Order) PositionOf(row *wire.Row) Position {
	p := Position{At: row.ListTime, RequestID: row.RequestID}
	switch o.By {
	case "":
		return p
	case "status":
		p.Value = SortValue{Known: row.Status != "", Text: row.Status}
	// Times are numbers of microseconds: a float64 holds these exactly.
	case "list_time":
		p.Value = SortValue{Known: true, Number: float64(row.ListTime.UnixMicro())}
	case "accepted_at":
		p.Value = SortValue{Known: true, Number: float64(row.AcceptedAt.UnixMicro())}
	case "request_start_time":
		if row.StartTime != nil {
			p.Value = SortValue{Known: true, Number: float64(row.StartTime.UnixMicro())}
		}
	default:
		var numbers []float64
		if name, ok := o.Score(); ok {
			numbers = scores(row, name)
		} else {
			numbers = fields[o.By].number(row, "")
		}
		// The mean, as a score may have several authors.
		for _, x := range numbers {
			p.Value.Known, p.Value.Number = true, p.Value.Number+x/float64(len(numbers))
		}
	}

	return p
}

// PositionOf returns the position of a row in the order of time.
func PositionOf(row *wire.Row) Position { return Order{}.PositionOf(row) }

// Compare is negative if a comes before b in a list. Unknown values come last, equal ones
// newest first.
func (o Order) Compare(a, b Position) int {
	// Without ties, or a cursor could skip rows.
	return cmp.Or(o.compareValues(a.Value, b.Value), a.Compare(b))
}

// compareValues is Compare for what lists are sorted by.
func (o Order) compareValues(a, b SortValue) int {
	// Before the direction is looked at: unknown values come last in both.
	if a.Known != b.Known {
		if a.Known {
			return -1
		}
		return 1
	}

	c := cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Text, b.Text))
	if !o.Ascending {
		c = -c
	}

	return c
}

// SortBounds are the values between which rows may still enter a page.
type SortBounds struct {
	Order Order

	first, last *SortValue // of the cursor, and of the page's end; nil means no bound
	ties        bool       // a row with the last value may enter: it is newer than those before
}

// Has reports whether a row may enter by its value alone.
func (b SortBounds) Has(row *wire.Row) bool {
	v := b.Order.PositionOf(row).Value
	return !b.Before(v) && !b.Behind(v)
}

// Before reports whether a value comes before those of the page.
func (b SortBounds) Before(v SortValue) bool {
	return b.first != nil && b.Order.compareValues(v, *b.first) < 0
}

// atCursor reports whether a value is that of the cursor: then only its place shows on
// which side a row is.
func (b SortBounds) atCursor(v SortValue) bool {
	return b.first != nil && b.Order.compareValues(v, *b.first) == 0
}

// Behind reports whether a value comes after those of the page.
func (b SortBounds) Behind(v SortValue) bool {
	if b.last == nil {
		return false
	}
	c := b.Order.compareValues(v, *b.last)
	return c > 0 || c == 0 && !b.ties
}

// MayHave reports whether a row may enter whose number is unknown or from least to most.
func (b SortBounds) MayHave(least, most float64) bool {
	first, last := SortValue{Known: true, Number: least}, SortValue{Known: true, Number: most}
	if !b.Order.Ascending {
		first, last = last, first
	}
	return !b.Behind(first) && !b.Before(last) || !b.Before(SortValue{}) && !b.Behind(SortValue{})
}

// Compare is negative if p is newer than other: the order of time.
func (p Position) Compare(other Position) int {
	if c := other.At.Compare(p.At); c != 0 {
		return c
	}
	return strings.Compare(other.RequestID, p.RequestID)
}

// formatCursor returns the position of a page's last row as an opaque text: the time and
// the id and, for an order other than time, the order and the value.
func formatCursor(p Position, o Order) string {
	text := p.At.UTC().Format(time.RFC3339Nano) + " " + p.RequestID
	if o.By != "" {
		text += " " + o.name()

		// The text comes last because it may have spaces. An unknown value has neither
		// part.
		if p.Value.Known {
			text += " " + strconv.FormatFloat(p.Value.Number, 'g', -1, 64) + " " + p.Value.Text
		}
	}

	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// Cursor returns the text for a position in the order of time.
func (p Position) Cursor() string { return formatCursor(p, Order{}) }

// ParseCursor reads what Position.Cursor returned.
func ParseCursor(s string) (Position, bool) { return parseCursor(s, Order{}) }

// name names the order in a cursor.
func (o Order) name() string {
	by := o.By
	// Names of scores may be long, and have spaces.
	if name, ok := o.Score(); ok {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(name))
		by = wire.ScoreSort + strconv.FormatUint(hash.Sum64(), 36)
	}
	if o.Ascending {
		return by + "+"
	}
	return by + "-"
}

// parseCursor reads what formatCursor returned for the same order.
func parseCursor(s string, o Order) (p Position, ok bool) {
	text, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return p, false
	}

	// At most five parts, so that a text with spaces stays whole.
	parts := strings.SplitN(string(text), " ", 5)
	if len(parts) < 2 {
		return p, false
	}

	t, timeErr := time.Parse(time.RFC3339Nano, parts[0])
	id, idErr := wire.ParseID(parts[1])
	if timeErr != nil || idErr != nil {
		return p, false
	}

	// A cursor of another order is refused: its page would begin anywhere.
	p = Position{At: t.UTC(), RequestID: id}
	switch {
	case o.By == "":
		return p, len(parts) == 2
	case len(parts) < 3 || parts[2] != o.name():
		return p, false
	case len(parts) == 3:
		return p, true
	case len(parts) < 5:
		return p, false
	}

	p.Value.Known, p.Value.Text = true, parts[4]
	p.Value.Number, err = strconv.ParseFloat(parts[3], 64)

	// NaN has no place in an order.
	return p, err == nil && !math.IsNaN(p.Value.Number)
}

// Tops are the first rows of a range of a list in each order, so that a page in one of
// them need not read every row of millions. They are
//
//	1   version of this table, topsVersion
//	n   rows of the range, uvarint
//	    for each of wire.SortFields that there were, descending and then ascending: the bytes of what follows,
//	    uvarint; n positions, uvarint; for each its list time in nanoseconds, varint, 16 bytes
//	    of id, and what it is sorted by: 0 nothing, 1 a float64, 2 a text
const topsVersion = 1

// firstOrders is how many of wire.SortFields there were in 0.1.0. Tops that lack one of a later
// version end before it.
const firstOrders = 9

const (
	topUnknown = iota
	topNumber
	topText
)

// TopList is the beginning of a range in one order.
type TopList struct {
	Rows   int        // of the range
	Places []Position // of the first ones
}

// Tops returns the tops of at least one row: most of each order.
func Tops(most, rows int, row func(i int) *wire.Row) []byte {
	b := binary.AppendUvarint([]byte{topsVersion}, uint64(rows))
	var list []byte
	for _, by := range wire.SortFields {
		for _, ascending := range []bool{false, true} {
			o := Order{By: by, Ascending: ascending}
			list = list[:0]
			first := o.first(most, rows, row)
			list = binary.AppendUvarint(list, uint64(len(first)))
			for _, p := range first {
				list = appendTop(list, p)
			}
			b = append(binary.AppendUvarint(b, uint64(len(list))), list...)
		}
	}

	return b
}

// AreTops reports whether tops are those of some rows, however many each order has. There may
// be none, of all orders or of later ones.
func AreTops(tops []byte, rows int, row func(i int) *wire.Row) bool {
	if len(tops) == 0 {
		return true
	}
	list, err := ReadTops(tops, Order{By: wire.SortFields[0]})
	return err == nil && bytes.HasPrefix(Tops(len(list.Places), rows, row), tops)
}

// first returns the positions of the first rows in an order.
func (o Order) first(most, rows int, row func(i int) *wire.Row) (first []Position) {
	for i := range rows {
		p := o.PositionOf(row(i))
		if len(first) == most && o.Compare(p, first[most-1]) >= 0 {
			continue // as nearly all
		}

		at := sort.Search(len(first), func(i int) bool { return o.Compare(p, first[i]) < 0 })
		if len(first) < most {
			first = append(first, Position{})
		}
		copy(first[at+1:], first[at:])
		first[at] = p
	}
	return first
}

func appendTop(b []byte, p Position) []byte {
	id, _ := uuid.Parse(p.RequestID)
	b = append(binary.AppendVarint(b, p.At.UnixNano()), id[:]...)
	switch {
	case !p.Value.Known:
		return append(b, topUnknown)
	case p.Value.Text != "":
		return rowcode.AppendText(append(b, topText), p.Value.Text)
	}
	return binary.LittleEndian.AppendUint64(append(b, topNumber), math.Float64bits(p.Value.Number))
}

// ReadTops reads the list of an order, one of wire.SortFields, out of what Tops returned. It has no
// places if there was no such order then.
func ReadTops(tops []byte, o Order) (list TopList, err error) {
	r := rowcode.Reader{Rest: tops}
	if version := r.Take(1); len(version) == 0 || version[0] != topsVersion {
		return list, ErrSummary
	}

	list.Rows = int(min(r.Uvarint(), math.MaxInt32))
	for i, by := range wire.SortFields {
		if i >= firstOrders && len(r.Rest) == 0 && r.Err == nil {
			return list, nil
		}
		for _, ascending := range []bool{false, true} {
			part := rowcode.Reader{Rest: r.Take(r.Uvarint())}
			if by != o.By || ascending != o.Ascending {
				continue
			}
			for n := part.Uvarint(); n > 0 && part.Err == nil; n-- {
				list.Places = append(list.Places, readTop(&part))
			}
			if part.Err != nil || len(list.Places) == 0 {
				return list, ErrSummary
			}
			return list, nil
		}
	}

	return list, ErrSummary
}

func readTop(r *rowcode.Reader) (p Position) {
	p.At = time.Unix(0, r.Varint()).UTC()
	if id := r.Take(16); len(id) == 16 {
		p.RequestID = uuid.UUID(id).String()
	}

	switch kind := r.Take(1); {
	case len(kind) == 0 || kind[0] == topUnknown:
	case kind[0] == topText:
		p.Value = SortValue{Known: true, Text: r.Text()}
	default:
		if n := r.Take(8); len(n) == 8 {
			p.Value = SortValue{Known: true, Number: math.Float64frombits(binary.LittleEndian.Uint64(n))}
		}
	}

	return p
}
