package dashboard

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"promptspool/api/calls"
	"promptspool/api/wire"
	"promptspool/metrics/cputime"
)

// The page of a span that is no call has nothing of calls: no cost, and no program that logs it again.
func TestThePageOfASpanThatIsNoCallIsOfASpan(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	id := wire.Identity{Account: s.signed[ann].User.AccountID, KeyID: "k", Scope: wire.ScopeFull, Verified: true}
	span := func(operation string) string {
		return `{"resource":{},"scope":{},"span":{"traceId":"5b8efff798038103d269b633813fc60c",
			"spanId":"eee19b7ec3c1b174","name":"look_up","attributes":[
			{"key":"gen_ai.operation.name","value":{"stringValue":"` + operation + `"}},
			{"key":"user.id","value":{"stringValue":"u1"}},{"key":"tag.tags","value":{"stringValue":"alpha"}}]}}`
	}

	for operation, isSpan := range map[string]bool{"execute_tool": true, "chat": false} {
		e := wire.Event{ID: wire.NewID(), Kind: wire.KindSpan, RequestID: wire.NewID(), AcceptedAt: time.Now().UTC()}
		e.Body = json.RawMessage(span(operation))
		if _, err := s.records.Record(t.Context(), id, []wire.Event{e}); err != nil {
			t.Fatal(err)
		}

		page := s.call(ann, "GET", "/requests/"+e.RequestID, nil)
		body := page.Body.String()
		if page.Code != 200 || !strings.Contains(body, `">succeeded</span></h1>`) ||
			!strings.Contains(body, "5b8efff798038103d269b633813fc60c") ||
			strings.Contains(body, "<h1>look_up ") != isSpan || strings.Contains(body, "<dt>Kind</dt>") != isSpan ||
			strings.Contains(body, "<dt>Cost</dt>") == isSpan || strings.Contains(body, "cURL") == isSpan {
			t.Errorf("the page of %s: %d %s", operation, page.Code, body)
		}

		// A list of requests does not have it.
		if strings.Contains(body, ">alpha</a>") == isSpan || strings.Contains(body, ">u1</a>") == isSpan {
			t.Errorf("the page of %s: tags and metadata lead to a list: %t", operation, !isSpan)
		}
	}
}

// newEvent returns the event of a record of its own.
func newEvent(kind wire.Kind, body string) wire.Event {
	return wire.Event{
		ID: wire.NewID(), Kind: kind, RequestID: wire.NewID(), AcceptedAt: time.Now().UTC(),
		Body: json.RawMessage(body),
	}
}

// A call that an SDK both traces and logs has two pages, that of its request and that of its span.
// Each leads to the other.
func TestThePagesOfALoggedCallAndItsSpanLeadToEachOther(t *testing.T) {
	s := openSite(t)
	const ann = "ann@example.com"
	id := wire.Identity{Account: s.signed[ann].User.AccountID, KeyID: "k", Scope: wire.ScopeFull, Verified: true}
	request := newEvent(wire.KindRequest, `{"function_name":"f","kwargs":{},"request_response":{},
		"request_start_time":1,"request_end_time":2,"span_id":"eee19b7ec3c1b174"}`)
	span := newEvent(wire.KindSpan, `{"resource":{},"scope":{},"span":{"traceId":"5b8efff798038103d269b633813fc60c",
		"spanId":"eee19b7ec3c1b174","name":"PromptLayer Run"}}`)
	if _, err := s.records.Record(t.Context(), id, []wire.Event{request, span}); err != nil {
		t.Fatal(err)
	}

	for page, wants := range map[string][]string{
		request.RequestID: {
			`<a href="/requests/` + span.RequestID + `">PromptLayer Run</a>`, "5b8efff798038103d269b633813fc60c",
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

// manyVariables returns an object of n variables with values of this length.
func manyVariables(n, length int) json.RawMessage {
	values := map[string]string{}
	for i := range n {
		values["v"+strconv.Itoa(i)] = strings.Repeat("v", length-7) + strconv.Itoa(1_000_000+i)
	}
	return encoded(values)
}

func TestVariablesAreMarkedInProportionToTheText(t *testing.T) {
	marked := func(variables json.RawMessage, texts []string) (n int) {
		s := newTexts(variables)
		for _, text := range texts {
			n += len(s.marks(text))
		}
		return n
	}

	if n := len(newTexts(manyVariables(1000, 10)).values); n != 100 {
		t.Errorf("%d of 1000 values are searched for, want 100", n)
	}
	long := strings.Repeat("v", (4<<10)-7) + "1000000"
	if n := marked(manyVariables(1, 4<<10), []string{"See " + long}); n != 1 {
		t.Errorf("a value of 4 KiB has %d marks, want 1", n)
	}
	if n := marked(manyVariables(1, 4<<10), []string{long + "\n"}); n != 0 {
		t.Errorf("a value that is all of the text has %d marks", n)
	}
	if n := marked(manyVariables(1, 4<<10+1), []string{strings.Repeat("v", (4<<10)-6) + "1000000"}); n != 0 {
		t.Errorf("a value of more than 4 KiB has %d marks", n)
	}

	// Each value is found at every place of each text, or at none but the first.
	variables := manyVariables(100_000, 10)
	texts := make([]string, 4)
	for i := range texts {
		texts[i] = strings.Repeat("vvv1000000.", 200) + strings.Repeat("vvv10000", 2000)[:13_800]
	}
	n := 0
	took := cputime.Of(func() { n = marked(variables, texts) })
	if n == 0 || took > 5*time.Second { // a slow search took 13 s without the race detector
		t.Errorf("%d marks after %v of processor time", n, took)
	}
}

func TestAPageShowsABoundedNumberOfPieces(t *testing.T) {
	many := make([]calls.Message, 3000)
	for i := range many {
		many[i] = calls.Message{Role: "user", Parts: []calls.Part{{Kind: "text"}}}
	}
	parts := []calls.Message{{Parts: make([]calls.Part, 5000), ToolCalls: make([]calls.ToolCall, 5000)}}

	for name, tt := range map[string]struct {
		messages      []calls.Message
		shown, hidden int
	}{
		"few messages":  {many[:10], 10, 0},
		"many messages": {many, 500, 2500},
		"many parts":    {parts, 1, 9001},
	} {
		s := newTexts(nil)
		shown := s.messages("input", tt.messages)
		if len(shown) != tt.shown || s.hidden != tt.hidden {
			t.Errorf("%s: %d are shown and %d are hidden, want %d and %d",
				name, len(shown), s.hidden, tt.shown, tt.hidden)
		}
	}
}

func TestAPageOfVersionsThatDoesNotExistIsTheLastOne(t *testing.T) {
	for latest, want := range map[int]string{0: "[]", 1: "[1]", 30: "[30 29", 31: "[1]", 61: "[1]"} {
		for _, page := range []string{
			"4", "614891469123651721", "9223372036854775807", "99999999999999999999",
		} {
			v := templateView{templateHead: templateHead{
				Template: wire.Template{Versions: make([]wire.Stamp, latest)},
			}}
			v.listVersions(page)
			if got := fmt.Sprint(v.Choices); !strings.HasPrefix(got, want) || v.Older != "" {
				t.Errorf("page %s of %d versions shows %s, then %q; want %s",
					page, latest, got, v.Older, want)
			}
		}
	}
}
