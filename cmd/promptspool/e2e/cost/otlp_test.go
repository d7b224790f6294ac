//go:build linux

package cost

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// otlpAttacks send spans: many, and one with many attributes, many values or much text.
var otlpAttacks = []attack{
	{name: "spans: many of one resource", n: 1000, brief: true, send: func(p target, n int) int {
		spans := make([]string, n)
		for i := range spans {
			spans[i] = span(`"attributes":[{"key":"gen_ai.system","value":{"stringValue":"openai"}}]`)
		}
		return export(p, strings.Join(spans, ","))
	}},
	{name: "spans: log records of a call", n: 1000, send: func(p target, n int) int {
		record := fmt.Sprintf(`{"eventName":"gen_ai.choice","timeUnixNano":"1700000000000000000","body":`+
			`{"stringValue":"x"},"traceId":"%s","spanId":"%016x"}`, attackedTrace, rand.Uint64()|1)
		body := `{"resourceLogs":[{"scopeLogs":[{"logRecords":[` + elements(n, record) + `]}]}]}`
		p.call("POST", "/v1/logs", body, "Content-Type", "application/json")
		return len(body)
	}},
	// They are decoded twice.
	{name: "spans: log records at the path of spans", n: 1000, send: func(p target, n int) int {
		records := elements(n, `{"eventName":"gen_ai.choice"}`)
		body := `{"resourceLogs":[{"scopeLogs":[{"logRecords":[` + records + `]}]}]}`
		p.call("POST", "/v1/traces", body, "Content-Type", "application/json")
		return len(body)
	}},
	// Soon its record is full, and every one of them is refused.
	{name: "spans: one of an SDK, many times", n: 1000, send: func(p target, n int) int {
		spans := make([]string, n)
		for i := range spans {
			spans[i] = fmt.Sprintf(`{"name":"%x","context":{"trace_id":"%s","span_id":"00000000000000aa"}}`,
				rand.Uint64(), attackedTrace)
		}
		return exportBulk(p, strings.Join(spans, ","))
	}},
	{name: "spans: traces that are closed", n: 1000, send: func(p target, n int) int {
		spans := make([]string, n)
		for i := range spans {
			trace := fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()|1)
			spans[i] = strings.Replace(bulkSpan(`"close":true`), attackedTrace, trace, 1)
		}
		return exportBulk(p, strings.Join(spans, ","), "?close_after=true")
	}},
}

// attackedTrace is the trace of all spans that the attacks send.
var attackedTrace = fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()|1)

// span returns a span with an id of its own and these members.
func span(members string) string {
	return fmt.Sprintf(`{"traceId":"%s","spanId":"%016x","startTimeUnixNano":"1700000000000000000",`+
		`"endTimeUnixNano":"1700000001000000000",%s}`, attackedTrace, rand.Uint64()|1, members)
}

// bulkSpan is span for /spans-bulk.
func bulkSpan(members string) string {
	return fmt.Sprintf(`{"name":"step","context":{"trace_id":"%s","span_id":"%016x"},`+
		`"start_time":"1700000000000000000",%s}`, attackedTrace, rand.Uint64()|1, members)
}

// exportBulk sends spans as the hosted service's SDKs do, and returns the size of what it sent.
func exportBulk(p target, spans string, query ...string) int {
	body := `{"spans":[` + spans + `]}`
	p.call("POST", "/spans-bulk"+strings.Join(query, ""), body)

	return len(body)
}

// export sends spans as an OTLP exporter does, and returns the size of what it sent.
func export(p target, spans string) int {
	body := `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"app"}}]},` +
		`"scopeSpans":[{"spans":[` + spans + `]}]}]}`
	p.call("POST", "/v1/traces", body, "Content-Type", "application/json")

	return len(body)
}

func init() {
	attacks = slices.Concat(attacks, otlpAttacks, pageAttacks)
	withoutInput["POST /api/public/v2/traces/{}/close"] = "an id"
}
