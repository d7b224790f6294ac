package dashboard

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
)

// verdicts returns the rows of a comparison on a page, each with its cells in words.
func (s *site) verdicts(email, page string) (rows []string) {
	s.t.Helper()
	body := s.call(email, "GET", page, nil).Body.String()
	_, table, _ := strings.Cut(body, "verdicts\">")
	table, _, _ = strings.Cut(table, "</table>")
	for _, row := range strings.Split(table, "</tr>") {
		text := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(row, " "))
		if words := strings.Fields(text); len(words) > 0 {
			rows = append(rows, strings.Join(words, " "))
		}
	}

	return rows
}

// usesVersion logs calls of a version of the template greet, a minute apart, each with a score.
func (s *site) usesVersion(email string, version int, start time.Time, scores ...int) {
	s.t.Helper()
	var events []wire.Event
	for i, score := range scores {
		from := start.Add(time.Duration(i) * time.Minute)
		latency := time.Duration(900+10*(i%20)) * time.Millisecond
		request := newEvent(wire.KindRequest, fmt.Sprintf(`{
			"function_name":"openai.chat","kwargs":{"model":"gpt-4o-mini"},
			"request_response":{"usage":{"prompt_tokens":100,"completion_tokens":%d,"total_tokens":%d}},
			"request_start_time":%q,"request_end_time":%q}`, 10+i%5, 110+i%5,
			from.Format(time.RFC3339Nano), from.Add(latency).Format(time.RFC3339Nano)))
		link := newEvent(wire.KindPrompt, fmt.Sprintf(`{"prompt_name":"greet","version":%d}`, version))
		scored := newEvent(wire.KindScore, fmt.Sprintf(`{"name":"helpful","score":%d}`, score))
		link.RequestID, scored.RequestID = request.RequestID, request.RequestID
		events = append(events, request, link, scored)
	}
	s.record(email, events...)
}

func TestBeforeALabelMovesItsVersionsAreCompared(t *testing.T) {
	s := openSite(t)
	const ann, vic, mallory = "ann@example.com", "vic@example.com", "mallory@example.com"
	for i, text := range []string{"Hello.", "Hello, {name}!", "Dear {name},"} {
		s.publishes(ann, text)
		s.publishes(mallory, fmt.Sprint("others' ", i))
	}
	var worse, better []int
	for i := range 60 {
		worse, better = append(worse, 50+i%10), append(better, 70+i%10)
	}
	old, recent := time.Now().Add(-50*time.Hour), time.Now().Add(-2*time.Hour)
	s.usesVersion(ann, 1, old, worse...)
	s.usesVersion(ann, 1, recent, worse...)
	s.usesVersion(ann, 2, recent, better...)
	s.usesVersion(mallory, 1, recent, better...)

	// Both pages give the same answer, and other people see it as well.
	want := []string{
		"Metric Version 1 Version 2 Difference 95% interval Is version 2 better?",
		"helpful 60 and 60 scores 54.5 74.5 +20.0 +19.0 to +21.0 better",
		"Errors 0.0% 0.0% 0.0% −6.0% to +6.0% no difference shown",
		"Cost per 1,000 calls $0.022 $0.022 $0.00 −$0.00031 to +$0.00031 no difference shown",
		"Latency p50 1.00 s 1.00 s 0 −35 ms to +35 ms no difference shown",
		"Latency p95 1.08 s 1.08 s 0 too few: 140 more calls of each",
		"Tokens per call 112 112 0 −1 to +1 no difference shown",
	}
	const compare = "/template/compare?name=greet&a=1&b=2"
	for _, page := range []string{compare, "/template/statistics?name=greet"} {
		if got := s.verdicts(vic, page); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s compares\n%s", page, strings.Join(got, "\n"))
		}
		text := s.call(vic, "GET", page, nil).Body.String()
		if !strings.Contains(text, "Compared are the calls while both ran, hour by hour.") {
			t.Errorf("%s does not say which calls are compared", page)
		}
	}

	// The time of the page is that of the calls.
	for page, says := range map[string]string{
		compare + "&span=before:24h":                      "Version 2 has no calls in this time yet.",
		"/template/compare?name=greet&a=2&b=3":            "Version 3 has no calls yet.",
		"/template/compare?name=greet&a=3&b=2":            "Version 3 has no calls yet.",
		compare + "&span=since:7d":                        "60 calls of version 1, 60 calls of version 2.",
		"/template/compare?name=greet&a=2&b=1":            "Is version 1 better?",
		"/template/statistics?name=greet&span=before:24h": "Click a row",
	} {
		body := s.call(ann, "GET", page, nil).Body.String()
		if !strings.Contains(body, says) {
			t.Errorf("%s does not say %q: %s", page, says, body)
		}
		alone := strings.Contains(says, "has no calls") || strings.Contains(page, "statistics")
		if known := strings.Contains(body, "verdicts\">"); known == alone {
			t.Errorf("%s compares: %t", page, known)
		}
	}

	// The label prod, which every version got, is moved by a second press only. Others are not asked.
	move := s.form(ann, "name", "greet", "label", "prod", "version", "1")
	to := s.call(ann, "POST", "/template/label", move).Header().Get("Location")
	if to != "/template/compare?a=3&b=1&label=prod&name=greet" {
		t.Fatalf("the form leads to %s", to)
	}
	page := s.call(ann, "GET", to, nil).Body.String()
	if !strings.Contains(page, `name="compared" value="true"`) || !strings.Contains(page, "Dear {name},") {
		t.Errorf("the page does not ask: %s", page)
	}
	if page := s.call(vic, "GET", to, nil).Body.String(); strings.Contains(page, `action="/template/label"`) {
		t.Error("a viewer is asked")
	}
	head, err := s.drafts.Head(t.Context(), s.as(ann), "greet")
	if err != nil || labelVersion(head.Labels, "prod") != "3" {
		t.Errorf("the label has moved already: %v, %v", head.Labels, err)
	}
	move.Set("compared", "true")
	page = s.done(ann, "/template/label", move)
	if !strings.Contains(page, "prod now points to version 1 (was 3).") {
		t.Errorf("the label is not moved: %s", page)
	}
	if r := s.call(ann, "GET", "/template/compare?name=greet&a=1&b=99", nil); r.Code != http.StatusNotFound {
		t.Errorf("a version that does not exist answers %d", r.Code)
	}
}

func TestVersionsThatNeverRanSideBySideGetNoVerdict(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	s.publishes(ann, "Hello.")
	s.publishes(ann, "Hello, {name}!")
	var worse, better []int
	for i := range 60 {
		worse, better = append(worse, 50+i%10), append(better, 70+i%10)
	}
	day := time.Now().UTC().Truncate(24 * time.Hour)
	s.usesVersion(ann, 1, day.Add(-50*time.Hour), worse...)
	s.usesVersion(ann, 2, day.Add(-20*time.Hour), better...)

	const page = "/template/compare?name=greet&a=1&b=2"
	body := s.call(ann, "GET", page, nil).Body.String()
	says := fmt.Sprintf("Version 1 ran on %s. Version 2 ran on %s. "+
		"They never ran side by side; to know, give part of the traffic the new label.",
		day.Add(-50*time.Hour).Format("Jan 2"), day.Add(-20*time.Hour).Format("Jan 2"))
	if !strings.Contains(body, says) {
		t.Errorf("the page does not say %q: %s", says, body[strings.Index(body, "What the calls say"):])
	}
	want := []string{
		"Metric Version 1 Version 2 Difference 95% interval Is version 2 better?",
		"helpful 60 and 60 scores 54.5 74.5 +20.0 –",
		"Errors 0.0% 0.0% 0.0% –",
		"Cost per 1,000 calls $0.022 $0.022 $0.00 –",
		"Latency p50 1.00 s 1.00 s 0 –",
		"Latency p95 1.08 s 1.08 s 0 –",
		"Tokens per call 112 112 0 –",
	}
	if got := s.verdicts(ann, page); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("it compares\n%s", strings.Join(got, "\n"))
	}
}

// answered is a call of an experiment with the template greet.
func answered(row string, version int, text string) wire.Event {
	return newEvent(wire.KindRequest, fmt.Sprintf(`{"function_name":"f","kwargs":{"model":"m"},"request_response":{
		"choices":[{"message":{"role":"assistant","content":%q}}]},"request_start_time":1,"request_end_time":2,
		"prompt_id":"greet","prompt_version":%d,"metadata":{"experiment":"words","row":%q}}`, text, version, row))
}

func TestAnExperimentIsOfItsProjectAndUpToDate(t *testing.T) {
	s := openSite(t)
	const ann, mallory = "ann@example.com", "mallory@example.com"
	for _, who := range []string{ann, mallory} {
		for _, text := range []string{"Hello", "Good day"} {
			publish := wire.Publish{
				PublishedName:    wire.PublishedName{Name: "greet"},
				PublishedVersion: wire.PublishedVersion{Blueprint: json.RawMessage(`{"content":"` + text + `"}`)},
			}
			if _, err := s.drafts.Publish(t.Context(), s.as(who), publish); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.record(ann, answered("one", 1, "secret before"), answered("one", 2, "secret after"))
	s.record(mallory, answered("one", 1, "of mallory"))
	page := func(who, params string) string {
		t.Helper()
		got := s.call(who, "GET", "/template/experiment?name=greet"+params, nil)
		if got.Code != http.StatusOK {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
		return got.Body.String()
	}

	if text := page(ann, ""); !strings.Contains(text, "<mark>before</mark>") || strings.Contains(text, "mallory") {
		t.Errorf("ann sees %s", text)
	}
	if text := page(mallory, "&experiment=words"); !strings.Contains(text, "of mallory") ||
		strings.Contains(text, "secret") {
		t.Errorf("mallory sees %s", text)
	}
	s.record(ann, answered("two", 1, "same"), answered("two", 2, "same"))
	if text := page(ann, ""); !strings.Contains(text, "Row two") || !strings.Contains(text, "The same answer") {
		t.Errorf("with another row ann sees %s", text)
	}
	text := page(ann, "&a=2&b=1&from=1")
	if !strings.Contains(text, `rel="prev"`) || strings.Contains(text, "Row one") {
		t.Errorf("the second row of version 1: %s", text)
	}
	if text := page(ann, "&experiment=none"); !strings.Contains(text, "has no calls of this template") {
		t.Errorf("an experiment that is none: %s", text)
	}
	if got := s.call(ann, "GET", "/template/experiment?name=greet&a=x", nil); got.Code != http.StatusNotFound {
		t.Errorf("a version that is none: %d", got.Code)
	}
}
