package overview

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"promptspool/api/dashboard/filter"
	"promptspool/api/wire"
	"promptspool/api/wire/calendar"
)

// A bar of a day leads to that day, however many hours it has.
func TestABarOfADayLeadsToThatDay(t *testing.T) {
	california, _ := calendar.ParseZone("America/Los_Angeles")
	f := filter.Read(nil, time.Now(), california)
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
		got := filter.Read(r.URL.Query(), time.Now(), nil).Text
		if got != want || c.When(c.Points[i]) != a.Stats[i].Date {
			t.Errorf("the bar of %s (%s) leads to %s, want %s", a.Stats[i].Date, c.When(c.Points[i]), got, want)
		}
	}
}
