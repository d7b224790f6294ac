package filter

import (
	"time"

	"promptspool/api/wire/calendar"
)

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
		last = to.Add(-1) // a range of days names the last one
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
