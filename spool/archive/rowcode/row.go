package rowcode

import (
	"cmp"
	"strings"

	"promptspool/api/wire"
)

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
