package dashboard

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// filter selects the records that a page shows, their columns and their order. It is part of the
// page's address, so that a view can be shared: filter has the line, col a column each.
type filter struct {
	Text    string   // the line
	Columns []string // names of columns; nil for those that the reader usually sees
	Order   order

	line  filterline.Line
	fault error          // what is wrong with the line; then it is as it was typed
	zone  *time.Location // of its days; nil is UTC
}

// newFilter returns the filter of a line.
func newFilter(text string) filter {
	line, err := filterline.Parse(text)
	if err == nil {
		// Again, so that the places of faults are those in what the page shows.
		text = line.String()
		line, err = filterline.Parse(text)
	}

	return filter{Text: text, line: line, fault: err}
}

// readFilter reads the filter in an address.
func readFilter(q url.Values) filter {
	f := newFilter(strings.TrimSpace(q.Get("filter")))

	// The dates of the form take the place of another time.
	if part := datesLine(q.Get("from"), q.Get("to")); part != "" && f.fault == nil {
		f = f.during(part)
	}
	f.Columns, f.Order = namedColumns(q["col"]), readOrder(q)

	return f
}

// values returns the filter as an address has it.
func (f filter) values() url.Values {
	q := url.Values{}
	if f.Text != "" {
		q.Set("filter", f.Text)
	}
	for _, name := range f.Columns {
		q.Add("col", name)
	}
	f.Order.set(q)

	return q
}

// titleRunesMax bounds the line in the title of a page: tabs and histories show the beginning.
const titleRunesMax = 80

// title returns the title of a page that shows what the filter finds, so that its tab can be told from others.
func (f filter) title(page string) string {
	var parts []string
	if f.Text != "" {
		line := []rune(f.Text)
		if len(line) > titleRunesMax {
			line = append(line[:titleRunesMax-1], '…')
		}
		parts = append(parts, string(line))
	}
	if f.Order.By != "" {
		parts = append(parts, f.Order.Text())
	}

	return strings.Join(append(parts, page), " · ")
}

// requests returns the address of the list of what the filter finds.
func (f filter) requests() string { return address("/requests", f.values()) }

// withLine returns the filter with another line.
func (f filter) withLine(text string) filter {
	other := newFilter(text)
	other.Columns, other.Order, other.zone = f.Columns, f.Order, f.zone

	return other
}

// with returns the filter with more terms.
func (f filter) with(terms ...filterline.Term) filter {
	added := filterline.Line{Terms: terms}

	return f.withLine(strings.TrimSpace(f.Text + " " + added.String()))
}

// during returns the filter with another time, which is a part of a line.
func (f filter) during(part string) filter {
	kept := f.line
	kept.Terms = slices.DeleteFunc(slices.Clone(kept.Terms), func(t filterline.Term) bool { return t.IsTime() })

	return f.withLine(strings.TrimSpace(kept.String() + " " + part))
}

// between returns the filter for the requests from a time until before another. Both are
// whole seconds.
func (f filter) between(from, to time.Time) filter {
	zone := cmp.Or(f.zone, time.UTC)
	layout := time.RFC3339
	if from.Second() == 0 && to.Second() == 0 {
		layout = "2006-01-02T15:04Z07:00" // a page may have hundreds of them
	}

	return f.during("since:" + from.In(zone).Format(layout) + " before:" + to.In(zone).Format(layout))
}

// without returns the filter without condition i.
func (f filter) without(i int) filter {
	kept := f.line
	kept.Terms = slices.Delete(slices.Clone(kept.Terms), i, i+1)

	return f.withLine(kept.String())
}

// search returns what the filter finds at this time, or what is wrong with it.
func (f filter) search(now time.Time) (wire.Search, error) {
	if f.fault != nil {
		return wire.Search{}, f.fault
	}
	selection, err := f.line.Compile(filterline.Clock{Now: now, Zone: f.zone})

	return wire.Search{FilterGroup: selection.Filter, Q: selection.Words}, err
}

// group returns what the filter finds as conditions only, nil for all records, or what is wrong with it.
func (f filter) group(now time.Time) (*wire.Filter, error) {
	s, err := f.search(now)

	return filterline.Selection{Filter: s.FilterGroup, Words: s.Q}.Group(), err
}

// requestsAddress returns the address of the requests in which a field has a value.
func requestsAddress(field, key, value string) string {
	return filter{}.with(filterline.Where(field, key, value)).requests()
}
