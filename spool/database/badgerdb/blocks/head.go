package blocks

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"promptspool/api/wire"
	"promptspool/api/words"
	"promptspool/spool/archive/rowcode"
)

// headVersion begins a block's head, which is
//
//	1   version of this table, headVersion
//	n   rows, uvarint
//	n   seconds of the oldest row's list time, zigzag varint
//	n   seconds of the earliest and latest start, zigzag varints; earliest > latest: none has one
//	n   metadata keys with their own column, uvarint; then for each its length and bytes
//	n   slots of scores with their own column, uvarint; then for each its name and author, like keys
//	n   weight of the rows (rowcode.Weight), uvarint
//	n   seconds of the earliest and latest order time, zigzag varints
//	n   columns: it has the first so many, uvarint
//	n   words.Folding of its index of words, uvarint
//	n   a Bloom filter of the rows' tags, like keys; it may be missing
//
// Version 1, of 0.1.0, has none of the last three: there are rowcode.FirstColumns, and Folding is 1.
const headVersion = 2

// Bounds of columns for one metadata key or score. All others share one.
const (
	keysMax     = 32  // metadata keys; names of scores
	keyBytesMax = 256 // of a key, of a name with its author
	authorsMax  = 8   // of a name whose scores have columns: one for each
)

var errHead = errors.New("this version does not write such a head")

// Head is the head of a block, decoded. Times are in seconds.
type Head struct {
	Rows   int
	Oldest int64 // the list time of the oldest row
	Weight int   // of the rows, see rowcode.Weight

	Folding int            // words.Folding of the index of the block's words
	columns rowcode.Column // that the block has: those before it

	startMin, startMax int64    // startMin > startMax: no row has a start
	accepted           [2]int64 // the earliest and latest order time
	keys               []string // metadata keys with their own column, sorted
	tags               string   // a Bloom filter of the rows' tags; "" if there is none

	// Slots with their own column, sorted. Those of one name all have one, or none.
	slots []wire.ScoreSlot
}

// HeadOf returns the head of a block with the given rows: at least one, in order.
func HeadOf(rows []Placed) Head {
	h := Head{Rows: len(rows), Weight: Weight(rows), startMin: 1, Folding: words.Folding, columns: rowcode.ColumnBody}
	h.accepted = [2]int64{math.MaxInt64, math.MinInt64}

	// The last row is the oldest: the list begins with the newest.
	at, _ := DecodePlace(rows[len(rows)-1].Place[:])
	h.Oldest = at.Unix()

	keys, scores, tags := make(map[string]int), make(scoreNames), make(map[string]bool)
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
			if len(m.Key) <= keyBytesMax {
				keys[m.Key]++
			}
		}
		scores.add(row.Scores)
		for _, tag := range row.Tags {
			tags[tag] = true
		}
	}

	h.tags = filterOf(tags)
	h.keys = frequent(keys, len(rows))
	h.slots = scores.frequent(len(rows))

	return h
}

// frequent returns the keys of many rows, sorted.
func frequent(keys map[string]int, rows int) []string {
	// A column for a key of one or two rows would cost more than it saves.
	maps.DeleteFunc(keys, func(_ string, n int) bool { return n*64 < rows })
	all := slices.SortedFunc(maps.Keys(keys), func(a, b string) int {
		// The most frequent first.
		return cmp.Or(cmp.Compare(keys[b], keys[a]), cmp.Compare(a, b))
	})
	all = all[:min(len(all), keysMax)]
	slices.Sort(all)

	return all
}

// scoreNames are the names of scores.
type scoreNames map[string]*scoreName

type scoreName struct {
	count   int
	authors map[string]bool
	shared  bool // it cannot have columns
}

func (s scoreNames) add(scores []wire.Score) {
	for i, score := range scores {
		n := s[score.Name]
		if n == nil {
			n = &scoreName{authors: make(map[string]bool)}
			s[score.Name] = n
		}
		n.count++
		n.authors[score.Author] = true

		// No column has two values of a row.
		twice := i > 0 && score.ScoreSlot == scores[i-1].ScoreSlot
		long := len(score.Name)+len(score.Author) > keyBytesMax
		n.shared = n.shared || twice || long || len(n.authors) > authorsMax
	}
}

// frequent returns the slots of the names that many rows have, sorted.
func (s scoreNames) frequent(rows int) (slots []wire.ScoreSlot) {
	names := make(map[string]int)
	for name, n := range s {
		if !n.shared {
			names[name] = n.count
		}
	}
	for _, name := range frequent(names, rows) {
		for _, author := range slices.Sorted(maps.Keys(s[name].authors)) {
			slots = append(slots, wire.ScoreSlot{Name: name, Author: author})
		}
	}

	return slots
}

// slotsOf returns from where to where slots has those of a name.
func (h *Head) slotsOf(name string) (from, to int) {
	from, _ = slices.BinarySearchFunc(h.slots, wire.ScoreSlot{Name: name}, wire.ScoreSlot.Compare)
	for to = from; to < len(h.slots) && h.slots[to].Name == name; to++ {
	}
	return from, to
}

// Encode returns the head as it is stored.
func (h *Head) Encode() []byte {
	b := binary.AppendUvarint([]byte{headVersion}, uint64(h.Rows))
	for _, n := range []int64{h.Oldest, h.startMin, h.startMax} {
		b = binary.AppendVarint(b, n)
	}

	b = rowcode.AppendTexts(binary.AppendUvarint(b, uint64(len(h.keys))), h.keys)
	b = binary.AppendUvarint(b, uint64(len(h.slots)))
	for _, slot := range h.slots {
		b = rowcode.AppendTexts(b, []string{slot.Name, slot.Author})
	}
	b = binary.AppendUvarint(b, uint64(h.Weight))
	b = binary.AppendVarint(binary.AppendVarint(b, h.accepted[0]), h.accepted[1])
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(h.columns)), uint64(h.Folding))
	return rowcode.AppendTexts(b, []string{h.tags})
}

// IsOld reports whether an earlier version wrote the block. One that is written now would have more
// columns, another index of words, or a summary that counts more.
func (h *Head) IsOld() bool { return h.columns < rowcode.ColumnBody || h.Folding != words.Folding }

// DecodeHead reads what Encode returned.
func DecodeHead(b []byte) (h Head, err error) {
	if len(b) == 0 || b[0] < 1 || b[0] > headVersion {
		return h, errHead
	}

	// A damaged count of keys takes no memory: the reader fails where the bytes end.
	r := rowcode.Reader{Rest: b[1:]}
	h.Rows = int(r.Uvarint())
	h.Oldest, h.startMin, h.startMax = r.Varint(), r.Varint(), r.Varint()
	for n := r.Uvarint(); n > 0 && r.Err == nil; n-- {
		h.keys = append(h.keys, r.Text())
	}
	for n := r.Uvarint(); n > 0 && r.Err == nil; n-- {
		h.slots = append(h.slots, wire.ScoreSlot{Name: r.Text(), Author: r.Text()})
	}
	h.Weight = int(r.Uvarint())
	h.accepted = [2]int64{r.Varint(), r.Varint()}
	h.columns, h.Folding = rowcode.FirstColumns, 1
	if b[0] > 1 {
		h.columns, h.Folding = rowcode.Column(min(r.Uvarint(), uint64(rowcode.ColumnBody)+1)), int(r.Uvarint())
		if len(r.Rest) > 0 {
			h.tags = r.Text()
		}
	}

	if r.Err != nil || h.Rows < 1 || h.Rows > columnRowsMax ||
		h.columns < rowcode.FirstColumns || h.columns > rowcode.ColumnBody {
		return h, errHead
	}

	return h, nil
}

// Parts returns the names of all parts of the block.
func (h *Head) Parts() []Part {
	parts := []Part{{column: rowcode.ColumnID}, Summary}
	for column := rowcode.ColumnFunction; column < h.columns; column++ {
		parts = append(parts, Part{column: column})
	}
	for _, key := range h.keys {
		parts = append(parts, ofMetadataKey(key))
	}
	for _, slot := range h.slots {
		parts = append(parts, ofScore(slot))
	}
	return parts
}

// mayStart reports whether a row may start from one time to another. A zero time is not a
// bound.
func (h *Head) mayStart(from, to time.Time) bool {
	switch {
	case from.IsZero() && to.IsZero():
		return true
	case h.startMin > h.startMax:
		// No row has a start.
		return false
	}
	return (from.IsZero() || h.startMax >= from.Unix()) && (to.IsZero() || h.startMin <= to.Unix())
}

// mayBeAccepted reports whether a row may have an order time from one time to another. A zero
// time is not a bound.
func (h *Head) mayBeAccepted(from, to time.Time) bool {
	return (from.IsZero() || h.accepted[1] >= from.Unix()) && (to.IsZero() || h.accepted[0] <= to.Unix())
}

// Of its Bloom filter of tags, a block has so many bytes for each tag, and the bits set for each.
const (
	tagBytes     = 2
	tagBits      = 4
	tagsBytesMax = 4 << 10 // each scan reads all heads
)

// filterOf returns a Bloom filter of tags. One in four hundred others passes, more if there are very many tags.
func filterOf(tags map[string]bool) string {
	filter := make([]byte, min(max(len(tags)*tagBytes, 1), tagsBytesMax))
	for tag := range tags {
		for _, bit := range bitsOf(tag, len(filter)) {
			filter[bit/8] |= 1 << (bit % 8)
		}
	}
	return string(filter)
}

// bitsOf returns the bits of a tag in a filter of so many bytes.
func bitsOf(tag string, size int) (bits [tagBits]uint32) {
	hash := xxhash.Sum64String(tag)
	for i := range bits {
		bits[i] = (uint32(hash) + uint32(i)*uint32(hash>>32)) % uint32(size*8)
	}
	return bits
}

// mayHaveTag reports whether a row may have a tag.
func (h *Head) mayHaveTag(tag string) bool {
	if h.tags == "" {
		return true
	}
	for _, bit := range bitsOf(tag, len(h.tags)) {
		if h.tags[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
	}
	return true
}

// Part names one of the values that a block consists of, besides its head.
type Part struct {
	column rowcode.Column
	ofKey  bool // the column of one metadata key or score; else the column is what those leave
	key    string
}

// Summary is the part that holds query.Summarize of the rows. Unlike the others it is not
// a column.
var Summary = Part{column: 0xff}

// AppendTo appends the part's name, as it ends a key. That is one byte for the column,
// and for the column of a single metadata key or score 1 and that key.
func (p Part) AppendTo(b []byte) []byte {
	// The 1 keeps the column of an empty key apart from the one that is shared.
	b = append(b, byte(p.column))
	if p.ofKey {
		b = append(append(b, 1), p.key...)
	}
	return b
}

// ofMetadataKey returns the part that is the column of one metadata key.
func ofMetadataKey(key string) Part {
	return Part{column: rowcode.ColumnMetadata, ofKey: true, key: key}
}

// ofScore returns the part that is the column of the scores in one slot.
func ofScore(slot wire.ScoreSlot) Part {
	key := rowcode.AppendTexts(nil, []string{slot.Name, slot.Author})
	return Part{column: rowcode.ColumnScores, ofKey: true, key: string(key)}
}
