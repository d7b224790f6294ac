package requests

import (
	"slices"
	"strings"
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
	}}, filter.Number{})

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

func TestEveryColumnOfTheListHasACell(t *testing.T) {
	page, err := html.ReadFile("requests.html")
	if err != nil {
		t.Fatal(err)
	}
	row := &wire.Row{
		PromptName: new("t"), Engine: "m", Provider: "p", InputExcerpt: "i", OutputExcerpt: "o", SessionID: "s",
		UserID: "u", Environment: "e", TraceID: "t", FinishReason: "f", FunctionName: "f", Sidecar: "s",
		Tags: []string{"t"}, ToolNames: []string{"t"}, GroupIDs: []string{"g"},
		Scores: []wire.Score{wire.IntegerScore("s", 1)}, Metadata: []wire.MetadataRow{{Key: "k", Value: "v"}},
	}
	for _, c := range filter.Columns {
		cell := c.Cell(row)
		if cell.Text == "" && cell.Badges == nil && !strings.Contains(string(page), `if eq .Name "`+c.Name+`"}}`) {
			t.Errorf("%s shows nothing", c.Name)
		}
	}
}

func TestColumnsThatAreEmptyInAllRowsAreLeftOut(t *testing.T) {
	names := func(f filter.Filter, rows ...requestRow) (names []string) {
		for _, c := range filled(slices.Clone(filter.Columns), f, rows) {
			names = append(names, c.Name)
		}
		return names
	}
	always := strings.Fields(`status call input output latency first cache_writes session user environment trace
		sidecar`)
	some := requestRow{Row: wire.Row{Engine: "m", Price: new(0.0), ToolNames: []string{"t"}, Tags: []string{"a"}}}
	for _, tt := range []struct {
		f    filter.Filter
		rows []requestRow
		want string
	}{
		{filter.Filter{}, []requestRow{{}, {}}, ""},
		{filter.Filter{}, []requestRow{{}, some}, "model cost tags tools"},
		{filter.Filter{Order: filter.Order{By: "input_tokens"}}, []requestRow{{}}, "tokens"},
		{filter.Filter{}, []requestRow{{Row: wire.Row{PromptName: new("t")}}, {}}, "template"},
	} {
		got := names(tt.f, tt.rows...)
		want := append(strings.Fields(tt.want), always...)
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with %q (-want +got):\n%s", tt.want, diff)
		}
	}

	// A model takes the column of the templates that are not there.
	columns := slices.DeleteFunc(slices.Clone(filter.Columns), func(c filter.Column) bool { return c.Name == "model" })
	if got := filled(columns, filter.Filter{}, []requestRow{some}); got[1].Name != "model" {
		t.Errorf("after the first column comes %s", got[1].Name)
	}
}
