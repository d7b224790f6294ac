package dashboard

import (
	"net/url"
	"testing"
	"time"

	"promptspool/api/wire"
)

// FuzzFilterInTheAddress checks that the filter read from any address is the same after
// it was printed in an address and read again.
func FuzzFilterInTheAddress(f *testing.F) {
	f.Add("")
	f.Add("filter=status:error+%22a+phrase%22+-env:staging&col=model")
	f.Add("filter=latency:&from=2026-11-21&to=2026-11-20&sort=cost&order=asc&cursor=%00")

	f.Fuzz(func(t *testing.T, address string) {
		q, _ := url.ParseQuery(address) // as much as can be parsed
		first := readFilter(q)
		printed := first.values().Encode()
		again, err := url.ParseQuery(printed)
		if err != nil {
			t.Fatalf("%q is not a query: %v", printed, err)
		}
		if second := readFilter(again).values().Encode(); second != printed {
			t.Fatalf("%q is read as %q", printed, second)
		}

		_, _ = first.search(time.Unix(1_800_000_000, 0))
		for i := range first.line.Terms {
			if len(first.without(i).line.Terms) != len(first.line.Terms)-1 {
				t.Fatal("removing a condition does not leave one less")
			}
		}
		viewFilter("/", first, time.Now())
	})
}

func TestAFaultIsMarkedInTheLineThatIsShown(t *testing.T) {
	for typed, want := range map[string]markedLine{
		`  Tag:"demo"  latency:fast x`: {"tag:demo latency:", "fast", " x", ""},
		"tag:a status:":                {"tag:a status:", "…", "", ""},
		`é "open x`:                    {"é ", `"open`, " x", ""},
	} {
		f := newFilter(typed)
		_, err := f.search(time.Now())
		v := viewFilter("/", f, time.Now())
		v.reject(wire.AsError(err))
		if v.Marked.Reason == "" {
			t.Errorf("%s: no reason is shown", typed)
		}
		if v.Marked.Reason = ""; v.Marked != want {
			t.Errorf("%s is marked as %+v, want %+v", typed, v.Marked, want)
		}
	}
}

func TestTheTimeOfAFilterIsReplaced(t *testing.T) {
	at := time.Date(2026, 11, 14, 5, 0, 0, 0, time.UTC)
	f := newFilter("status:error since:7d -before:2h x")
	if got := f.during("time:yesterday").Text; got != "status:error x time:yesterday" {
		t.Errorf("another time gives %s", got)
	}
	want := "status:error x since:2026-11-14T05:00:00Z before:2026-11-14T05:00:30Z"
	if got := f.between(at, at.Add(30*time.Second)).Text; got != want {
		t.Errorf("a stretch gives %s, want %s", got, want)
	}
}
