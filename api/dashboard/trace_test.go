package dashboard

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"promptspool/api/wire"
)

const testTrace = "5b8efff798038103d269b633813fc60c"

// A trace's spans are a tree, and one whose call was logged leads to that request.
func TestThePageOfATraceIsATree(t *testing.T) {
	s := openSite(t)
	const ann, mallory = "ann@example.com", "mallory@example.com" // of another account
	span := func(n, parent int, name string) wire.Event {
		above := ""
		if parent > 0 {
			above = fmt.Sprintf("%016x", parent)
		}

		return newEvent(wire.KindSpan, fmt.Sprintf(`{"resource":{},"scope":{},"span":{"traceId":%q,"spanId":"%016x",
			"parentSpanId":%q,"name":%q,"startTimeUnixNano":"179531894378200000%d",
			"endTimeUnixNano":"1795318945782000000"}}`, testTrace, n, above, name, n))
	}
	call := func(n int, status, usage string) wire.Event {
		const body = `{"resource":{},"scope":{},"span":{"traceId":%q,"name":"chat",
			"spanId":"%016x","parentSpanId":"0000000000000002","startTimeUnixNano":"179531894383200000%d",
			"endTimeUnixNano":"179531894483200000%d","status":%s,"attributes":[%s
			{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},
			{"key":"gen_ai.request.model","value":{"stringValue":"gpt-4o"}}]}}`

		return newEvent(wire.KindSpan, fmt.Sprintf(body, testTrace, n, n, n, status, usage))
	}
	failed := call(5, `{"code":2,"message":"Overloaded"}`, "")
	answered := call(6, `{}`, `{"key":"gen_ai.usage.input_tokens","value":{"intValue":"1200"}},
		{"key":"gen_ai.usage.output_tokens","value":{"intValue":"30"}},`)
	events := []wire.Event{
		failed, answered,
		span(1, 0, "the <root>"), span(4, 1, "second"), span(2, 1, "PromptLayer Run"), span(3, 2, "inner"),
		newEvent(wire.KindRequest, `{"function_name":"f","kwargs":{},"request_response":{},
			"request_start_time":1,"request_end_time":2,"span_id":"0000000000000002"}`),
	}
	s.record(ann, events...)
	events = events[2:]

	lost := newEvent(wire.KindSpan, fmt.Sprintf(`{"resource":{},"scope":{},"span":{"traceId":%q,
		"spanId":"0000000000000007","parentSpanId":"00000000000000ff","name":"lost",
		"startTimeUnixNano":"1795318944000000000"}}`, testTrace))
	s.record(ann, lost)

	list := s.call(ann, "GET", "/traces", nil).Body.String()
	want := `title="` + testTrace + `">the &lt;root&gt;</a> <br><small class="soft">5b8efff7</small>`
	if !strings.Contains(list, want) {
		t.Errorf("the list of traces has no %s:\n%s", want, list)
	}

	from := "/traces/" + testTrace + "?list=filter%3Derrors%253A%253E0%26n%3D1%26of%3D1%26row%3D0"
	opened := s.links(ann, "/traces?filter=errors:>0", `href="([^"]*)" title="`+testTrace)
	if len(opened) != 1 || opened[0] != from {
		t.Errorf("the row leads to %q, want %s", opened, from)
	}
	back := s.links(ann, from+"&span=0000000000000004", `href="([^"]*)" data-key="u"`)
	if !slices.Equal(back, []string{"/traces?filter=errors%3A%3E0"}) {
		t.Errorf("the trace leads back to %q", back)
	}
	to := s.links(ann, from, `href="([^"]*)" rel="nofollow" dir="auto" title="second"`)
	if !strings.HasPrefix(to[0], from) {
		t.Errorf("a span forgets the list: %s", to)
	}

	// The first failure is selected, and shown beside the tree.
	in := strings.Join(strings.Fields(s.call(ann, "GET", "/traces/"+testTrace, nil).Body.String()), " ")
	at := 0
	link := func(e wire.Event) string { return "/traces/" + testTrace + "?span=" + e.RequestID }
	for _, want := range []string{
		`<title>1 error · the &lt;root&gt; · Trace`,
		`<h1><span class="bad">1 error</span> · the &lt;root&gt;</h1>`,
		">2.00 s<", ">7 spans<", ">3 calls</a>", ">1,200 → 30<", ">$0.0033<",
		link(failed) + `" rel="nofollow">1 error`,
		testTrace,
		`aria-level="1" aria-expanded="true"`, link(events[0]), "the &lt;root&gt;</a>", "?shut=",
		`title="1 error below"`,
		`<rect x="0.0%" width="100.0%"`, ">2.00 s<", ">1,200 → 30<", ">$0.0033<",
		`aria-level="2"`, link(events[2]), ">PromptLayer Run</a>",
		`aria-level="3" aria-selected="false"`, link(events[3]), ">inner</a>",
		`aria-level="3" aria-selected="true" class="message-square failed"`, link(failed), `title="failed"`,
		">1.00 s<",
		link(answered), `<rect x="2.5%" width="50.0%"`,
		">lost</a>", ">no parent<",
	} {
		found := strings.Index(in[at:], want)
		if found < 0 {
			t.Fatalf("the page has no %s behind %d:\n%s", want, at, in)
		}
		at += found
	}
	record := `href="/requests/` + failed.RequestID + `"`
	if !strings.Contains(in[at:], ">Overloaded<") || !strings.Contains(in[at:], record) {
		t.Errorf("the failed span is not shown beside the tree:\n%s", in[at:])
	}

	path := "/traces/" + testTrace + "?shut=0000000000000001&span=0000000000000004"
	folded := s.call(ann, "GET", path, nil).Body.String()
	if strings.Contains(folded, ">inner</a>") || !strings.Contains(folded, `title="6 spans below">6<`) {
		t.Errorf("the root is not folded:\n%s", folded)
	}

	// A part of a name finds spans, and the bars may have the time of one of them.
	for query, wants := range map[string][]string{
		"?find=CHAT":                       {"1 of 2 matches", "found", `title="Next (n)"`},
		"?find=chat&span=0000000000000006": {"2 of 2 matches"},
		"?find=nothing":                    {"No span matches", `aria-selected="true" class="message-square failed"`},
		"":                                 {"1 of 1 error<", "Zoom to span"},
		"?zoom=" + failed.RequestID:        {"Whole trace", "<span>50 ms</span><span>+1.00 s</span>"},

		"?span=" + lost.RequestID + "&zoom=" + failed.RequestID: {"Zoom to span", `<rect x="0.0%" width="100.0%"`},
	} {
		page := s.call(ann, "GET", "/traces/"+testTrace+query, nil).Body.String()
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s has no %s:\n%s", query, want, page)
			}
		}
	}

	// The trace and the selected span are scored by one form.
	view := "span=" + failed.RequestID
	for of, score := range map[string]string{"": "90", failed.RequestID: "10"} {
		form := s.form(ann, "score", score, "name", "good", "of", of, "view", view)
		to := s.call(ann, "POST", "/traces/"+testTrace+"/score", form).Header().Get("Location")
		if to != "/traces/"+testTrace+"?"+view+"&done=scored" {
			t.Errorf("the score of %q leads to %q", of, to)
		}
	}
	scored := s.call(ann, "GET", "/traces/"+testTrace+"?"+view, nil).Body.String()
	if !strings.Contains(scored, `good</span> <b>90</b>`) ||
		!strings.Contains(scored, `</meter> <b dir="auto">10</b>`) {
		t.Errorf("the scores are not shown:\n%s", scored)
	}

	record = s.call(ann, "GET", "/requests/"+events[4].RequestID, nil).Body.String()
	if !strings.Contains(record, `href="`+link(events[2])+`"`) {
		t.Errorf("the request does not lead to its trace:\n%s", record)
	}
	for who, path := range map[string]string{mallory: "/traces/" + testTrace, ann: "/traces/no-trace"} {
		if page := s.call(who, "GET", path, nil); page.Code != http.StatusNotFound {
			t.Errorf("%s for %s: %d", path, who, page.Code)
		}
	}
}
