package dashboard

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/api/wire/calendar"
)

// An address says how a list is sorted, and each heading leads to the next order.
func TestHeadingsSortTheList(t *testing.T) {
	for _, c := range []struct {
		address, field string
		want           string // the address behind the heading
		sorted, text   string
	}{
		{"", byTime, "order=asc&sort=list_time", "descending", "newest first"},
		{"sort=list_time&order=asc", byTime, "", "ascending", "oldest first"},
		{"", "latency_ms", "sort=latency_ms", "", "newest first"},
		{"sort=latency_ms", "latency_ms", "order=asc&sort=latency_ms", "descending", "slowest first"},
		{"sort=latency_ms&order=asc", "latency_ms", "sort=latency_ms", "ascending", "fastest first"},
		{"sort=latency_ms", "cost", "sort=cost", "", "slowest first"},
		{"sort=latency_ms", byTime, "", "", "slowest first"},
		{"sort=prompt&order=asc", "cost", "sort=cost", "", "newest first"},
		{"sort=list_time&order=down", "cost", "sort=cost", "", "newest first"},
	} {
		q, err := url.ParseQuery(c.address)
		if err != nil {
			t.Fatal(err)
		}
		o := readOrder(q)
		next := url.Values{}
		o.next(c.field).set(next)
		if next.Encode() != c.want || o.Direction(c.field) != c.sorted || o.Text() != c.text {
			t.Errorf("%q, %s: leads to %q, is sorted %q, reads %q",
				c.address, c.field, next.Encode(), o.Direction(c.field), o.Text())
		}
	}
}

func TestEveryOrderHasWordsAndIsOneOfASearch(t *testing.T) {
	for _, field := range wire.SortFields {
		down, up := order{By: field}, order{By: field, Ascending: true}
		if down.Text() == "" || up.Text() == "" || down.Text() == up.Text() {
			t.Errorf("%s reads %q and %q", field, down.Text(), up.Text())
		}
	}
	for _, c := range columns {
		if by, _ := readOrder(url.Values{"sort": {c.Sort}}).search(); by != c.Sort {
			t.Errorf("the column %s sorts by %q", c.Name, by)
		}
	}
}

func TestABrowserRemembersColumnsAndDensity(t *testing.T) {
	d := newDashboard(Config{}, nil)
	submit := func(form url.Values) (address string, v listView) {
		t.Helper()
		answer := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "http://localhost/requests/view", nil)
		r.PostForm = form
		if err := d.rememberView(&call{Request: r, w: answer}); err != nil {
			t.Fatal(err)
		}

		later := httptest.NewRequest(http.MethodGet, "http://localhost/requests", nil)
		for _, cookie := range answer.Result().Cookies() {
			later.AddCookie(cookie)
		}
		return answer.Header().Get("Location"), (&call{Request: later}).listView(filter{})
	}

	address, v := submit(url.Values{
		"col": {"cost", "model", "no column"}, "density": {"compact"}, "filter": {"tag:a"}, "sort": {"cost"},
	})
	if want := (listView{Columns: []string{"model", "cost"}, Compact: true}); !cmp.Equal(v, want) {
		t.Errorf("remembered is %+v", v)
	}
	if address != "/requests?col=model&col=cost&filter=tag%3Aa&sort=cost" {
		t.Errorf("it leads to %s", address)
	}

	address, v = submit(url.Values{"col": defaultColumns()})
	if !cmp.Equal(v, listView{Columns: defaultColumns()}) || address != "/requests" {
		t.Errorf("the usual view is remembered as %+v, and leads to %s", v, address)
	}

	// Somebody sent an address to show its columns.
	r := httptest.NewRequest(http.MethodGet, "http://localhost/requests", nil)
	r.AddCookie(&http.Cookie{Name: listCookie, Value: "model.compact"})
	v = (&call{Request: r}).listView(filter{Columns: []string{"cost"}})
	if want := (listView{Columns: []string{"cost"}, Compact: true}); !cmp.Equal(v, want) {
		t.Errorf("with columns in the address: %+v", v)
	}
}

func TestAListShowsTheScoreThatMostRowsHave(t *testing.T) {
	score := func(name string) wire.Score { return wire.Score{Name: name, Score: 50} }
	rows, main := requestRows(filter{}, wire.SearchPage{Items: []wire.Row{
		{RequestID: "a", Scores: []wire.Score{score("csat"), score("tone")}},
		{RequestID: "b", Scores: []wire.Score{score("tone")}},
		{RequestID: "c", Scores: []wire.Score{score("csat"), score("helpful")}},
		{RequestID: "d"},
		{RequestID: "e", Scores: []wire.Score{score("helpful")}},
	}})

	var got []string
	for _, r := range rows {
		shown := "none"
		if r.Score != nil {
			shown = r.Score.Name
		}
		got = append(got, shown)
	}
	want := []string{"csat", "none", "csat", "none", "none"}       // another score is not one of this column
	if diff := cmp.Diff(want, got); diff != "" || main != "csat" { // as often as others, and first by name
		t.Errorf("main is %s (-want +got):\n%s", main, diff)
	}
}

func TestATitleTellsTabsApart(t *testing.T) {
	long := "model:" + strings.Repeat("é", 200)
	for address, want := range map[string]string{
		"":                                    "Requests",
		"filter=status:error":                 "status:error · Requests",
		"sort=latency_ms":                     "slowest first · Requests",
		"filter=tag:a&sort=cost&order=asc":    "tag:a · cheapest first · Requests",
		"filter=" + url.QueryEscape(long):     "model:" + strings.Repeat("é", 73) + "… · Requests",
		"filter=latency:fast":                 "latency:fast · Requests",
		"filter=" + url.QueryEscape(`"a  b"`): `"a  b" · Requests`,
	} {
		q, err := url.ParseQuery(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := readFilter(q).title("Requests"); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

// The bars of a chart have short addresses, whose line is in the reader's zone.
func TestABarOfHoursLeadsToItsLine(t *testing.T) {
	f := newFilter("tag:a since:7d")
	f.zone, _ = calendar.ParseZone("Asia/Kolkata")
	at := time.Date(2026, 11, 14, 12, 30, 0, 0, time.UTC)

	for long, want := range map[time.Duration]string{
		4 * time.Hour:    "tag:a since:2026-11-14T18:00+05:30 before:2026-11-14T22:00+05:30",
		30 * time.Second: "tag:a since:2026-11-14T18:00:00+05:30 before:2026-11-14T18:00:30+05:30",
	} {
		r := httptest.NewRequest(http.MethodGet, f.between(at, at.Add(long)).requests(), nil)
		if got := readFilter(r.URL.Query()).Text; got != want {
			t.Errorf("%s is the line %s, want %s", r.URL, got, want)
		}
	}
}
