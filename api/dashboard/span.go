package dashboard

import (
	"strings"
	"time"
)

// span is how far back a page looks.
type span struct{ Word, Text string }

var spans = []span{
	{"", "All time"},
	{"1h", "Last hour"},
	{"24h", "Last 24 hours"},
	{"7d", "Last 7 days"},
	{"30d", "Last 30 days"},
	{"today", "Today"},
	{"yesterday", "Yesterday"},
	{"this-week", "This week"},
}

// stretch is a fixed stretch of time, such as that of a chart's bar. An address holds it as
// 20261114T050000Z~4h, or with the offset of a zone, 20261114T050000+0100~4h.
type stretch struct {
	from time.Time
	long time.Duration
}

const stretchLayout = "20060102T150405Z0700"

// String returns the stretch as an address holds it.
func (s stretch) String() string {
	// "4h0m0s" is shortened to "4h".
	long := s.long.String()
	if strings.HasSuffix(long, "m0s") {
		long = strings.TrimSuffix(long, "0s")
	}
	if strings.HasSuffix(long, "h0m") {
		long = strings.TrimSuffix(long, "0m")
	}

	return s.from.Format(stretchLayout) + "~" + long
}

func readStretch(text string) (s stretch, ok bool) {
	from, long, _ := strings.Cut(text, "~")
	at, errAt := time.Parse(stretchLayout, from)
	d, errLong := time.ParseDuration(long)

	return stretch{at, d}, errAt == nil && errLong == nil && d > 0 && d%time.Second == 0
}

// readSpan reads the span in an address. It returns "" for anything that is not one.
func readSpan(text string) string {
	for _, s := range spans {
		if s.Word == text {
			return text
		}
	}
	if s, ok := readStretch(text); ok {
		return s.String() // one stretch may be written in several ways
	}

	return ""
}

// spanLine returns the condition of a span in a line; "" for all time. Both ends are whole seconds.
func spanLine(span string) string {
	if s, ok := readStretch(span); ok {
		to := s.from.Add(s.long)
		return "since:" + s.from.Format(time.RFC3339) + " before:" + to.Format(time.RFC3339)
	}
	switch span {
	case "":
		return ""
	case "yesterday":
		return "time:" + span // it has ended
	}

	return "since:" + span
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

// times are the conditions that a page offers for the time of its requests.
var times = []struct{ Line, Text string }{
	{"since:1h", "Last hour"},
	{"since:24h", "Last 24 hours"},
	{"since:7d", "Last 7 days"},
	{"since:30d", "Last 30 days"},
	{"since:today", "Today"},
	{"time:yesterday", "Yesterday"},
	{"since:this-week", "This week"},
	{"", "All time"},
}
