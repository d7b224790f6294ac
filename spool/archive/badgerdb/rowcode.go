package badgerdb

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// A row that is not in a block yet stands alone under its key, which tells its time and id:
//
//	1   version of this table, rowVersion
//	then for each column from archive.ColumnFunction on, in their order
//	n   length of the value, uvarint; 0: the row has nothing there
//	    the value
//
// A value is
//
//	text           its bytes; of a text that may be absent or empty, a 1 before them
//	texts          for each its length, uvarint, and its bytes
//	pairs          for each key and value like texts
//	scores         for each its name like a text of texts, and the score, zigzag varint
//	integer        zigzag varint
//	number         IEEE 754 bits, 8 bytes, little-endian
//	time           seconds, zigzag varint, and nanoseconds, uvarint
//
// Newer versions append columns; a reader takes the missing ones for absent.
const rowVersion = 1

var errRow = errors.New("the row is not one that this version writes")

// goneRow is the value of a row that was deleted and still stands in a block: it hides that one.
var goneRow = []byte{0}

// mark is the value of the two keys that stand where a block begins, among the rows that stand alone. Behind them lie only rows
// that were packed, which Badger has to pass over one by one until it has compacted them away: an iterator that looks one
// key ahead never comes there.
var mark = []byte{1}

func encodeRow(row *wire.Row) []byte {
	b := append(make([]byte, 0, 256), rowVersion)
	var scratch []byte
	for c := archive.ColumnFunction; c < archive.ColumnBody; c++ {
		scratch = appendValue(scratch[:0], c, row)
		b = binary.AppendUvarint(b, uint64(len(scratch)))
		b = append(b, scratch...)
	}
	return b
}

// decodeRow reads the columns that are wanted into row, whose other fields stay. Texts are copies.
func decodeRow(b []byte, want archive.Columns, row *wire.Row) error {
	if len(b) == 0 || b[0] != rowVersion {
		return errRow
	}
	b = b[1:]
	for c := archive.ColumnFunction; c < archive.ColumnBody && len(b) > 0; c++ {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used) {
			return errRow
		}
		if want.Has(c) {
			if err := readValue(b[used:used+int(n)], c, row); err != nil {
				return err
			}
		}
		b = b[used+int(n):]
	}
	return nil
}

// appendValue appends what a row has in a column; nothing if it has nothing.
func appendValue(b []byte, c archive.Column, row *wire.Row) []byte {
	switch c {
	case archive.ColumnFunction:
		return append(b, row.FunctionName...)
	case archive.ColumnModel:
		return append(b, row.Engine...)
	case archive.ColumnProvider:
		return append(b, row.Provider...)
	case archive.ColumnStatus:
		return append(b, row.Status...)
	case archive.ColumnSidecar:
		return append(b, row.Sidecar...)
	case archive.ColumnTemplate:
		return appendOptional(b, row.PromptName)
	case archive.ColumnLabel:
		return appendOptional(b, row.PromptLabel)
	case archive.ColumnFinish:
		return append(b, row.FinishReason...)
	case archive.ColumnErrorType:
		return append(b, row.ErrorType...)
	case archive.ColumnShape:
		return append(b, row.OutputShape...)
	case archive.ColumnTools:
		return appendTexts(b, row.ToolNames)
	case archive.ColumnTags:
		return appendTexts(b, row.Tags)
	case archive.ColumnGroups:
		return appendTexts(b, row.GroupIDs)
	case archive.ColumnMetadata:
		for _, m := range row.Metadata {
			b = appendText(appendText(b, m.Key), m.Value)
		}
		return b
	case archive.ColumnScores:
		for _, s := range row.Scores {
			b = binary.AppendVarint(appendText(b, s.Name), int64(s.Score))
		}
		return b
	case archive.ColumnCost:
		if row.Price != nil {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(*row.Price))
		}
		return b
	case archive.ColumnLatency:
		if row.Latency != nil {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(*row.Latency))
		}
		return b
	case archive.ColumnStart:
		return appendMoment(b, row.StartTime)
	case archive.ColumnEnd:
		return appendMoment(b, row.EndTime)
	}
	if n, ok := wholeOf(c, row); ok {
		b = binary.AppendVarint(b, n)
	}
	return b
}

// wholeOf is what a row has in a column of integers.
func wholeOf(c archive.Column, row *wire.Row) (n int64, ok bool) {
	var p *int64
	switch c {
	case archive.ColumnInputTokens:
		p = row.InputTokens
	case archive.ColumnOutputTokens:
		p = row.OutputTokens
	case archive.ColumnCachedTokens:
		p = row.CachedTokens
	case archive.ColumnReasoningTokens:
		p = row.ReasoningTokens
	case archive.ColumnTurns:
		return int64(row.Turns), row.Turns != 0
	case archive.ColumnReadable:
		return 1, row.Readable
	case archive.ColumnVersion:
		if row.PromptVersion == nil {
			return 0, false
		}
		return int64(*row.PromptVersion), true
	}
	if p == nil {
		return 0, false
	}
	return *p, true
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendTexts(b []byte, texts []string) []byte {
	for _, s := range texts {
		b = appendText(b, s)
	}
	return b
}

func appendOptional(b []byte, s *string) []byte {
	if s == nil {
		return b
	}
	return append(append(b, 1), *s...)
}

func appendMoment(b []byte, t *time.Time) []byte {
	if t == nil {
		return b
	}
	return binary.AppendUvarint(binary.AppendVarint(b, t.Unix()), uint64(t.Nanosecond()))
}

// readValue reads what appendValue wrote into the row's field, which no value leaves as a row without one has it.
func readValue(b []byte, c archive.Column, row *wire.Row) error {
	r := reader{b: b}
	switch c {
	case archive.ColumnFunction:
		row.FunctionName = string(b)
	case archive.ColumnModel:
		row.Engine = string(b)
	case archive.ColumnProvider:
		row.Provider = string(b)
	case archive.ColumnStatus:
		row.Status = string(b)
	case archive.ColumnSidecar:
		row.Sidecar = string(b)
	case archive.ColumnTemplate:
		row.PromptName = r.optional()
	case archive.ColumnLabel:
		row.PromptLabel = r.optional()
	case archive.ColumnFinish:
		row.FinishReason = string(b)
	case archive.ColumnErrorType:
		row.ErrorType = string(b)
	case archive.ColumnShape:
		row.OutputShape = string(b)
	case archive.ColumnTools:
		row.ToolNames = r.texts(nil)
	case archive.ColumnTags:
		row.Tags = r.texts([]string{})
	case archive.ColumnGroups:
		row.GroupIDs = r.texts(nil)
	case archive.ColumnMetadata:
		row.Metadata = []wire.MetadataRow{}
		for len(r.b) > 0 && r.err == nil {
			row.Metadata = append(row.Metadata, wire.MetadataRow{Key: r.text(), Value: r.text()})
		}
	case archive.ColumnScores:
		row.Scores = []wire.Score{}
		for len(r.b) > 0 && r.err == nil {
			row.Scores = append(row.Scores, wire.Score{Name: r.text(), Score: int(r.varint())})
		}
	case archive.ColumnCost:
		row.Price = r.number()
	case archive.ColumnLatency:
		row.Latency = r.number()
	case archive.ColumnStart:
		row.StartTime = r.moment()
	case archive.ColumnEnd:
		row.EndTime = r.moment()
	default:
		r.whole(c, row)
	}
	return r.err
}

// reader takes values off the front of bytes. After a fault it returns zero values.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail() { r.b, r.err = nil, errRow }

func (r *reader) uvarint() uint64 {
	n, used := binary.Uvarint(r.b)
	if used <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[used:]
	return n
}

func (r *reader) varint() int64 {
	n, used := binary.Varint(r.b)
	if used <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[used:]
	return n
}

// take returns the next n bytes, which alias those that are read.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) text() string { return string(r.take(r.uvarint())) }

func (r *reader) texts(none []string) []string {
	texts := none
	for len(r.b) > 0 && r.err == nil {
		texts = append(texts, r.text())
	}
	return texts
}

func (r *reader) optional() *string {
	if len(r.b) == 0 {
		return nil
	}
	s := string(r.b[1:])
	return &s
}

func (r *reader) number() *float64 {
	if len(r.b) == 0 {
		return nil
	}
	bits := r.take(8)
	if r.err != nil {
		return nil
	}
	x := math.Float64frombits(binary.LittleEndian.Uint64(bits))
	return &x
}

func (r *reader) moment() *time.Time {
	if len(r.b) == 0 {
		return nil
	}
	s := r.varint()
	t := time.Unix(s, int64(r.uvarint())).UTC()
	return &t
}

func (r *reader) whole(c archive.Column, row *wire.Row) {
	var p *int64
	if len(r.b) > 0 {
		n := r.varint()
		p = &n
	}
	switch c {
	case archive.ColumnInputTokens:
		row.InputTokens = p
	case archive.ColumnOutputTokens:
		row.OutputTokens = p
	case archive.ColumnCachedTokens:
		row.CachedTokens = p
	case archive.ColumnReasoningTokens:
		row.ReasoningTokens = p
	case archive.ColumnTurns:
		row.Turns = 0
		if p != nil {
			row.Turns = int(*p)
		}
	case archive.ColumnReadable:
		row.Readable = p != nil
	case archive.ColumnVersion:
		row.PromptVersion = nil
		if p != nil {
			n := int(*p)
			row.PromptVersion = &n
		}
	}
}

// rowPlace reads the time and the id out of a row's key, or of what follows the table in it.
func rowPlace(key []byte) (at time.Time, id uuid) {
	key = key[len(key)-placeBytes:]
	at = time.Unix(int64(^binary.BigEndian.Uint64(key)^1<<63), int64(^binary.BigEndian.Uint32(key[8:]))).UTC()
	for i := range id {
		id[i] = ^key[12+i]
	}
	return at, id
}

// placeBytes is the length of time and id in a key.
const placeBytes = 12 + 16

// cloneRow copies a row that is only lent.
func cloneRow(row *wire.Row) wire.Row {
	r := *row
	r.InputTokens, r.OutputTokens = clone(row.InputTokens), clone(row.OutputTokens)
	r.CachedTokens, r.ReasoningTokens = clone(row.CachedTokens), clone(row.ReasoningTokens)
	r.Price, r.Latency = clone(row.Price), clone(row.Latency)
	r.StartTime, r.EndTime = clone(row.StartTime), clone(row.EndTime)
	r.PromptName, r.PromptVersion, r.PromptLabel = clone(row.PromptName), clone(row.PromptVersion), clone(row.PromptLabel)
	r.Tags, r.Metadata, r.Scores = slices.Clone(row.Tags), slices.Clone(row.Metadata), slices.Clone(row.Scores)
	r.GroupIDs, r.ToolNames = slices.Clone(row.GroupIDs), slices.Clone(row.ToolNames)
	return r
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
