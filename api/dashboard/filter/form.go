package filter

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"promptspool/api/dashboard/address"
	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/api/wire/calendar"
)

// Form is a page's filter, with what its form offers.
type Form struct {
	Filter Filter
	Path   string
	Error  *wire.Error // what is wrong with the filter
	Marked markedLine  // where, if that is known
	Chips  []chip
	Times  []timeLink
	Range  string // the time that is shown, in words
	Zone   string // whose days they are
}

// timeLink leads to the page at another time.
type timeLink struct {
	Text, Href string
	Current    bool
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
		v.Chips = append(v.Chips, chip{f.line.Terms[i].String(), address.Of(path, f.without(i).Values())})
	}

	for _, t := range Times {
		other := f.During(t.Line)
		v.Times = append(v.Times, timeLink{t.Text, address.Of(path, other.Values()), other.Text == f.Text})
	}
	from, to := f.line.Range(f.clock)
	v.Range = rangeText(from, to, f.clock.Now, f.Zone())

	return v
}

// Tab leads to another list with the same filter.
type Tab struct {
	Text, Href string
	Current    bool
}

// Tabs returns the lists of requests and of what they belong to. Conditions that no request can meet are
// left out for requests.
func (v Form) Tabs() (all []Tab) {
	for _, text := range []string{"Requests", "Traces", "Sessions", "Users"} {
		path, to := "/"+strings.ToLower(text), v.Filter
		to.Columns, to.Order = nil, Order{}
		if path == "/requests" && v.Filter.fault == nil {
			to.line.Terms = slices.DeleteFunc(slices.Clone(to.line.Terms), func(t filterline.Term) bool {
				return t.Field != nil && !t.Field.IsOfCalls()
			})
			to.Text = to.line.String()
		}
		all = append(all, Tab{text, address.Of(path, to.Values()), path == v.Path})
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
