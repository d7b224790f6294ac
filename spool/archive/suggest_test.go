package archive

import (
	"strings"
	"testing"

	"promptspool/api/wire"
)

func TestSuggestionsKeepNoLongValue(t *testing.T) {
	g, err := newSuggestion(wire.SuggestQuery{Field: "tags"})
	if err != nil {
		t.Fatal(err)
	}

	long := strings.Repeat("a", suggestionBytesMax+1)
	g.add(&Subject{Row: &wire.Row{Tags: []string{long, "short", long + "b"}}})

	if len(g.values) != 1 || g.values[0] != "short" || len(g.seen) != 1 {
		t.Errorf("%d values and %d seen, want one", len(g.values), len(g.seen))
	}
}
