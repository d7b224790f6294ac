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
	{"", "All time", 0}, {"1h", "Last hour", time.Hour}, {"24h", "Last 24 hours", 24 * time.Hour},
	{"7d", "Last 7 days", 7 * 24 * time.Hour}, {"30d", "Last 30 days", 30 * 24 * time.Hour},
}

// stretch is a stretch of time that somebody picked, such as a bar of a chart. In an address it is 20261114T050000Z~4h.
type stretch struct {
	from time.Time
	long time.Duration
}

const stretchLayout = "20060102T150405Z"

func (s stretch) String() string {
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
	at, err1 := time.Parse(stretchLayout, from)
	d, err2 := time.ParseDuration(long)
	return stretch{at, d}, err1 == nil && err2 == nil && d > 0 && d%time.Second == 0
}

// Describe says a stretch in words.
func (s stretch) Describe() string {
	layout := "2006-01-02 15:04:05 UTC"
	switch {
	case s.from.Hour() == 0 && s.from.Minute() == 0 && s.from.Second() == 0 && s.long%(24*time.Hour) == 0:
		layout = time.DateOnly
	case s.from.Second() == 0:
		layout = "2006-01-02 15:04 UTC"
	}
	return s.from.Format(layout) + ", " + roughly(s.long)
}

// readSpan reads the span of an address; "" for one that is none.
func readSpan(text string) string {
	for _, s := range spans {
		if s.Word == text {
			return text
		}
	}
	if s, ok := readStretch(text); ok {
		return s.String()
	}
	return ""
}

// spansWith are the spans that a form offers, with the one in force.
func spansWith(current string) []span {
	if s, ok := readStretch(current); ok {
		return append([]span{{current, s.Describe(), 0}}, spans...)
	}
	return spans
}
