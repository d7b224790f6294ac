package dashboard

import (
	"strings"
	"time"
)

// span is how far back a page looks.
type span struct {
	Word, Text string
	Duration   time.Duration
}

var spans = []span{
	{"", "All time", 0},
	{"1h", "Last hour", time.Hour},
	{"24h", "Last 24 hours", 24 * time.Hour},
	{"7d", "Last 7 days", 7 * 24 * time.Hour},
	{"30d", "Last 30 days", 30 * 24 * time.Hour},
}

// stretch is a fixed stretch of time, such as that of a chart's bar. An address holds it as
// 20261114T050000Z~4h.
type stretch struct {
	from time.Time
	long time.Duration
}

const stretchLayout = "20060102T150405Z"

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

	return s.from.UTC().Format(stretchLayout) + "~" + long
}

func readStretch(text string) (s stretch, ok bool) {
	from, long, _ := strings.Cut(text, "~")
	at, errAt := time.Parse(stretchLayout, from)
	d, errLong := time.ParseDuration(long)

	return stretch{at, d}, errAt == nil && errLong == nil && d > 0 && d%time.Second == 0
}

// Describe returns a stretch in words.
func (s stretch) Describe() string {
	layout := "2006-01-02 15:04:05 UTC"
	midnight := s.from.Hour() == 0 && s.from.Minute() == 0 && s.from.Second() == 0
	switch {
	case midnight && s.long%(24*time.Hour) == 0:
		layout = time.DateOnly
	case s.from.Second() == 0:
		layout = "2006-01-02 15:04 UTC"
	}

	return s.from.Format(layout) + ", " + roughly(s.long)
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

// spansWith returns the spans that a form offers: all of them, and the stretch in force.
func spansWith(current string) []span {
	if s, ok := readStretch(current); ok {
		return append([]span{{current, s.Describe(), 0}}, spans...)
	}

	return spans
}
