package requests

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/dashboard/filter"
	"promptspool/api/wire"
)

func TestAListShowsTheScoreThatMostRowsHave(t *testing.T) {
	score := func(name string) wire.Score { return wire.IntegerScore(name, int(name[0])) }
	rows, main := requestRows(filter.Filter{}, wire.SearchPage{Items: []wire.Row{
		{RequestID: "a", Scores: []wire.Score{score("csat"), score("tone")}},
		{RequestID: "b", Scores: []wire.Score{score("tone")}},
		{RequestID: "c", Scores: []wire.Score{score("csat"), score("helpful")}},
		{RequestID: "d"},
		{RequestID: "e", Scores: []wire.Score{score("helpful")}},
	}}, rowNumber{})

	var got []string
	for _, r := range rows {
		shown := "none"
		if r.Score != nil {
			shown = r.Score[0].String()
		}
		got = append(got, shown)
	}
	want := []string{"99", "none", "99", "none", "none"}           // another score is not one of this column
	if diff := cmp.Diff(want, got); diff != "" || main != "csat" { // as often as others, and first by name
		t.Errorf("main is %s (-want +got):\n%s", main, diff)
	}
}
