// Package filter is what selects the requests that a page of the dashboard shows, in which order, and
// the form in which a reader changes it.
package filter

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

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
	Density string     // Compact if rows are low
	Named   string     // the saved view that the page was opened from; "" is none
	Kept    url.Values // what else the addresses of the page itself have
	Timed   bool       // without a line in its address, the page shows its usual time

	line  filterline.Line
	fault error // what is wrong with the line; then it is as it was typed
	clock filterline.Clock
}

// Compact is the density of a list with low rows.
const Compact = "compact"

// Read reads the filter in an address. Its days are those of a zone; nil is UTC.
func Read(q url.Values, now time.Time, zone *time.Location) Filter {
	f := Filter{clock: filterline.Clock{Now: now, Zone: zone}}.withLine(strings.TrimSpace(q.Get("filter")))

	// The dates of the form take the place of another time.
	if part := datesLine(q.Get("from"), q.Get("to")); part != "" && f.fault == nil {
		f = f.During(part)
	}
	f.Columns, f.Order = ColumnNames(q["col"]), readOrder(q, wire.SortFields)
	f.Named = q.Get("named")
	if q.Get("density") == Compact {
		f.Density = Compact
	}

	return f
}

// OfRollups returns the filter with the order of sessions, traces or users in its address.
func (f Filter) OfRollups(q url.Values) Filter {
	f.Columns, f.Density, f.Order = nil, "", readOrder(q, wire.RollupSortFields)

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
	for name, value := range map[string]string{"density": f.Density, "named": f.Named} {
		if value != "" {
			q.Set(name, value)
		}
	}

	return q
}

// Page returns the address of the page that shows the filter.
func (f Filter) Page(path string) string {
	q := f.Values()
	maps.Copy(q, f.Kept)
	if f.Timed {
		q.Set("filter", f.Text)
	}

	return address.Of(path, q)
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
	first, end := f.Edges(from, to, false)

	return f.During("since:" + first + " before:" + end)
}

// Range returns the time that the filter is about: from a moment until before another. A bound that it does
// not set is zero.
func (f Filter) Range() (from, to time.Time) { return f.line.Range(f.clock) }

// Zoom returns an address of the filter at any other time, which is from {from} to {to}. Edges prints what
// to put in their place.
func (f Filter) Zoom(of func(Filter) string) string {
	const from, to = "2001-01-01", "2001-01-02"

	return strings.NewReplacer(from, "{from}", to, "{to}").Replace(of(f.During("time:" + from + ".." + to)))
}

// Edges returns the ends of a time as a line has them: its first and its last day, or moments.
func (f Filter) Edges(from, to time.Time, days bool) (first, last string) {
	if days {
		return from.In(f.Zone()).Format(time.DateOnly), to.In(f.Zone()).AddDate(0, 0, -1).Format(time.DateOnly)
	}

	layout := time.RFC3339
	if from.Second() == 0 && to.Second() == 0 {
		// A page may have hundreds of them.
		layout = "2006-01-02T15:04Z07:00"
	}

	return from.In(f.Zone()).Format(layout), to.In(f.Zone()).Format(layout)
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

// Intervals returns where the buckets of a statistic begin in a time, and where the last one ends. It is nil if
// there are more than most.
func (f Filter) Intervals(from, to time.Time, size time.Duration, most int) []time.Time {
	edges := []time.Time{calendar.Floor(from, size, f.Zone()).In(f.Zone())}
	for at := edges[0]; at.Before(to); {
		if len(edges) > most {
			return nil
		}
		at = calendar.End(at, size, f.Zone()).In(f.Zone())
		edges = append(edges, at)
	}

	return edges
}

// Demands returns the value that a field must have, without a template's version; "" if there is none.
func (f Filter) Demands(field string) (value string) {
	for _, t := range f.line.Terms {
		if t.Field != nil && t.Field.Name == field && value == "" {
			value, _ = t.Demanded()
		}
	}

	return value
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

// List reads a page of the list of what the filter finds: its rows after a cursor.
func (f Filter) List(
	ctx context.Context, records wire.Archive, id wire.Identity, page wire.Search,
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

// Form is a page's filter, with what its form offers.
type Form struct {
	Filter Filter
	Path   string
	Error  *wire.Error // what is wrong with the filter
	Marked markedLine  // where, if that is known
	Chips  []chip
	Times  []Link
	Range  string // the time that is shown, in words
	Zone   string // whose days they are
}

// Link leads to the page at another time, or with another line, or to another list with the same filter.
type Link struct {
	Text, Href string
	Current    bool
}

// Meant leads to the page with the line that may have been meant; nil if that is no other.
func (f Form) Meant() *Link {
	line, ok := f.Filter.line.Meant(strings.TrimPrefix(f.Path, "/"))
	if !ok {
		return nil
	}
	other := f.Filter.withLine(line.String())

	return &Link{Text: other.Text, Href: other.Page(f.Path)}
}

// markedLine is a line with the place of its fault, up to the next blank.
type markedLine struct{ Before, Wrong, After, Reason string }

// chip is a condition in force, with the address of the page without it.
type chip struct{ Text, Without string }

// chipsMax bounds the chips, each of which has the whole line in its address.
const chipsMax = 20

// NewForm returns the form of the page at a path, with its filter.
func NewForm(path string, f Filter) Form {
	v := Form{Filter: f, Path: path, Zone: f.Zone().String()}
	if f.fault != nil {
		// Another time would lose what was typed.
		return v
	}
	shown := min(len(f.line.Terms), chipsMax)
	if shown == 1 {
		// It would say what the line above it says.
		shown = 0
	}
	for i := range shown {
		v.Chips = append(v.Chips, chip{f.line.Terms[i].String(), f.without(i).Page(path)})
	}

	for _, t := range Times {
		other := f.During(t.Line)
		v.Times = append(v.Times, Link{t.Text, other.Page(path), other.Text == f.Text})
	}
	from, to := f.line.Range(f.clock)
	v.Range = rangeText(from, to, f.clock.Now, f.Zone())

	return v
}

// Tabs returns the lists of requests and of what they belong to. Conditions that no request can meet are
// left out for requests.
func (v Form) Tabs() (all []Link) {
	for _, text := range []string{"Requests", "Traces", "Sessions", "Users"} {
		path, to := "/"+strings.ToLower(text), v.Filter
		to.Columns, to.Order, to.Density, to.Named = nil, Order{}, "", ""
		if path == "/requests" && v.Filter.fault == nil {
			to.line.Terms = slices.DeleteFunc(slices.Clone(to.line.Terms), func(t filterline.Term) bool {
				return t.Field != nil && !t.Field.IsOfCalls()
			})
			to.Text = to.line.String()
		}
		all = append(all, Link{text, address.Of(path, to.Values()), path == v.Path})
	}

	return all
}

// Noun returns what the page lists, in the plural.
func (v Form) Noun() string {
	if noun := strings.TrimPrefix(v.Path, "/"); slices.Contains(wire.RollupKinds, noun) {
		return noun
	}
	return "requests"
}

// Reject shows what is wrong with the filter, in its form, where it can be corrected.
func (v *Form) Reject(e *wire.Error) {
	v.Error = e
	if len(e.Fields) == 0 || e.Fields[0].Offset == nil {
		return
	}

	line := []rune(v.Filter.Text)
	at := min(*e.Fields[0].Offset, len(line))
	rest := string(line[at:])
	end := strings.IndexFunc(rest, unicode.IsSpace)
	if end < 0 {
		end = len(rest)
	}
	// The mark says where.
	_, reason, _ := strings.Cut(e.Fields[0].Reason, ": ")
	v.Marked = markedLine{Before: string(line[:at]), Wrong: rest[:end], After: rest[end:], Reason: reason + "."}
	if v.Marked.Wrong == "" {
		// Something is missing here.
		v.Marked.Wrong = "…"
	}
}

// datesLine returns the condition of the days from one date to another, either of which may be
// missing; "" if there is neither.
func datesLine(from, to string) string {
	_, errFrom := time.Parse(time.DateOnly, from)
	_, errTo := time.Parse(time.DateOnly, to)
	switch {
	case errFrom != nil && errTo != nil:
		return ""
	case errTo != nil:
		return "since:" + from
	case errFrom != nil:
		return "until:" + to
	}

	// Dates compare as texts do.
	return "time:" + min(from, to) + ".." + max(from, to)
}

// TimeChoice is a time as a line has it, and as a page shows it.
type TimeChoice struct{ Line, Text string }

// Times are the conditions that a page offers for the time of its requests.
var Times = []TimeChoice{
	{"since:1h", "Last hour"},
	{"since:24h", "Last 24 hours"},
	{"since:7d", "Last 7 days"},
	{"since:30d", "Last 30 days"},
	{"since:today", "Today"},
	{"time:yesterday", "Yesterday"},
	{"since:this-week", "This week"},
	{"", "All time"},
}

// rangeText returns the time from a moment until before another in words. Either may be zero.
func rangeText(from, to, now time.Time, zone *time.Location) string {
	from, to, now = from.In(zone), to.In(zone), now.In(zone)
	isDay := func(t time.Time) bool {
		return t.Equal(calendar.StartOfDay(t.Year(), t.Month(), t.Day(), zone))
	}
	// The zero time may be in the year 0 of a zone.
	days := (from.Year() <= 1 || isDay(from)) && (to.Year() <= 1 || isDay(to))

	// A year that is not this one is named, and seconds where there is not much more.
	brief := from.Year() > 1 && to.Sub(from) < time.Hour
	print := func(t time.Time) string {
		layout := "Jan 2"
		if t.Year() != now.Year() {
			layout += ", 2006"
		}
		if !days {
			layout += " 15:04"
			if brief && t.Second() != 0 {
				layout += ":05"
			}
		}
		return t.Format(layout)
	}

	last := to
	if days {
		// A range of days names the last one.
		last = to.Add(-1)
	}
	switch {
	case from.Year() <= 1 && to.Year() <= 1:
		return "All time"
	case to.Year() <= 1:
		return "Since " + print(from)
	case from.Year() <= 1:
		return "Until " + print(last)
	case print(from) == print(last):
		return print(from)
	}

	return print(from) + " to " + print(last)
}
