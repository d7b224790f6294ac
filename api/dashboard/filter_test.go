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
	f.Add("q=hello&span=7d&tags=demo&field=metadata&key=user&op=is&value=ann&col=model")
	f.Add("field=tags&field=score&key=&op=is&op=gt&value=a,b&value=1e400&span=20261114T050000Z~4h")
	f.Add("field=accepted_at&op=between&value=,&span=99999999T000000Z~1ns&cursor=%00")
	f.Add("metadata=x&model=&model=a&model=b&field=model&op=is&value=c&field=latency_ms&op=in&value=1")

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

// What addresses had before there was a line is a part of it.
func TestAnOldAddressIsReadAsALine(t *testing.T) {
	for address, want := range map[string]string{
		"":                                  "",
		"prompt_version_number=3&tags=demo": "version:3 tag:demo",
		"status=ERROR&span=24h":             "since:24h status:ERROR",
		"field=metadata&key=user&op=is&value=ann":       "user:ann",
		"field=status&key=customer&op=is&value=ERROR":   "status:ERROR",
		"field=score&key=&op=gt&span=7d&value=50&q=a+b": "a b since:7d score:>50",
		"field=latency_ms&op=gte&value=1500":            "latency:>=1.5s",
		"field=is_json&op=is_false":                     "-is:json",
		"field=model&op=in&value=a,+b":                  "model:(a or b)",
		"span=20261114T050000Z~4h":                      "since:2026-11-14T05:00:00Z before:2026-11-14T09:00:00Z",
		"span=nonsense&field=&filter=x":                 "x",
		"filter=tag:a&tags=b":                           "tag:a tag:b",
	} {
		q, err := url.ParseQuery(address)
		if err != nil {
			t.Fatal(err)
		}
		f := readFilter(q)
		if _, err := f.search(time.Now()); err != nil || f.Text != want {
			t.Errorf("%s is the line %s (%v), want %s", address, f.Text, err, want)
		}
	}

	// What a line cannot say is not left out in silence.
	whole := url.Values{"field": {"input_text"}, "op": {"is"}, "value": {"x"}}
	if _, err := readFilter(whole).search(time.Now()); err == nil {
		t.Error("a condition that no line has is ignored")
	}
}

// Neither does a link of a page: what it leads to says so.
func TestALinkDoesNotLeadToMoreThanItSays(t *testing.T) {
	at := time.Date(2026, 11, 14, 5, 0, 0, 0, time.UTC)
	f := newFilter("tag:a").with(condition{"user_intent", "", "is_null", ""}).between(at, at.Add(time.Hour))
	if _, err := f.group(at); err == nil {
		t.Error("a filter with a condition that no line has finds everything")
	}

	q := f.values()
	if again := readFilter(q); again.fault == nil || again.Text != f.Text {
		t.Errorf("%s is %s, fault %v; want a fault", q.Encode(), again.Text, again.fault)
	}
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
