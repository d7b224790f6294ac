package dashboard

import (
	"fmt"
	"net/http"
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
		return newEvent(wire.KindSpan, fmt.Sprintf(`{"resource":{},"scope":{},"span":{"traceId":%q,"spanId":"%016x",
			"parentSpanId":"%016x","name":%q,"startTimeUnixNano":"179531894378200000%d",
			"endTimeUnixNano":"1795318945782000000"}}`, testTrace, n, parent, name, n))
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
		span(1, 9, "the <root>"), span(4, 1, "second"), span(2, 1, "PromptLayer Run"), span(3, 2, "inner"),
		newEvent(wire.KindRequest, `{"function_name":"f","kwargs":{},"request_response":{},
			"request_start_time":1,"request_end_time":2,"span_id":"0000000000000002"}`),
	}
	s.record(ann, events...)
	events = events[2:]

	page := s.call(ann, "GET", "/traces/"+testTrace, nil)
	at := 0
	succeeded := func(indent int) string {
		return fmt.Sprintf(`<td class="wrap in%d"><span class="state good" title="succeeded"><span class="hidden">`+
			`succeeded</span></span> <a href="/requests/`, indent)
	}
	for _, want := range []string{
		`<title>failed · the &lt;root&gt; · Trace`, `<h1>the &lt;root&gt; <span class="bad">1 of 6 spans failed`,
		testTrace,
		succeeded(0) + events[0].RequestID + `">the &lt;root&gt;</a>`, ">&#43;0 ms<",
		succeeded(1) + events[2].RequestID + `">PromptLayer Run</a>`,
		`<a href="/requests/` + events[4].RequestID + `">Request</a>`,
		succeeded(2) + events[3].RequestID + `">inner</a>`,
		`<tr class="failed"`, `title="failed"`, `<a href="/requests/` + failed.RequestID + `">chat</a>`,
		"<td>llm</td>", ">&#43;50 ms<", ">1.00 s<", ">–<", ">–<", ">1\u202f200 + 30<", ">$0.0033<",
		succeeded(1) + events[1].RequestID + `">second</a>`,
		"<tfoot><tr><td>6 spans", ">2.00 s<", ">1\u202f200 + 30<", ">$0.0033<",
	} {
		found := strings.Index(page.Body.String()[at:], want)
		if page.Code != http.StatusOK || found < 0 {
			t.Fatalf("%d, the page has no %s behind %d:\n%s", page.Code, want, at, page.Body)
		}
		at += found
	}

	record := s.call(ann, "GET", "/requests/"+events[4].RequestID, nil).Body.String()
	if !strings.Contains(record, `href="/traces/`+testTrace+`"`) {
		t.Errorf("the request does not lead to its trace:\n%s", record)
	}
	for who, path := range map[string]string{mallory: "/traces/" + testTrace, ann: "/traces/no-trace"} {
		if page := s.call(who, "GET", path, nil); page.Code != http.StatusNotFound {
			t.Errorf("%s for %s: %d", path, who, page.Code)
		}
	}
}
