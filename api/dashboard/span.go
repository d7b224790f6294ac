package dashboard

import "time"

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

// timeChoice is a time as a line has it, and as a page shows it.
type timeChoice struct{ Line, Text string }

// times are the conditions that a page offers for the time of its requests.
var times = []timeChoice{
	{"since:1h", "Last hour"},
	{"since:24h", "Last 24 hours"},
	{"since:7d", "Last 7 days"},
	{"since:30d", "Last 30 days"},
	{"since:today", "Today"},
	{"time:yesterday", "Yesterday"},
	{"since:this-week", "This week"},
	{"", "All time"},
}
