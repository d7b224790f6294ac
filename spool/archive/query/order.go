package query

import (
	"cmp"
	"encoding/base64"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

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
