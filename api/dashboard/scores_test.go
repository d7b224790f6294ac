package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
)

// What does not fit a definition is counted on its page, which leads to the calls. People who score by hand
// type any kind of value.
func TestAValueThatDoesNotFitIsFound(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	names := map[string]string{} // of calls
	for name, values := range map[string][]string{
		"faith": {"0", "0.5", "1", "-0.1", "1.5", "true", "good"},
		"ok":    {"true", "false", "1", "yes"},
		"tone":  {"polite", "rude", "5", "loud * or so", "true"},
		"note":  {"any", "more", "7", "false"},
		"free":  {"17", "85", "true", "text"}, // without a definition
	} {
		for _, value := range values {
			call := s.logs(ann, "u", 1)[0]
			names[call] = value
			form := s.form(ann, "name", name, "score", value)
			if got := s.call(ann, "POST", "/requests/"+call+"/score", form); got.Code != http.StatusSeeOther {
				t.Fatalf("%s %s: %d %s", name, value, got.Code, got.Body)
			}
		}
	}
	for _, d := range []wire.ScoreDefinition{
		{Name: "faith", Kind: "number", Min: new(0.0), Max: new(1.0)},
		{Name: "ok", Kind: "boolean"},
		{Name: "tone", Kind: "category", Categories: []string{"polite", "rude", "5"}},
		{Name: "note", Kind: "category"},
	} {
		if err := s.store.DefineScore(t.Context(), s.as(ann), d); err != nil {
			t.Fatal(err)
		}
	}

	for name, want := range map[string][]string{
		"faith": {"-0.1", "1.5", "good", "true"},
		"ok":    {"1", "yes"},
		"tone":  {"5", "loud * or so", "true"}, // 5 is a number
		"note":  {"7", "false"},
		"free":  {"text", "true"},
	} {
		var found []string
		to := s.links(ann, "/scores/"+name, `<dd><a class="bad" href="([^"]*)">`+fmt.Sprint(len(want))+`</a>`)
		for _, address := range s.rows(ann, append(to, "/scores")[0]) {
			found = append(found, names[recordOf(address)])
		}
		slices.Sort(found)
		if found = slices.Compact(found); !slices.Equal(found, want) {
			t.Errorf("%s: %q leads to %q, want %q", name, to, found, want)
		}
	}

	// Each part of the histogram leads to its calls, and those with the worst values are listed, to be reviewed.
	for label, want := range map[string][]string{
		"0 – 0.1": {"0"}, "0.5 – 0.6": {"0.5"}, "0.9 – 1": {"true", "1"}, "0.1 – 0.2": nil,
	} {
		var found []string
		for _, part := range s.links(ann, "/scores/faith", `<a href="([^"]*)">`+label+`</a>`) {
			for _, call := range s.rows(ann, part) {
				found = append(found, names[recordOf(call)])
			}
		}
		if !slices.Equal(found, want) {
			t.Errorf("from %s, there are %q, want %q", label, found, want)
		}
	}
	for name, want := range map[string]string{"faith": "-0.1", "ok": "false"} {
		calls := s.rows(ann, "/scores/"+name)
		if got := names[recordOf(calls[0])]; got != want {
			t.Errorf("the worst of %s is %s, want %s", name, got, want)
		}
		if to := s.beside(ann, calls[0], "next"); recordOf(to) != recordOf(calls[1]) {
			t.Errorf("after the worst of %s comes %s", name, to)
		}
		review := s.links(ann, "/scores/"+name, `href="(/review[^"]*)" data-key="r"`)
		s.reviews(ann, review[0]).sees("done", "All calls are scored")
	}
	if s.rows(ann, "/scores/tone") != nil {
		t.Error("categories have an order")
	}
}

// An editor says what a score is, and what people are to review; others read it.
func TestScoresAreDefinedOnTheirPage(t *testing.T) {
	s := openSite(t)
	const ann, eve, vic = "ann@example.com", "eve@example.com", "vic@example.com"
	sends := func(path string, values url.Values, wants ...string) {
		t.Helper()
		form := s.form(eve)
		for name := range values {
			form[name] = values[name]
		}
		got := s.call(eve, "POST", path, form)
		answer := fmt.Sprint(got.Code, " ", got.Header().Get("Location"), " ", got.Body)
		for _, want := range wants {
			if !strings.Contains(answer, want) {
				t.Errorf("POST %s %v: %.2000s, want %s", path, values, answer, want)
			}
		}
	}
	shows := func(email, path string, wants ...string) string {
		t.Helper()
		got := s.call(email, "GET", path, nil)
		for _, want := range wants {
			if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), want) {
				t.Errorf("%s %s: %d %s, want %s", email, path, got.Code, got.Body, want)
			}
		}
		return got.Body.String()
	}

	shows(ann, "/scores", "No call was scored", "No queues yet")
	e := newEvent(wire.KindRequest, `{"function_name":"f","kwargs":{},"request_response":{}}`)
	s.record(ann, e)
	score := newEvent(wire.KindScore, `{"request_id":"`+e.RequestID+`","name":"correct","score":80}`)
	score.RequestID = e.RequestID
	s.record(ann, score)

	sends("/scores", url.Values{
		"name": {"rag/tone"}, "kind": {"category"}, "categories": {"polite\r\n rude \r\n"}, "min": {"1"},
		"better": {"higher"}, "description": {"how it <sounds>"},
	}, "303 /scores/rag%2Ftone?done=defined")
	sends("/scores", url.Values{"name": {"faith"}, "kind": {"number"}, "min": {"0"}, "max": {"1"}}, "303 ")
	sends("/scores", url.Values{"name": {"ok"}, "kind": {"number"}, "min": {"2"}, "max": {"1"}},
		"422 ", "must not be greater than max", `value="ok"`)
	sends("/scores", url.Values{"name": {"ok"}, "kind": {"number"}, "min": {"few"}}, "422 ", "must be a number")
	sends("/scores", url.Values{"name": {"ok"}, "kind": {"number"}, "max": {"NaN"}}, "422 ", "must be a number")
	for email, forms := range map[string]bool{eve: true, vic: false} {
		page := shows(email, "/scores", "correct", "one of: polite, rude", "how it &lt;sounds&gt;",
			"a number from 0 to 1")
		page += shows(email, "/scores/rag%2Ftone", "<h1>rag/tone</h1>", "polite")
		if strings.Contains(page, "Save the definition") != forms {
			t.Errorf("%s: the form of a definition is shown: %t", email, !forms)
		}
	}
	sends("/requests/"+e.RequestID+"/score", url.Values{"name": {"faith"}, "score": {"80"}},
		"422 ", "which expects a number from 0 to 1")
	for author, tone := range map[string]string{"ann": "polite", "a judge": "rude"} {
		score = newEvent(wire.KindScore, fmt.Sprintf(`{"name":"rag/tone","value":%q,"author":%q}`, tone, author))
		score.RequestID = e.RequestID
		s.record(ann, score)
	}
	page := textOf(shows(vic, "/scores/rag%2Ftone", "Agreement", "<td class=\"wrap name\" dir=\"auto\">a judge</td>"))
	if row := strings.Join(strings.Fields(page), " "); !strings.Contains(row, "a judge ann 1 0.0% 0.00 Means") {
		t.Errorf("the authors agree like this: %s", row)
	}
	if got := s.call(ann, "GET", "/scores/other", nil); got.Code != http.StatusNotFound {
		t.Errorf("a score that does not exist: %d", got.Code)
	}

	sends("/queues", url.Values{
		"name": {"rude ones"}, "filter": {"score:<50"}, "scores": {"faith", "rag/tone"}, "reviewers": {"2"},
	}, "303 /scores?done=queued")
	sends("/queues", url.Values{"name": {"bad"}, "filter": {"latency:x"}, "scores": {"faith"}}, "422 ",
		`<input name="filter" aria-invalid="true"`, `id="fault" role="alert"><code>latency:<mark>x</mark></code>`)
	sends("/queues", url.Values{"name": {"bad"}}, "422 ", "scores", `value="bad"`)
	shows(vic, "/scores", `href="/requests?filter=score%3a%3c50"`, "rude ones")
	shows(eve, "/scores?queue=rude+ones", `value="rude ones"`, `value="rag/tone" checked`,
		`href="/review/rude%20ones"`)

	sends("/scores/rag%2Ftone/remove", nil, "303 /scores?done=undefined")
	sends("/queues/rude%20ones/remove", nil, "303 /scores?done=unqueued")
	sends("/queues/rude%20ones/remove", nil, "404 ")
	if page := shows(eve, "/scores", "No queues yet"); strings.Contains(page, "one of: polite") {
		t.Error("what was removed is still there")
	}
	shows(ann, "/audit", "define score", "remove score definition", "save review queue", "remove review queue")
}

// A score that is given by hand is the person's, on every page: the app's own stands beside it. The history
// names both, the audit log has what was there, and undoing gives that back.
func TestAScoreByHandIsThePersons(t *testing.T) {
	s := openSite(t)
	const ann, eve = "ann@example.com", "eve@example.com"
	e := newEvent(wire.KindSpan, `{"resource":{},"scope":{},"span":{"traceId":"`+testTrace+`",
		"spanId":"eee19b7ec3c1b174","name":"chat","attributes":[
		{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},
		{"key":"session.id","value":{"stringValue":"s-17"}}]}}`)
	s.record(ann, e)
	for of, id := range map[string]string{
		"request_id": e.RequestID, "trace_id": testTrace, "session_id": "s-17",
	} {
		body, err := wire.ParseObject([]byte(`{"` + of + `":"` + id + `","name":"helpful","score":85}`))
		if err != nil {
			t.Fatal(err)
		}
		w, err := wire.DecodeScore(body)
		if err != nil {
			t.Fatal(err)
		}
		score := newEvent(wire.KindScore, `{"`+of+`":"`+id+`","name":"helpful","score":85}`)
		score.RequestID = w.RequestID
		s.record(ann, score)
	}
	ok := wire.ScoreDefinition{Name: "ok", Kind: "boolean"}
	if err := s.store.DefineScore(t.Context(), s.as(ann), ok); err != nil {
		t.Fatal(err)
	}

	record := "/requests/" + e.RequestID
	for page, of := range map[string]string{
		record: e.RequestID, "/traces/" + testTrace: "", "/sessions/s-17": "",
	} {
		app, own := "helpful 85 85 ×", " × ann@example.com · human"
		if strings.HasPrefix(page, "/traces/") {
			app, own = "helpful 85 ", " ann@example.com" // in the head of the page
		}
		for _, step := range []struct {
			form []string
			says []string // by the page
		}{
			{[]string{"name", "helpful", "score", "80"}, []string{app, "80" + own}},
			{[]string{"name", "helpful", "score", "good"}, []string{app, "good" + own}},
			{[]string{"name", "helpful", "score", "70"}, []string{app, "70" + own}},
			{[]string{"set", `{"name":"ok","author":"judge","value":false}`}, []string{"ok false" + own}},
			{[]string{"set", `{"name":"ok","value":true}`}, []string{"ok true" + own}},
			{[]string{"set", `{"name":"helpful","value":null}`}, []string{"helpful 70"}},
		} {
			form := s.form(ann, append(step.form, "of", of)...)
			shown := s.done(ann, page+"/score", form)
			for _, text := range step.says {
				if !strings.Contains(textOf(shown), text) {
					t.Errorf("%s %v: no %q in %s", page, step.form, text, textOf(shown))
				}
			}
		}
	}

	for email, given := range map[string]bool{ann: true, eve: false} { // the button of her own value
		body := s.call(email, "GET", record, nil).Body.String()
		if strings.Contains(body, `aria-pressed="true"`) != given {
			t.Errorf("%s has given ok: %t on %s", email, !given, body)
		}
	}
	s.done(eve, record+"/score", s.form(eve, "name", "helpful", "score", "60"))
	_, history, _ := strings.Cut(textOf(s.read(ann, record)), "Arrived ")
	for _, text := range []string{"score helpful none ", "score helpful 60 eve@example.com ", "score replaced since "} {
		if !strings.Contains(history, text) {
			t.Errorf("the history has no %q: %s", text, history)
		}
	}
	audit := textOf(s.read(ann, "/audit"))
	for _, text := range []string{
		"eve@example.com set score request " + e.RequestID + " helpful=60 by eve@example.com, was none",
		"ann@example.com set score a session helpful=80 by ann@example.com, was none",
		"session helpful=good by ann@example.com, was 80", "session helpful=70 by ann@example.com, was good",
		"set score trace " + testTrace + " ok=true by ann@example.com, was false",
		"set score request " + e.RequestID + " helpful=none by no author, was 85",
	} {
		if !strings.Contains(audit, text) {
			t.Errorf("the audit log has no %q: %s", text, audit)
		}
	}
}

// A boolean has one form on all pages, and a category no mean on any.
func TestABooleanHasOneForm(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	s.publishes(ann, "Hello.")
	s.publishes(ann, "Hello!")
	s.usesVersion(ann, 1, time.Now().Add(-50*time.Hour), 50, 60)
	s.usesVersion(ann, 2, time.Now().Add(-2*time.Hour), 50, 60)
	for i, page := range s.rows(ann, "/requests") {
		path, _, _ := strings.Cut(page, "?")
		for name, value := range map[string]string{"correct": fmt.Sprint(i != 0), "fault": "tone"} {
			s.done(ann, path+"/score", s.form(ann, "name", name, "score", value))
		}
	}

	for page, wants := range map[string][]string{
		"/":         {"correct 75 % true", "fault tone 100 %"},
		"/projects": {"correct 75 % true, fault tone 100 %, helpful 55.0"},
		"/template/compare?name=greet&a=1&b=2": {
			"correct 2 and 2 scores 100 % true 50 % true −50.0%"},
		"/template/statistics?name=greet&score=correct": {"100 % true · 2 scores", "50 % true · 2 scores"},
	} {
		body := s.read(ann, page)
		for _, want := range wants {
			if !strings.Contains(textOf(body), want) {
				t.Errorf("%s has no %q: %s", page, want, textOf(body))
			}
		}
		if strings.Contains(body, "NaN") {
			t.Errorf("%s has something that is no number", page)
		}
	}
}
