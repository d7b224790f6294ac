package query

import (
	"bytes"
	"encoding/binary"
	"math"
	"sort"
	"time"

	"github.com/google/uuid"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

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
