package dashboard

import (
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// FuzzFilterInTheAddress checks that the filter read from any address is the same after
// it was printed in an address and read again.
func FuzzFilterInTheAddress(f *testing.F) {
	f.Add("")
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

		second := readFilter(again)
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("%q is read as another filter (-printed +read):\n%s", printed, diff)
		}

		first.group(time.Unix(1_800_000_000, 0))
		for i := range first.Conditions {
			if len(first.without(i).Conditions) != len(first.Conditions)-1 {
				t.Fatal("removing a condition does not leave one less")
			}
			first.Conditions[i].Describe()
		}
		viewFilter("/", first)
	})
}

func TestAnAddressIsShortWhereItCanBe(t *testing.T) {
	for _, c := range []struct {
		filter filter
		want   string
	}{
		{filter{}, ""},
		{filter{Conditions: []condition{{"tags", "", "is", "demo"}, {"prompt_version_number", "", "is", "3"}}},
			"prompt_version_number=3&tags=demo"},
		{filter{Conditions: []condition{{"metadata", "user", "is", "ann"}}},
			"field=metadata&key=user&op=is&value=ann"},
		{filter{Span: "7d", Conditions: []condition{{"score", "", "gt", "50"}}},
			"field=score&key=&op=gt&span=7d&value=50"},

		{filter{}.between(
			time.Date(2026, 11, 14, 5, 0, 0, 0, time.UTC),
			time.Date(2026, 11, 14, 9, 0, 0, 0, time.UTC),
		), "span=20261114T050000Z~4h"},
		{filter{}.between(
			time.Date(2026, 11, 14, 5, 0, 0, 0, time.UTC),
			time.Date(2026, 11, 14, 5, 0, 30, 0, time.UTC),
		), "span=20261114T050000Z~30s"},
	} {
		if got := c.filter.values().Encode(); got != c.want {
			t.Errorf("the address of %+v is %s, want %s", c.filter, got, c.want)
		}
	}
}
