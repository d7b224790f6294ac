package dashboard

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/calendar"
)

func TestPagesShowTimesInTheReadersZone(t *testing.T) {
	page := []byte(`<time datetime="2026-11-19T05:47:03.000Z">2026-11-19 05:47:03 UTC</time>` +
		` until <time datetime="2026-11-29T03:00:00.000Z" class="day">Nov 29</time>` +
		` &lt;time datetime="2026-11-19T05:47:03.000Z"&gt;logged&lt;/time&gt;`)
	for cookies, want := range map[string]string{
		"":                                  "2026-11-19 05:47:03 UTC until Nov 29",
		"zone=America%2FLos_Angeles":        "2026-11-18 21:47:03 until Nov 28",
		"zone=Asia%2FKolkata":               "2026-11-19 11:17:03 until Nov 29",
		"zone=America%2FLos_Angeles; utc=1": "2026-11-19 05:47:03 UTC until Nov 29",
		"zone=Moon%2FBase":                  "2026-11-19 05:47:03 UTC until Nov 29",
		"zone=Local":                        "2026-11-19 05:47:03 UTC until Nov 29",
	} {
		r := httptest.NewRequest(http.MethodGet, "/requests", nil)
		r.Header.Set("Cookie", cookies)
		c := call{Request: r}

		shown := string(c.zone().localize(page))
		if !strings.HasSuffix(shown, "logged&lt;/time&gt;") {
			t.Errorf("%s: what was logged is changed: %s", cookies, shown)
		}
		for _, part := range strings.Split(want, " until ") {
			if !strings.Contains(shown, ">"+part+"</time>") {
				t.Errorf("%s: %s is not shown in %s", cookies, part, shown)
			}
		}
	}
}

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
		f := newFilter(line)
		f.zone = berlin
		if got := viewFilter("/", f, now).Range; got != want {
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
		if got := readFilter(r.URL.Query()).Text; got != want {
			t.Errorf("%s is the line %s, want %s", query, got, want)
		}
	}
}

// A bar of a day leads to that day, however many hours it has.
func TestABarOfADayLeadsToThatDay(t *testing.T) {
	f := filter{}
	f.zone, _ = calendar.ParseZone("America/Los_Angeles")
	a := wire.Analytics{
		ChartInterval: wire.ChartInterval{BucketSizeMS: 24 * 60 * 60 * 1000},
		Stats:         []wire.AnalyticsStat{{Date: "2026-11-01"}, {Date: "2026-11-02"}},
	}

	c := overviewCharts(f, a)[0]
	for i, want := range []string{
		"since:2026-11-01T00:00-07:00 before:2026-11-02T00:00-08:00",
		"since:2026-11-02T00:00-08:00 before:2026-11-03T00:00-08:00",
	} {
		r := httptest.NewRequest(http.MethodGet, c.Link(c.Points[i]), nil)
		if got := readFilter(r.URL.Query()).Text; got != want || c.When(c.Points[i]) != a.Stats[i].Date {
			t.Errorf("the bar of %s (%s) leads to %s, want %s", a.Stats[i].Date, c.When(c.Points[i]), got, want)
		}
	}
}
