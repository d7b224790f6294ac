package filter

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/calendar"
)

// read reads the filter in an address, now and in UTC.
func read(q url.Values) Filter { return Read(q, time.Unix(1_800_000_000, 0), nil) }

// typedFilter returns the filter of a line.
func typedFilter(line string) Filter { return read(url.Values{"filter": {line}}) }

// FuzzFilterInTheAddress checks that the filter read from any address is the same after
// it was printed in an address and read again.
func FuzzFilterInTheAddress(f *testing.F) {
	f.Add("")
	f.Add("filter=status:error+%22a+phrase%22+-env:staging&col=model")
	f.Add("filter=latency:&from=2026-11-21&to=2026-11-20&sort=cost&order=asc&cursor=%00")

	f.Fuzz(func(t *testing.T, address string) {
		q, _ := url.ParseQuery(address) // as much as can be parsed
		first := read(q)
		printed := first.Values().Encode()
		again, err := url.ParseQuery(printed)
		if err != nil {
			t.Fatalf("%q is not a query: %v", printed, err)
		}
		if second := read(again).Values().Encode(); second != printed {
			t.Fatalf("%q is read as %q", printed, second)
		}

		_, _ = first.Search()
		for i := range first.line.Terms {
			if len(first.without(i).line.Terms) != len(first.line.Terms)-1 {
				t.Fatal("removing a condition does not leave one less")
			}
		}
		NewForm("/", first)
	})
}

func TestAFaultIsMarkedInTheLineThatIsShown(t *testing.T) {
	for typed, want := range map[string]markedLine{
		`  Tag:"demo"  latency:fast x`: {"tag:demo latency:", "fast", " x", ""},
		"tag:a status:":                {"tag:a status:", "…", "", ""},
		`é "open x`:                    {"é ", `"open`, " x", ""},
	} {
		f := typedFilter(typed)
		_, err := f.Search()
		v := NewForm("/", f)
		v.Reject(wire.AsError(err))
		if v.Marked.Reason == "" {
			t.Errorf("%s: no reason is shown", typed)
		}
		if v.Marked.Reason = ""; v.Marked != want {
			t.Errorf("%s is marked as %+v, want %+v", typed, v.Marked, want)
		}
	}
}

func TestTheTimeOfAFilterIsReplaced(t *testing.T) {
	f := typedFilter("status:error since:7d -before:2h x")
	if got := f.During("time:yesterday").Text; got != "status:error x time:yesterday" {
		t.Errorf("another time gives %s", got)
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
		if got := read(q).Title("Requests"); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

// The bars of a chart have short addresses, whose line is in the reader's zone.
func TestABarOfHoursLeadsToItsLine(t *testing.T) {
	kolkata, _ := calendar.ParseZone("Asia/Kolkata")
	f := Read(url.Values{"filter": {"tag:a since:7d"}}, time.Now(), kolkata)
	at := time.Date(2026, 11, 14, 12, 30, 0, 0, time.UTC)

	for long, want := range map[time.Duration]string{
		4 * time.Hour:    "tag:a since:2026-11-14T18:00+05:30 before:2026-11-14T22:00+05:30",
		30 * time.Second: "tag:a since:2026-11-14T18:00:00+05:30 before:2026-11-14T18:00:30+05:30",
	} {
		r := httptest.NewRequest(http.MethodGet, f.Between(at, at.Add(long)).Requests(), nil)
		if got := read(r.URL.Query()).Text; got != want {
			t.Errorf("%s is the line %s, want %s", r.URL, got, want)
		}
	}
}

func TestAFileOfAViewSaysWhatItIs(t *testing.T) {
	berlin, _ := calendar.ParseZone("Europe/Berlin")
	now := time.Date(2026, 11, 22, 23, 30, 0, 0, time.UTC)
	for line, want := range map[string]string{
		"":                                       "events-all-2026-11-23.jsonl",
		"status:error template:support/triage@3": "events-status-error-template-support-triage-3-2026-11-23.jsonl",
		"\"\u00fc\r\nX: y\" customer:\"a\\\"b\"": "events-x-y-customer-a-b-2026-11-23.jsonl",
		strings.Repeat("x", 90):                  "events-" + strings.Repeat("x", 60) + "-2026-11-23.jsonl",
	} {
		f := Read(url.Values{"filter": {line}}, now, berlin)
		if got := f.FileName("events", ".jsonl"); got != want {
			t.Errorf("%q is saved as %s, want %s", line, got, want)
		}
	}
}
