package filter

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"promptspool/api/wire/calendar"
)

func TestARangeIsShownInWords(t *testing.T) {
	berlin, _ := calendar.ParseZone("Europe/Berlin")
	now := time.Date(2026, 11, 22, 23, 30, 0, 0, time.UTC) // Monday in Berlin

	for line, want := range map[string]string{
		"":                            "All time",
		"status:error":                "All time",
		"since:today":                 "Since Nov 23",
		"time:yesterday":              "Nov 22",
		"time:2026-10-25":             "Oct 25", // 25 hours
		"time:2026-11-01..2026-11-07": "Nov 1 to Nov 7",
		"time:2025-12-31..2026-01-01": "Dec 31, 2025 to Jan 1",
		"before:2026-11-08":           "Until Nov 7",
		"since:24h":                   "Since Nov 22 00:30",
		"since:yesterday before:2026-11-22T12:00":                    "Nov 22 00:00 to Nov 22 12:00",
		"since:2026-11-19T00:00-08:00 before:2026-11-20T00:00-08:00": "Nov 19 09:00 to Nov 20 09:00",
		"-time:yesterday since:7d":                                   "Since Nov 16 00:30",
	} {
		f := Read(url.Values{"filter": {line}}, now, berlin)
		if got := NewForm("/", f).Range; got != want {
			t.Errorf("%s is shown as %q, want %q", line, got, want)
		}
	}
}

// The dates of the form replace another time, and may be typed in any order.
func TestDatesAreATimeOfTheFilter(t *testing.T) {
	for query, want := range map[string]string{
		"filter=tag:a+since:7d&from=2026-11-01&to=2026-11-07": "tag:a time:2026-11-01..2026-11-07",
		"from=2026-11-07&to=2026-11-01":                       "time:2026-11-01..2026-11-07",
		"from=2026-11-07&to=":                                 "since:2026-11-07",
		"filter=tag:a&from=&to=2026-11-07":                    "tag:a until:2026-11-07",
		"filter=since:7d&from=&to=":                           "since:7d",
		"filter=since:7d&from=x+y&to=1":                       "since:7d",
	} {
		r := httptest.NewRequest(http.MethodGet, "/requests?"+query, nil)
		if got := Read(r.URL.Query(), time.Now(), nil).Text; got != want {
			t.Errorf("%s is the line %s, want %s", query, got, want)
		}
	}
}
