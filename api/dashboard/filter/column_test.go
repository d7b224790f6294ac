package filter

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// An address says how a list is sorted, and each heading leads to the next order.
func TestHeadingsSortTheList(t *testing.T) {
	for _, c := range []struct {
		address, field string
		want           string // the address behind the heading
		sorted, text   string
	}{
		{"", ByTime, "order=asc&sort=list_time", "descending", "newest first"},
		{"sort=list_time&order=asc", ByTime, "", "ascending", "oldest first"},
		{"", "latency_ms", "sort=latency_ms", "", "newest first"},
		{"sort=latency_ms", "latency_ms", "order=asc&sort=latency_ms", "descending", "slowest first"},
		{"sort=latency_ms&order=asc", "latency_ms", "sort=latency_ms", "ascending", "fastest first"},
		{"sort=latency_ms", "cost", "sort=cost", "", "slowest first"},
		{"sort=latency_ms", ByTime, "", "", "slowest first"},
		{"sort=score.tone", "score.tone", "order=asc&sort=score.tone", "descending", "highest tone first"},
		{"sort=prompt&order=asc", "cost", "sort=cost", "", "newest first"},
		{"sort=list_time&order=down", "cost", "sort=cost", "", "newest first"},
	} {
		q, err := url.ParseQuery(c.address)
		if err != nil {
			t.Fatal(err)
		}
		o := readOrder(q, wire.SortFields)
		next := url.Values{}
		o.Next(c.field).set(next)
		if next.Encode() != c.want || o.Direction(c.field) != c.sorted || o.Text() != c.text {
			t.Errorf("%q, %s: leads to %q, is sorted %q, reads %q",
				c.address, c.field, next.Encode(), o.Direction(c.field), o.Text())
		}
	}
}

func TestEveryOrderHasWordsAndIsOneOfASearch(t *testing.T) {
	for _, field := range slices.Concat(wire.SortFields, wire.RollupSortFields) {
		down, up := Order{By: field}, Order{By: field, Ascending: true}
		if down.Text() == "" || up.Text() == "" || down.Text() == up.Text() {
			t.Errorf("%s reads %q and %q", field, down.Text(), up.Text())
		}
	}
	for _, c := range Columns {
		if by := readOrder(url.Values{"sort": {c.Sort}}, wire.SortFields).By; by != c.Sort {
			t.Errorf("the column %s sorts by %q", c.Name, by)
		}
	}
}

// Metadata keys are columns after the others, a few, each once.
func TestAMetadataKeyIsAColumn(t *testing.T) {
	names := []string{
		"metadata.plan.b c", "cost", "metadata.", "metadata." + strings.Repeat("k", 100), "metadata.plan.b c",
		"nothing", "model",
	}
	if got := ColumnNames(names); !slices.Equal(got, []string{"model", "cost", "metadata.plan.b c"}) {
		t.Errorf("the columns are %q", got)
	}
	for i := range 20 {
		names = append(names, fmt.Sprint("metadata.", i))
	}
	if got := ColumnNames(names); len(got) != 2+keyColumnsMax {
		t.Errorf("there are %d columns: %q", len(got), got)
	}

	r := &wire.Row{Metadata: []wire.MetadataRow{{Key: "plan", Value: "a"}, {Key: "plan.b c", Value: "gold"}}}
	c := ColumnsOf(names)[2]
	if c.IsEmpty(r) || c.Cell(r).Text != "gold" || !slices.Equal(r.CSV(c.Cells()), []string{"gold"}) {
		t.Errorf("the column has %+v, %q", c.Cell(r), r.CSV(c.Cells()))
	}
	if !c.IsEmpty(&wire.Row{}) {
		t.Error("a row without the key has something in its column")
	}
}
