//go:build linux

package cost

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"

	"promptspool/api/wire"
)

// pageAttacks are attacks by what people ask for on a page: to sort, complete, save and delete
// many requests of one kind.
var pageAttacks = []attack{
	{name: "page: a list in another order", n: 200, send: func(p target, n int) int {
		tag, size := manyTagged(p, n)
		for _, field := range wire.SortFields {
			query := url.Values{"filter": {"tag:" + tag}, "sort": {field}, "col": {"input", "output", "metadata"}}
			p.call("GET", "/requests?"+query.Encode(), "")
		}
		p.call("POST", "/api/public/v2/requests/search",
			`{"filter":"tag:`+tag+`","sort_by":"input_tokens","sort_order":"asc","per_page":1000}`)
		return size
	}},
	{name: "page: a request among many of its start", n: 200, send: func(p target, n int) int {
		tag, start := wire.NewID(), 1_500_000_000+rand.IntN(100_000_000)
		ids := make([]string, n)
		size := batch(p, n, func(i int) wire.Event {
			ids[i] = wire.NewID()
			body := fmt.Sprintf(`{"function_name":"f","tags":["%s"],"request_start_time":%d,"request_end_time":%d,`+
				`"kwargs":{},"request_response":{}}`, tag, start, start+1)
			return wire.Event{Kind: wire.KindRequest, RequestID: ids[i], Body: json.RawMessage(body)}
		})
		// The first on a late page: what is in front of it is on the page before.
		for _, field := range wire.SortFields {
			_, half := p.call("POST", "/api/public/v2/requests/search",
				fmt.Sprintf(`{"filter":"tag:%s","sort_by":"%s","per_page":%d}`, tag, field, n/2))
			var page wire.SearchPage
			err := json.Unmarshal([]byte(half), &page)
			if err != nil || len(page.Items) > 0 && page.NextCursor == nil {
				p.t.Errorf("%s: %s (%v)", field, half, err)
				return size
			}
			query := url.Values{"filter": {"tag:" + tag}, "sort": {field}, "row": {"0"}}
			if page.NextCursor != nil { // nobody answers while routes are only noted
				query.Set("cursor", *page.NextCursor)
			}
			p.call("GET", "/requests/"+ids[n/2]+"?"+query.Encode(), "")
		}
		return size
	}},
	{name: "page: pieces of a long conversation", n: 2000, send: func(p target, n int) int {
		id, size := track(p, `"kwargs":{"messages":[`+elements(n, `{"role":"user","content":"**abcd**"}`)+`]}`)
		p.call("GET", "/requests/"+id, "")
		return size
	}},
	{name: "page: a line is completed", n: 200, send: func(p target, n int) int {
		tag, size := manyTagged(p, n)
		for _, line := range []string{
			"tag:", "tag:" + tag, "metadata.", "customer:", "customer:c", "model:", "-tag:(" + tag + " or ",
			strings.Repeat("tag:a ", min(n, 600)) + "tag:",
		} {
			p.call("GET", "/suggestions?"+url.Values{"line": {line}}.Encode(), "")
		}
		return size
	}},
	{name: "keeper: the first part of each pass", n: 200, send: func(p target, n int) int {
		// A pass begins with the newest requests, which are these.
		size := batch(p, n, func(int) wire.Event {
			body := `{"function_name":"f","provider_type":"openai","kwargs":{"model":"gpt-4o","api_key":"` +
				wire.NewID() + `","messages":[{"role":"user","content":"hello"}]},"request_response":{}}`
			return wire.Event{Kind: wire.KindRequest, RequestID: wire.NewID(), Body: json.RawMessage(body)}
		})
		p.call("POST", "/api/public/v2/requests/reprice", `{}`)
		p.call("POST", "/api/public/v2/requests/scan", `{"mask":true}`)
		return size
	}},
	{name: "spans: each the child of the one before", n: 400, send: func(p target, n int) int {
		spans := make([]string, n)
		for i := range spans {
			spans[i] = fmt.Sprintf(`{"traceId":"%s","spanId":"%016x","parentSpanId":"%016x","name":"step",`+
				`"startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000001000000000"}`,
				attackedTrace, i+2, i+1)
		}
		size := export(p, strings.Join(spans, ","))
		p.call("GET", "/api/public/v2/traces/"+attackedTrace, "")
		p.call("GET", "/traces/"+attackedTrace, "")
		return size
	}},
}

// manyTagged sends n requests with a prompt of some lines. They have one tag, which is also the value of a
// metadata key; another tag and key are each request's own. It returns the tag.
func manyTagged(p target, n int) (tag string, size int) {
	tag = wire.NewID()
	prompt := quoted(strings.Repeat("all work and no play ", 20))
	size = batch(p, n, func(i int) wire.Event {
		body := fmt.Sprintf(`{"function_name":"f","tags":["%s","t%d"],"metadata":{"customer":"%s","k%d":"v"},`+
			`"kwargs":{"messages":[{"role":"user","content":%s}]},"request_response":{}}`, tag, i, tag, i, prompt)
		return wire.Event{Kind: wire.KindRequest, RequestID: wire.NewID(), Body: json.RawMessage(body)}
	})

	return tag, size
}
