package blocks

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"promptspool/spool/archive/rowcode"
)

// headVersion begins a block's head, which is
//
//	1   version of this table, headVersion
//	n   rows, uvarint
//	n   seconds of the oldest row's list time, zigzag varint
//	n   seconds of the earliest and latest start, zigzag varints; earliest > latest: none has one
//	n   metadata keys with their own column, uvarint; then for each its length and bytes
//	n   weight of the rows (rowcode.Weight), uvarint
//	n   seconds of the earliest and latest order time, zigzag varints
const headVersion = 1

// keysMax bounds the metadata keys with their own column. All others share one.
const keysMax = 32

var errHead = errors.New("this version does not write such a head")

// Head is the head of a block, decoded. Times are in seconds.
type Head struct {
	Rows   int
	Oldest int64 // the list time of the oldest row
	Weight int   // of the rows, see rowcode.Weight

	startMin, startMax int64    // startMin > startMax: no row has a start
	accepted           [2]int64 // the earliest and latest order time
	keys               []string // metadata keys with their own column, sorted
}

// HeadOf returns the head of a block with the given rows: at least one, in order.
func HeadOf(rows []Placed) Head {
	h := Head{Rows: len(rows), Weight: Weight(rows), startMin: 1}
	h.accepted = [2]int64{math.MaxInt64, math.MinInt64}

	// The last row is the oldest: the list begins with the newest.
	at, _ := DecodePlace(rows[len(rows)-1].Place[:])
	h.Oldest = at.Unix()

	keys := make(map[string]int)
	for i := range rows {
		row := &rows[i].Row
		s := row.AcceptedAt.Unix()
		h.accepted[0], h.accepted[1] = min(h.accepted[0], s), max(h.accepted[1], s)

		// Until the first start, startMin is above startMax.
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
	h.keys = h.keys[:min(len(h.keys), keysMax)]
	slices.Sort(h.keys)

	return h
}

// Encode returns the head as it is stored.
func (h *Head) Encode() []byte {
	b := binary.AppendUvarint([]byte{headVersion}, uint64(h.Rows))
	for _, n := range []int64{h.Oldest, h.startMin, h.startMax} {
		b = binary.AppendVarint(b, n)
	}

	b = rowcode.AppendTexts(binary.AppendUvarint(b, uint64(len(h.keys))), h.keys)
	b = binary.AppendUvarint(b, uint64(h.Weight))
	return binary.AppendVarint(binary.AppendVarint(b, h.accepted[0]), h.accepted[1])
}

// DecodeHead reads what Encode returned.
func DecodeHead(b []byte) (h Head, err error) {
	if len(b) == 0 || b[0] != headVersion {
		return h, errHead
	}

	// A damaged count of keys takes no memory: the reader fails where the bytes end.
	r := rowcode.Reader{Rest: b[1:]}
	h.Rows = int(r.Uvarint())
	h.Oldest, h.startMin, h.startMax = r.Varint(), r.Varint(), r.Varint()
	for n := r.Uvarint(); n > 0 && r.Err == nil; n-- {
		h.keys = append(h.keys, r.Text())
	}
	h.Weight = int(r.Uvarint())
	h.accepted = [2]int64{r.Varint(), r.Varint()}

	if r.Err != nil || h.Rows < 1 {
		return h, errHead
	}

	return h, nil
}

// Parts returns the names of all parts of the block.
func (h *Head) Parts() []Part {
	parts := []Part{{column: rowcode.ColumnID}, Summary}
	for column := rowcode.ColumnFunction; column < rowcode.ColumnBody; column++ {
		parts = append(parts, Part{column: column})
	}
	for _, key := range h.keys {
		parts = append(parts, ofMetadataKey(key))
	}
	return parts
}

// mayStart reports whether a row may start from one time to another. A zero time is not a
// bound.
func (h *Head) mayStart(from, to time.Time) bool {
	switch {
	case from.IsZero() && to.IsZero():
		return true
	case h.startMin > h.startMax: // no row has a start
		return false
	}
	return (from.IsZero() || h.startMax >= from.Unix()) && (to.IsZero() || h.startMin <= to.Unix())
}

// LastAccepted returns the latest order time of the rows, in seconds.
func (h *Head) LastAccepted() int64 { return h.accepted[1] }

// mayBeAccepted reports whether a row may have an order time from one time to another. A zero
// time is not a bound.
func (h *Head) mayBeAccepted(from, to time.Time) bool {
	return (from.IsZero() || h.accepted[1] >= from.Unix()) && (to.IsZero() || h.accepted[0] <= to.Unix())
}
