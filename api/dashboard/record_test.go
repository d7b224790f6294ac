package dashboard

import (
	"fmt"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// The page of a span that is no call has nothing of calls: no cost, and no program that logs it again.
func TestThePageOfASpanThatIsNoCallIsOfASpan(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	span := func(operation string) string {
		return `{"resource":{},"scope":{},"span":{"traceId":"5b8efff798038103d269b633813fc60c",
			"spanId":"eee19b7ec3c1b174","name":"look_up","attributes":[
			{"key":"gen_ai.operation.name","value":{"stringValue":"` + operation + `"}},
			{"key":"user.id","value":{"stringValue":"u1"}},{"key":"tag.tags","value":{"stringValue":"alpha"}}]}}`
	}

	for operation, isSpan := range map[string]bool{"execute_tool": true, "chat": false} {
		e := newEvent(wire.KindSpan, span(operation))
		s.record(ann, e)

		page := s.call(ann, "GET", "/requests/"+e.RequestID, nil)
		body := page.Body.String()
		if page.Code != 200 || !strings.Contains(body, `<h1><span class="good">succeeded</span> · `) ||
			!strings.Contains(body, "5b8efff798038103d269b633813fc60c") ||
			strings.Contains(body, "look_<wbr>up</h1>") != isSpan ||
			strings.Contains(body, "<dt>Kind</dt>") != isSpan ||
			strings.Contains(body, "<dt>Cost</dt>") == isSpan || strings.Contains(body, "Log call as curl") == isSpan {
			t.Errorf("the page of %s: %d %s", operation, page.Code, body)
		}

		// A list of requests does not have it.
		if strings.Contains(body, ">alpha</a>") == isSpan || strings.Contains(body, ">u1</a>") == isSpan {
			t.Errorf("the page of %s: tags and metadata lead to a list: %t", operation, !isSpan)
		}
	}
}

// A call that an SDK both traces and logs has two pages, that of its request and that of its span.
// Each leads to the other.
func TestThePagesOfALoggedCallAndItsSpanLeadToEachOther(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	request := newEvent(wire.KindRequest, `{"function_name":"f","kwargs":{},"request_response":{},
		"request_start_time":1,"request_end_time":2,"span_id":"eee19b7ec3c1b174",
		"session_id":"chat-17","user_id":42,"environment":"test","time_to_first_token_ms":250}`)
	span := newEvent(wire.KindSpan, `{"resource":{},"scope":{},"span":{"traceId":"5b8efff798038103d269b633813fc60c",
		"spanId":"eee19b7ec3c1b174","name":"PromptLayer Run"}}`)
	s.record(ann, request, span)

	for page, wants := range map[string][]string{
		request.RequestID: {
			`<a href="/requests/` + span.RequestID + `">PromptLayer Run</a>`, "5b8efff798038103d269b633813fc60c",
			`href="/sessions/chat-17">chat-17</a>`, `filter=user%3A42">42</a>`, `filter=environment%3Atest">test</a>`,
			"after 250 ms",
		},
		span.RequestID: {`<a href="/requests/` + request.RequestID + `">request</a>`},
	} {
		body := s.call(ann, "GET", "/requests/"+page, nil).Body.String()
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("the page of %s has no %s:\n%s", page, want, body)
			}
		}
	}
}

func TestACostThatWasReportedIsShownBesideThatOfTheTable(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	e := newEvent(wire.KindSpan, `{"resource":{},"scope":{},"span":{"traceId":"5b8efff798038103d269b633813fc60c",
		"spanId":"eee19b7ec3c1b174","name":"claude_code.api_request","startTimeUnixNano":"1767225600000000000",
		"attributes":{"model":"gpt-5.6-sol",
		"input_tokens":1000,"output_tokens":100,"cost_usd":"0.5"}}}`)
	s.record(ann, e)

	body := s.call(ann, "GET", "/requests/"+e.RequestID, nil).Body.String()
	if want := "<dd>$0.50 as reported, $0.0080 by the table of prices</dd>"; !strings.Contains(body, want) {
		t.Errorf("the page has no %s:\n%s", want, body)
	}
}

func TestTheTagsAndMetadataOfARecordAreFoldedOverTwenty(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	for n, folds := range map[int]bool{20: false, 21: true, 100: true} {
		var tags, metadata []string
		for i := range n {
			tags = append(tags, fmt.Sprintf(`"tag %03d"`, i))
			metadata = append(metadata, fmt.Sprintf(`"key %03d":"value %03d"`, i, i))
		}
		e := newEvent(wire.KindRequest, `{"function_name":"f","kwargs":{},"request_response":{},"group_id":"g",
			"tags":[`+strings.Join(tags, ",")+`],"metadata":{`+strings.Join(metadata, ",")+`}}`)
		s.record(ann, e)

		page := s.call(ann, "GET", "/requests/"+e.RequestID, nil).Body.String()
		_, section, _ := strings.Cut(page, "<h2>Tags and metadata</h2>")
		section, _, _ = strings.Cut(section, "</section>")
		for _, what := range []string{"tag", "value"} {
			shown, folded, _ := strings.Cut(section, fmt.Sprintf("<summary>Show all %d %ss</summary>", n, what))
			if (folded != "") != folds || strings.Count(section, ">"+what+" ") != n ||
				!strings.Contains(shown, ">"+what+" 019</a>") || strings.Contains(shown, ">"+what+" 020</a>") {
				t.Errorf("with %d, this is shown of each %s:\n%s", n, what, section)
			}
		}
		if strings.Count(section, "<dt>Group</dt>") != 1 ||
			strings.Count(section, "<details") != strings.Count(section, "</details>") {
			t.Errorf("with %d, the section is\n%s", n, section)
		}
	}
}

// A batch of events may bring it; no filter finds it.
func TestMetadataWithAnEmptyKeyIsShown(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	e := newEvent(wire.KindRequest, `{"function_name":"f","kwargs":{},"request_response":{},"metadata":{"":"kept"}}`)
	s.record(ann, e)

	for _, path := range []string{"/requests/" + e.RequestID, "/requests", "/"} {
		if page := s.call(ann, "GET", path, nil); page.Code != 200 {
			t.Errorf("%s: %d %.300s", path, page.Code, page.Body)
		}
	}
	page := s.call(ann, "GET", "/requests/"+e.RequestID, nil).Body.String()
	if !strings.Contains(page, `<span dir="auto">kept</span>`) {
		t.Errorf("the value is not shown:\n%s", page)
	}
}

func TestThePageOfARequestSaysWhatWasDropped(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	e := newEvent(wire.KindRequest, `{"function_name":"f","kwargs":{},"request_response":{},
		"tags":["`+strings.Repeat(`t","`, 299)+`t"],"metadata":{"user_id":"u"}}`)
	s.record(ann, e)

	page := s.call(ann, "GET", "/requests/"+e.RequestID, nil).Body.String()
	for _, want := range []string{
		"tags has more than 256 entries: 44 left out.",
		`<a href="/requests/` + e.RequestID + `/raw">raw record</a> has all of them`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// Calls are alike if they failed: those that succeeded in spite of an error are none of them.
func TestTheCallsThatFailedAlikeAreFailures(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	call := func(members, response string) wire.Event {
		return newEvent(wire.KindRequest, `{"function_name":"f",`+members+`"kwargs":{},"request_response":`+response+`,
			"request_start_time":1,"request_end_time":2}`)
	}
	const broken = `{"error":{"message":"Overloaded","type":"overloaded_error"}}`
	failed, untyped := call("", broken), call("", `{"error":"Overloaded"}`)
	succeeded, answered := call(`"status":"SUCCESS",`, broken), call("", `"Hello"`)
	s.record(ann, failed, untyped, succeeded, answered, call("", broken))

	for e, want := range map[*wire.Event]string{
		&failed:    "1 other call failed like this",
		&untyped:   "2 other calls failed like this",
		&succeeded: "",
		&answered:  "",
	} {
		body := s.call(ann, "GET", "/requests/"+e.RequestID, nil).Body.String()
		isAlike, leads := strings.Contains(body, "failed like this"), strings.Contains(body, "status%3AERROR")
		if isAlike != (want != "") || !strings.Contains(body, want) || isAlike != leads {
			t.Errorf("the page of %s does not say %q of calls that are alike: %s", e.Body, want, body)
		}
	}
}
