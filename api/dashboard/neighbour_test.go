package dashboard

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// requestsPerPage is how many rows a page of the list has.
const requestsPerPage = 50

// logAt logs a call that began so many seconds after a time, and returns its id.
func (s *site) logAt(email string, noon time.Time, start, latency int) string {
	s.t.Helper()
	from := noon.Add(time.Duration(start) * time.Second)
	e := newEvent(wire.KindRequest,
		fmt.Sprintf(`{"function_name":"f","request_start_time":%q,"request_end_time":%q,"tags":["a"]}`,
			from.Format(time.RFC3339), from.Add(time.Duration(latency)*time.Second).Format(time.RFC3339)))
	s.record(email, e)

	return e.RequestID
}

// links returns where the links of a page lead that an expression finds.
func (s *site) links(email, page, expression string) (to []string) {
	s.t.Helper()
	body := s.call(email, "GET", page, nil).Body.String()
	for _, found := range regexp.MustCompile(expression).FindAllStringSubmatch(body, -1) {
		to = append(to, html.UnescapeString(found[1]))
	}

	return to
}

// rows returns the addresses of the records on a page of the list.
func (s *site) rows(email, list string) []string {
	return s.links(email, list, `href="(/requests/[0-9a-f]{8}-[^"]*)"`)
}

// beside returns where a record's page leads in its list; "" for nowhere.
func (s *site) beside(email, page, relation string) string {
	step := append(s.links(email, page, `href="([^"]*)" rel="`+relation+`"`), "")[0]
	if step == "" {
		return ""
	}
	to := s.call(email, "GET", step, nil).Header().Get("Location")
	if strings.HasSuffix(to, "&done=at-end") {
		return ""
	}

	return to
}

// recordOf returns the id in the address of a record.
func recordOf(address string) string {
	u, _ := url.Parse(address)

	return u.Path[min(len("/requests/"), len(u.Path)):]
}

// An import by the second or by the day has many calls that started at the same time.
func TestNeighboursAreThoseOfTheListWhereTimesAndValuesAreTheSame(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	noon := time.Now().UTC().Truncate(time.Hour).Add(-48 * time.Hour)
	for n := range requestsPerPage + 10 {
		s.logAt(ann, noon, []int{0, 60, 60, 60, 90, 120}[n%6], 1+n%3)
	}

	for _, order := range []string{
		"", "sort=list_time&order=asc", "sort=latency_ms", "sort=latency_ms&order=asc", "sort=status&order=asc",
		"sort=accepted_at&order=asc&filter=tag:a",
	} {
		list := s.rows(ann, "/requests?"+order)
		second := s.rows(ann, s.links(ann, "/requests?"+order, `href="([^"]*)" rel="next"`)[0])
		if s.beside(ann, second[0], "prev") != "" || recordOf(s.beside(ann, second[1], "prev")) != recordOf(second[0]) {
			t.Errorf("%s: a page of the list has neighbours before its first row", order)
		}
		list = append(list, second...)
		if len(list) != requestsPerPage+10 {
			t.Fatalf("%s: the list has %d rows", order, len(list))
		}

		// Through the whole list, and back.
		var there, back []string
		first, last := list[0], ""
		for at := first; at != ""; at = s.beside(ann, at, "next") {
			there, last = append(there, recordOf(at)), at
		}
		for at := last; at != ""; at = s.beside(ann, at, "prev") {
			back, first = append(back, recordOf(at)), at
		}
		for page, want := range map[string]string{first: "1 of 60", last: "60 of 60"} {
			if place := s.links(ann, page, `id="place">([^<]*)<`); !slices.Equal(place, []string{want}) {
				t.Errorf("%s: the place is %q, want %s", order, place, want)
			}
			// Back is the page of the list from which it was reached.
			opened := s.rows(ann, s.links(ann, page, `href="([^"]*)" data-key="u"`)[0])
			if recordOf(opened[0]) != recordOf(list[0]) {
				t.Errorf("%s: the list of %s begins with %s", order, page, opened[0])
			}
		}
		slices.Reverse(back)
		for i := range list {
			list[i] = recordOf(list[i])
		}
		if !slices.Equal(there, list) || !slices.Equal(back, list) {
			t.Errorf("%s: the list is\n%q, there are\n%q there and\n%q back", order, list, there, back)
		}
	}
}

func TestNeighboursStayWhenTheListChanges(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	noon := time.Now().UTC().Truncate(time.Hour).Add(-48 * time.Hour)
	for n := range 4 {
		s.logAt(ann, noon, n, 1)
	}
	list := s.rows(ann, "/requests?filter=-score_name:done")
	beside := func(when, page, previous, next string) {
		t.Helper()
		before, behind := s.beside(ann, page, "prev"), s.beside(ann, page, "next")
		if before != previous || behind != next {
			t.Errorf("%s: it is between %q and %q, want %q and %q", when, before, behind, previous, next)
		}
	}
	beside("as it was opened", list[1], list[0], list[2])
	beside("as sent", list[1]+"&view=sent", list[0]+"&view=sent", list[2]+"&view=sent")
	beside("without a list", "/requests/"+recordOf(list[1]), "", "")
	beside("of a cursor that is none", "/requests/"+recordOf(list[1])+"?cursor=a&row=1", "", "")

	// A score takes it from the list: it is between those that were beside it.
	s.done(ann, "/requests/"+recordOf(list[1])+"/score", s.form(ann, "name", "done", "score", "1"))
	beside("after it was scored", list[1], list[0], list[2][:len(list[2])-1]+"1")

	// More calls than a page has, which are newer.
	for n := range requestsPerPage + 10 {
		s.logAt(ann, noon, 100+n, 1)
	}
	beside("after newer calls", list[1], list[0], list[2][:len(list[2])-1]+"1")
	second := strings.Replace(list[2], "&n=3&", "&n=2&", 1)
	beside("where the list began", list[0], "", second[:len(second)-1]+"1")
}

// The line is completed with fields, with keys that exist, and with values that exist.
func TestALineIsCompleted(t *testing.T) {
	s := openSite(t)
	for line, want := range map[string]string{
		"stat":           "status:",
		"status:e":       "ERROR",
		"status:*e":      "ERROR",
		"status:error":   "ERROR",
		"x -is:(json or": "",
		"since:last":     "last-week last-month",
		`"a text`:        "",
		"latency:":       "",

		strings.Repeat("x ", filterline.RunesMax/2) + "stat": "", // too long for a line
	} {
		var got struct {
			Kept   string
			Offers []struct{ Text string }
			Half   bool
		}
		body := s.call("ann@example.com", "GET", "/suggestions?line="+url.QueryEscape(line), nil).Body.Bytes()
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		var texts []string
		for _, o := range got.Offers {
			texts = append(texts, o.Text)
		}
		if half := strings.HasSuffix(line, "status:e") || line == "since:last"; got.Half != half {
			t.Errorf("%s: half is %t", line, got.Half)
		}
		if strings.Join(texts, " ") != want || !strings.HasPrefix(line, got.Kept) {
			t.Errorf("%s is completed by %q behind %q, want %s", line, texts, got.Kept, want)
		}
	}
}
