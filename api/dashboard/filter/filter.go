// Package filter is what selects the requests that a page of the dashboard shows, in which order, and
// the form in which a reader changes it.
package filter

import (
	"cmp"
	"context"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/api/wire/calendar"
	"promptspool/api/words"
)

// Filter selects the records that a page shows, their columns and their order. It is part of the
// page's address, so that a view can be shared: filter has the line, col a column each.
type Filter struct {
	Text    string   // the line
	Columns []string // names of columns; nil for those that the reader usually sees
	Order   Order

	line  filterline.Line
	fault error // what is wrong with the line; then it is as it was typed
	clock filterline.Clock
}

// Read reads the filter in an address. Its days are those of a zone; nil is UTC.
func Read(q url.Values, now time.Time, zone *time.Location) Filter {
	f := Filter{clock: filterline.Clock{Now: now, Zone: zone}}.withLine(strings.TrimSpace(q.Get("filter")))

	// The dates of the form take the place of another time.
	if part := datesLine(q.Get("from"), q.Get("to")); part != "" && f.fault == nil {
		f = f.During(part)
	}
	f.Columns, f.Order = ColumnNames(q["col"]), readOrder(q, wire.SortFields)

	return f
}

// OfRollups returns the filter with the order of sessions, traces or users in its address.
func (f Filter) OfRollups(q url.Values) Filter {
	f.Columns, f.Order = nil, readOrder(q, wire.RollupSortFields)

	return f
}

// withLine returns the filter with another line.
func (f Filter) withLine(text string) Filter {
	f.Text = text
	f.line, f.fault = filterline.Parse(text)
	if f.fault == nil {
		// Again, so that the places of faults are those in what the page shows.
		f.Text = f.line.String()
		f.line, f.fault = filterline.Parse(f.Text)
	}

	return f
}

// Values returns the filter as an address has it.
func (f Filter) Values() url.Values {
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

// Title returns the title of a page that shows what the filter finds, for its tab in the browser.
func (f Filter) Title(page string) string {
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

// FileName returns the name of a file with what the filter finds.
func (f Filter) FileName(what, extension string) string {
	selected := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(f.Text), "-"), "-.")
	selected = cmp.Or(selected, "all")
	selected = selected[:min(len(selected), fileNameMax)]

	return what + "-" + selected + "-" + f.clock.Now.In(f.Zone()).Format(time.DateOnly) + extension
}

// notInNames matches what some file system or header might not take.
var notInNames = regexp.MustCompile(`[^a-z0-9._]+`)

const fileNameMax = 60

// Requests returns the address of the list of what the filter finds.
func (f Filter) Requests() string { return address.Of("/requests", f.Values()) }

// Sorted returns the address of the list at a path after a click on the heading of a field. It also
// returns the direction in which the list is sorted by the field now.
func (f Filter) Sorted(path, field string) (href, direction string) {
	direction = f.Order.Direction(field)
	f.Order = f.Order.Next(field)

	return address.Of(path, f.Values()), direction
}

// RequestsWith returns the address of the requests in which a field has a value.
func RequestsWith(field, key, value string) string {
	return Filter{}.With(filterline.Where(field, key, value)).Requests()
}

// With returns the filter with more terms.
func (f Filter) With(terms ...filterline.Term) Filter {
	return f.withLine(f.line.With(terms...).String())
}

// During returns the filter with another time, which is a part of a line.
func (f Filter) During(part string) Filter {
	kept := f.line
	kept.Terms = slices.DeleteFunc(slices.Clone(kept.Terms), func(t filterline.Term) bool { return t.IsTime() })

	added, _ := filterline.Parse(part)

	return f.withLine(kept.With(added.Terms...).String())
}

// Between returns the filter for the requests from a time until before another. Both are
// whole seconds.
func (f Filter) Between(from, to time.Time) Filter {
	layout := time.RFC3339
	if from.Second() == 0 && to.Second() == 0 {
		// A page may have hundreds of them.
		layout = "2006-01-02T15:04Z07:00"
	}

	return f.During("since:" + from.In(f.Zone()).Format(layout) + " before:" + to.In(f.Zone()).Format(layout))
}

// without returns the filter without condition i.
func (f Filter) without(i int) Filter {
	kept := f.line
	kept.Terms = slices.Delete(slices.Clone(kept.Terms), i, i+1)

	return f.withLine(kept.String())
}

// Zone returns the zone of the filter's days.
func (f Filter) Zone() *time.Location { return cmp.Or(f.clock.Zone, time.UTC) }

// Bucket returns the beginning and the end of a bucket of a statistic. Its date is a day if it has whole
// days, otherwise a time.
func (f Filter) Bucket(date string, size time.Duration) (from, to time.Time) {
	at, err := time.Parse(time.RFC3339, date)
	if day, errDay := time.Parse(time.DateOnly, date); err != nil && errDay == nil {
		at = calendar.StartOfDay(day.Year(), day.Month(), day.Day(), f.Zone())
	}

	return at.In(f.Zone()), calendar.End(at, size, f.Zone()).In(f.Zone())
}

// soughtMax bounds what pages look for in texts.
const soughtMax = 20

// Sought returns what the filter looks for in prompts and responses.
func (f Filter) Sought() []words.Sought {
	all := f.line.Sought()

	return all[:min(len(all), soughtMax)]
}

// Search returns what the filter finds, in no particular order, or what is wrong with it.
func (f Filter) Search() (wire.Search, error) {
	if f.fault != nil {
		return wire.Search{}, f.fault
	}
	selected, err := f.line.Compile(f.clock)

	return wire.Search{FilterGroup: selected}, err
}

// Rollups returns what the filter finds of sessions, traces or users, or what is wrong with it.
func (f Filter) Rollups(of string) (wire.RollupSearch, error) {
	if f.fault != nil {
		return wire.RollupSearch{}, f.fault
	}
	line, err := f.line.CompileRollup(f.clock)

	s := line.Search(of)
	s.SortBy = f.Order.By
	if f.Order.Ascending {
		s.SortOrder = "asc"
	}

	return s, err
}

// Group returns the conditions of what the filter finds, nil for all records, or what is wrong with it.
func (f Filter) Group() (*wire.Filter, error) {
	s, err := f.Search()

	return s.FilterGroup, err
}

// Searcher finds requests.
type Searcher interface {
	Search(ctx context.Context, id wire.Identity, s wire.Search) (wire.SearchPage, error)
}

// List reads a page of the list of what the filter finds: its rows after a cursor.
func (f Filter) List(
	ctx context.Context, records Searcher, id wire.Identity, page wire.Search,
) (wire.SearchPage, error) {
	s, err := f.Search()
	if err != nil {
		return wire.SearchPage{}, err
	}
	s.Cursor, s.PerPage, s.Quick = page.Cursor, page.PerPage, page.Quick
	s.SortBy = f.Order.By
	if f.Order.Ascending {
		s.SortOrder = "asc"
	}

	return records.Search(ctx, id, s)
}
