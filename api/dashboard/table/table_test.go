package table

import (
	"math"
	"net/url"
	"strings"
	"testing"
)

type row struct {
	name string
	cost float64
}

var columns = Columns[row]{"cost": func(r *row) float64 { return r.cost }}

// Somebody clicks on a heading again and again: highest first, lowest first, and as it was. A row without
// a value stays last, and rows of the same value in their order.
func TestAHeadingSortsItsTableTurnsItAndEndsIt(t *testing.T) {
	address := "/statistics?name=a%2Fb"
	for _, want := range []struct{ sorted, names string }{
		{"", "a b c d"},
		{"descending", "c a d b"},
		{"ascending", "a d c b"},
		{"", "a b c d"},
	} {
		asked, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		order := Read(asked.Path, asked.Query())

		rows := []row{{"a", 1}, {"b", math.NaN()}, {"c", 2}, {"d", 1}}
		Sort(order, rows, columns)
		var names []string
		for _, r := range rows {
			names = append(names, r.name)
		}
		heading := order.Heading("cost", "Cost", true)
		if got := strings.Join(names, " "); got != want.names || heading.Sorted != want.sorted {
			t.Errorf("%s shows %s, sorted %q, want %+v", address, got, heading.Sorted, want)
		}
		other := order.Heading("other", "Other", false)
		if other.Sorted != "" || other.Href != "/statistics?by=other&name=a%2Fb" {
			t.Errorf("%s: another heading is %+v", address, other)
		}
		if asked.Query().Get("name") != "a/b" {
			t.Errorf("%s has lost the template", address)
		}
		address = heading.Href
	}
}
