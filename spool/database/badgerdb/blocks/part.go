package blocks

import (
	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

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
