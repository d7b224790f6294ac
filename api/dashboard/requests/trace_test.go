package requests

import (
	"slices"
	"testing"

	"promptspool/api/wire"
)

// Ids are the callers' own: a trace may be any graph, and each of its spans has one row.
func TestEachSpanOfATraceHasOneRow(t *testing.T) {
	for name, parents := range map[string][]string{
		"a tree":                   {"", "a", "a", "b"},
		"a circle":                 {"b", "c", "a", "d"},
		"a circle beside its root": {"", "c", "b", "c"},
		"no roots":                 {"x", "y", "z", "x"},
	} {
		var spans []wire.TraceSpan
		for i, parent := range parents {
			span := wire.TraceSpan{ID: string(rune('0' + i)), SpanID: string(rune('a' + i)), ParentID: &parent}
			spans = append(spans, span)
		}
		spans = append(spans, wire.TraceSpan{ID: "again", SpanID: "a"})

		var ids []string
		for _, r := range traceRows(spans) {
			ids = append(ids, r.ID)
		}
		if slices.Sort(ids); !slices.Equal(ids, []string{"0", "1", "2", "3", "again"}) {
			t.Errorf("%s: the rows are %q", name, ids)
		}
	}
}
