package query

import (
	"strings"
	"testing"

	"promptspool/api/wire"
)

func TestSuggestionsKeepNoLongValue(t *testing.T) {
	g, err := NewSuggestion(wire.SuggestQuery{Field: "tags"})
	if err != nil {
		t.Fatal(err)
	}

	long := strings.Repeat("a", suggestionBytesMax+1)
	g.Add(&Subject{Row: &wire.Row{Tags: []string{long, "short", long + "b"}}})

	if len(g.Values) != 1 || g.Values[0] != "short" || len(g.seen) != 1 {
		t.Errorf("%d values and %d seen, want one", len(g.Values), len(g.seen))
	}
}
