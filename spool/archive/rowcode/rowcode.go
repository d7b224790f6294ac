package rowcode

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"promptspool/api/wire"
)

// rowVersion begins the bytes of a row, without its time and id, which stores have
// in their keys:
//
//	1   version of this table, rowVersion
//	then for each column from ColumnFunction on, in their order
//	n   length of the value, uvarint; 0: the row has nothing there
//	    the value
//
// A value is
//
//	text           its bytes; of a text that may be absent or empty, a 1 before them
//	texts          for each its length, uvarint, and its bytes
//	pairs          for each key and value like texts; values as StoredValue
//	scores         for each its name like a text of texts, and the score, zigzag varint
//	integer        zigzag varint
//	number         IEEE 754 bits, 8 bytes, little-endian
//	time           seconds, zigzag varint, and nanoseconds, uvarint
//
// The order time is absent where it equals the list time, which the place tells.
const rowVersion = 1

// ErrRow reports bytes that are not a row.
var ErrRow = errors.New("the row is not one that this version writes")

// Encode returns the bytes of a row, without its time and id.
func Encode(row *wire.Row) []byte {
	b := append(make([]byte, 0, 256), rowVersion)
	// The length of a value comes before it, so each is written aside first.
	var scratch []byte
	for c := ColumnFunction; c < ColumnBody; c++ {
		scratch = AppendValue(scratch[:0], c, row)
		b = binary.AppendUvarint(b, uint64(len(scratch)))
		b = append(b, scratch...)
	}

	return b
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
		if used <= 0 || n > uint64(len(b)-used) {
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
	switch c {
	case ColumnFunction:
		return append(b, row.FunctionName...)
	case ColumnModel:
		return append(b, row.Engine...)
	case ColumnProvider:
		return append(b, row.Provider...)
	case ColumnStatus:
		return append(b, row.Status...)
	case ColumnSidecar:
		return append(b, row.Sidecar...)
	case ColumnTemplate:
		return appendOptional(b, row.PromptName)
	case ColumnLabel:
		return appendOptional(b, row.PromptLabel)
	case ColumnFinish:
		return append(b, row.FinishReason...)
	case ColumnErrorType:
		return append(b, row.ErrorType...)
	case ColumnShape:
		return append(b, row.OutputShape...)
	case ColumnTools:
		return AppendTexts(b, row.ToolNames)
	case ColumnTags:
		return AppendTexts(b, row.Tags)
	case ColumnGroups:
		return AppendTexts(b, row.GroupIDs)
	case ColumnMetadata:
		for _, m := range row.Metadata {
			// In the order of State.Row, so that equal rows have equal bytes.
			b = AppendText(AppendText(b, m.Key), m.Value)
		}
		return b
	case ColumnScores:
		for _, s := range row.Scores {
			b = binary.AppendVarint(AppendText(b, s.Name), int64(s.Score))
		}
		return b
	case ColumnCost:
		if row.Price != nil {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(*row.Price))
		}
		return b
	case ColumnLatency:
		if row.Latency != nil {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(*row.Latency))
		}
		return b
	case ColumnStart:
		return appendMoment(b, row.StartTime)
	case ColumnEnd:
		return appendMoment(b, row.EndTime)
	case ColumnAccepted:
		if !row.AcceptedAt.Equal(row.ListTime) {
			b = appendMoment(b, &row.AcceptedAt)
		}
		return b
	}

	// The others are integers, which blocks store in a way of their own.
	if n, ok := IntegerOf(c, row); ok {
		b = binary.AppendVarint(b, n)
	}
	return b
}

// IntegerOf returns what a row has in a column of integers.
func IntegerOf(c Column, row *wire.Row) (n int64, ok bool) {
	var p *int64
	switch c {
	case ColumnInputTokens:
		p = row.InputTokens
	case ColumnOutputTokens:
		p = row.OutputTokens
	case ColumnCachedTokens:
		p = row.CachedTokens
	case ColumnReasoningTokens:
		p = row.ReasoningTokens
	case ColumnTurns:
		// A call without messages and one whose messages could not be read look the same.
		return int64(row.Turns), row.Turns != 0
	case ColumnReadable:
		return 1, row.Readable
	case ColumnVersion:
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

func appendOptional(b []byte, s *string) []byte {
	if s == nil {
		return b
	}
	// The 1 tells an empty text from none.
	return append(append(b, 1), *s...)
}

func appendMoment(b []byte, t *time.Time) []byte {
	if t == nil {
		return b
	}
	// Not one count of nanoseconds: that reaches from 1678 to 2262 only, and callers
	// write what they like.
	return binary.AppendUvarint(binary.AppendVarint(b, t.Unix()), uint64(t.Nanosecond()))
}

// ReadValue reads what AppendValue wrote into the row's field. An empty value means that
// the row has nothing there.
func ReadValue(b []byte, c Column, row *wire.Row) error {
	r := rowReader{Reader{Rest: b}}
	switch c {
	case ColumnFunction:
		row.FunctionName = string(b)
	case ColumnModel:
		row.Engine = string(b)
	case ColumnProvider:
		row.Provider = string(b)
	case ColumnStatus:
		row.Status = string(b)
	case ColumnSidecar:
		row.Sidecar = string(b)
	case ColumnTemplate:
		row.PromptName = r.optional()
	case ColumnLabel:
		row.PromptLabel = r.optional()
	case ColumnFinish:
		row.FinishReason = string(b)
	case ColumnErrorType:
		row.ErrorType = string(b)
	case ColumnShape:
		row.OutputShape = string(b)
	case ColumnTools:
		row.ToolNames = r.texts(nil)
	case ColumnTags:
		// As State.Row has it: no tags are an empty list, no groups or tools nil.
		row.Tags = r.texts([]string{})
	case ColumnGroups:
		row.GroupIDs = r.texts(nil)
	case ColumnMetadata:
		row.Metadata = []wire.MetadataRow{}
		for len(r.Rest) > 0 && r.Err == nil {
			row.Metadata = append(row.Metadata, wire.MetadataRow{Key: r.Text(), Value: r.Text()})
		}
	case ColumnScores:
		// Never nil, or lists would show null where they show [] of a record.
		row.Scores = []wire.Score{}
		for len(r.Rest) > 0 && r.Err == nil {
			row.Scores = append(row.Scores, wire.Score{Name: r.Text(), Score: int(r.Varint())})
		}
	case ColumnCost:
		row.Price = r.number()
	case ColumnLatency:
		row.Latency = r.number()
	case ColumnStart:
		row.StartTime = r.moment()
	case ColumnEnd:
		row.EndTime = r.moment()
	case ColumnAccepted:
		if at := r.moment(); at != nil {
			row.AcceptedAt = *at
		}
	default:
		r.whole(c, row)
	}

	return r.Err
}

// rowReader reads the fields of a row.
type rowReader struct{ Reader }

func (r *rowReader) texts(none []string) []string {
	texts := none
	for len(r.Rest) > 0 && r.Err == nil {
		texts = append(texts, r.Text())
	}
	return texts
}

func (r *rowReader) optional() *string {
	if len(r.Rest) == 0 {
		return nil
	}
	// Behind the 1 of appendOptional.
	s := string(r.Rest[1:])
	return &s
}

func (r *rowReader) number() *float64 {
	if len(r.Rest) == 0 {
		return nil
	}
	// The bits as they were: a sum must not depend on how its numbers were stored.
	bits := r.Take(8)
	if r.Err != nil {
		return nil
	}
	x := math.Float64frombits(binary.LittleEndian.Uint64(bits))
	return &x
}

func (r *rowReader) moment() *time.Time {
	if len(r.Rest) == 0 {
		return nil
	}
	s := r.Varint()
	t := time.Unix(s, int64(r.Uvarint())).UTC()
	return &t
}

// whole reads what a row has in a column of integers; nothing is left of a row
// that has none.
func (r *rowReader) whole(c Column, row *wire.Row) {
	var p *int64
	if len(r.Rest) > 0 {
		n := r.Varint()
		p = &n
	}

	switch c {
	case ColumnInputTokens:
		row.InputTokens = p
	case ColumnOutputTokens:
		row.OutputTokens = p
	case ColumnCachedTokens:
		row.CachedTokens = p
	case ColumnReasoningTokens:
		row.ReasoningTokens = p
	case ColumnTurns:
		row.Turns = 0
		if p != nil {
			row.Turns = int(*p)
		}
	case ColumnReadable:
		row.Readable = p != nil
	case ColumnVersion:
		row.PromptVersion = nil
		if p != nil {
			n := int(*p)
			row.PromptVersion = &n
		}
	}
}
