package experiment

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
)

// call is a call of an experiment, without its id.
func call(row string, version int64, status string, good float64) wire.Row {
	c := wire.Row{
		Status: status, PromptVersion: &version, Price: new(0.001 * float64(version)), Latency: new(0.5),
		Metadata: []wire.MetadataRow{{Key: NameKey, Value: "e"}, {Key: RowKey, Value: row}},
	}
	if good >= 0 {
		c.Scores = []wire.Score{{
			ScoreSlot: wire.ScoreSlot{Name: "good"}, ScoreValue: wire.ScoreValue{Kind: wire.ScoreNumber, Number: good},
		}}
	}
	return c
}

func TestAnExperimentIsFoundInItsCalls(t *testing.T) {
	second, asked := "second", []string{}
	pages := map[string]wire.SearchPage{
		"": {Items: []wire.Row{
			call("1", 8, "ERROR", -1), call("1", 8, "SUCCESS", 0.5), call("2", 8, "SUCCESS", 0.6), {Status: "SUCCESS"},
		}, NextCursor: &second},
		second: {Items: []wire.Row{call("2", 8, "ERROR", -1), call("1", 7, "ERROR", -1)}},
	}
	all, err := Load(t.Context(), func(_ context.Context, s wire.Search) (wire.SearchPage, error) {
		asked = append(asked, s.FilterGroup.String()+" "+s.Cursor)
		return pages[s.Cursor], nil
	}, "e", "")

	got := map[string]string{}
	for version, calls := range all {
		for row, c := range calls {
			got[fmt.Sprint(version, " ", row)] = c.Status
		}
	}
	want := map[string]string{"7 1": "ERROR", "8 1": "SUCCESS", "8 2": "SUCCESS"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(asked) != 2 {
		t.Errorf("%v, asked %v (-want +got):\n%s", err, asked, diff)
	}
}

func TestTheWorstRegressionComesFirst(t *testing.T) {
	a, b := Calls{}, Calls{}
	for i := range 60 {
		row := fmt.Sprintf("%02d", i)
		before, after := call(row, 7, "SUCCESS", 0.8), call(row, 8, "SUCCESS", 0.8)
		switch i {
		case 7:
			after.Scores[0].Number = 0.1
		case 8:
			after = call(row, 8, "ERROR", -1)
		case 9:
			after.Scores[0].Number = 0.9
		case 10:
			before = call(row, 7, "ERROR", -1)
		}
		a[row], b[row] = new(before), new(after)
	}
	delete(a, "11")

	c := Compare(a, b, nil)
	var order []string
	for _, p := range c.Pairs {
		order = append(order, p.Row)
	}
	if got := append(order[:3:3], order[58:]...); !slices.Equal(got, []string{"08", "07", "00", "09", "10"}) {
		t.Errorf("the order is %v", order)
	}
	var got []string
	for _, m := range c.Metrics {
		text := fmt.Sprintf("%s%s %d %.4f %.4f", m.Metric, m.Name, m.CountB, m.A, m.B)
		got = append(got, fmt.Sprint(text, " ", m.Verdict, " ", m.Low != nil))
	}
	want := []string{
		"scoregood 57 0.8000 0.7895 no_difference true", "errors 59 0.0169 0.0169 no_difference true",
		"cost 59 0.0070 0.0080 worse true", "latency 59 0.5000 0.5000 no_difference true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	lower := Compare(a, b, wire.ScoreDefinitions{{Name: "good", Better: "lower"}})
	if lower.Pairs[1].Row != "09" {
		t.Errorf("where lower is better, row %s has the worst score", lower.Pairs[1].Row)
	}
	alone := Compare(nil, b, nil).Metrics[0]
	if alone.CountA != 0 || alone.CountB != 59 || alone.Verdict != "" || fmt.Sprintf("%.3f", alone.B) != "0.790" {
		t.Errorf("of one version alone: %+v", alone)
	}
}
