package requests

import (
	"slices"
	"strings"
	"time"

	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/table"
	"promptspool/api/wire"
)

// listView is how a person wants to see lists of requests. The browser keeps it in a
// cookie.
type listView struct {
	Columns []string // names of columns
	Compact bool     // rows are low
}

// listCookie holds a listView, as names with dots between them.
const listCookie = "list"

// listViewKept is how long a browser keeps it after it was last changed.
const listViewKept = 400 * 24 * time.Hour // the most that browsers allow

// compactWord stands among the names in the cookie.
const compactWord = "compact"

// readView returns how the reader wants to see this list. Columns in the address win: it
// was sent to show them.
func readView(c *frame.Exchange, f filter.Filter) listView {
	v := listView{Columns: defaultColumns()}
	if cookie, err := c.Cookie(listCookie); err == nil {
		names := strings.Split(cookie.Value, ".")
		v.Compact = slices.Contains(names, compactWord)
		if chosen := filter.ColumnNames(names); chosen != nil {
			v.Columns = chosen
		}
	}
	if f.Columns != nil {
		v.Columns = f.Columns
	}

	return v
}

// Shows reports whether a list shows a column.
func (v listView) Shows(name string) bool { return slices.Contains(v.Columns, name) }

// shown returns the columns that a list shows.
func (v listView) shown() []filter.Column {
	return slices.DeleteFunc(slices.Clone(filter.Columns), func(c filter.Column) bool { return !v.Shows(c.Name) })
}

// rememberView keeps what the form asks for, and shows the list again. Its address names the columns
// unless they are the usual ones, so that others see the same.
func rememberView(c *frame.Exchange) error {
	f := c.Filter(c.PostForm)
	if slices.Equal(f.Columns, defaultColumns()) {
		f.Columns = nil // those of a later version, if they change
	}
	words := slices.Clone(f.Columns)
	if c.PostForm.Get("density") == compactWord {
		words = append(words, compactWord)
	}

	c.Remember(listCookie, strings.Join(words, "."), listViewKept)

	return c.Redirect(f.Requests(), "")
}

// defaultColumns returns the names of the columns that are shown unless the reader chose others.
func defaultColumns() (names []string) {
	for _, c := range filter.Columns {
		if c.ByDefault {
			names = append(names, c.Name)
		}
	}

	return names
}

// headings returns those of a list: of the first column, and of the shown ones. main names the score
// that its rows show.
func headings(f filter.Filter, shown []filter.Column, main string) (all []table.Heading) {
	started := filter.Column{Text: "Started", Sort: filter.ByTime}
	for _, c := range append([]filter.Column{started}, shown...) {
		h := table.Heading{Text: c.Text, Number: c.Number}
		if c.Name == "score" {
			h.Text, c.Sort = main, wire.ScoreSort+main
		}
		if c.Sort != "" {
			h.Href, h.Sorted = f.Sorted("/requests", c.Sort)
		}
		all = append(all, h)
	}

	return all
}
