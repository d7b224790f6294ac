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

func TestSuggestionsFindWordsInsideIfAsked(t *testing.T) {
	row := &wire.Row{Tags: []string{"support/triage", "trip", "a-Tree", "extra", "a_b tri"}}
	for inside, want := range map[bool]string{false: "trip", true: "support/triage trip a_b tri"} {
		g, err := NewSuggestion(wire.SuggestQuery{Field: "tags", Prefix: "TRI", Inside: inside})
		if err != nil {
			t.Fatal(err)
		}
		g.Add(&Subject{Row: row})
		if got := strings.Join(g.Values, " "); got != want {
			t.Errorf("inside %t: %s, want %s", inside, got, want)
		}
	}
}
