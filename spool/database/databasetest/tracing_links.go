package databasetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// loggedTrace is what an SDK sends of a call that it both traces and logs.
type loggedTrace struct {
	spans   []wire.Event
	own     int // the span of the call
	traceID string
	logged  wire.Event
}

// recordedRun returns what an SDK sent, with the span by which mark is in its body as that of
// the call.
func recordedRun(t *testing.T, name, mark string) loggedTrace {
	t.Helper()
	run := loggedTrace{spans: recorded(t, name)}
	isOwn := func(e wire.Event) bool { return strings.Contains(string(e.Body), mark) }
	if run.own = slices.IndexFunc(run.spans, isOwn); run.own < 0 {
		t.Fatalf("%s: the SDK logs no call of these spans", name)
	}
	var traced struct {
		Span struct{ TraceID, SpanID string }
	}
	if err := json.Unmarshal(run.spans[run.own].Body, &traced); err != nil {
		t.Fatal(err)
	}
	run.traceID = traced.Span.TraceID

	// The SDK gives the id of the span to the request that it logs. Newer ones give the trace, too.
	trace := ""
	if strings.HasSuffix(name, "wrapped") {
		trace = run.traceID
	}
	run.logged = wire.Event{
		ID:         wire.NewID(),
		RequestID:  sameTime(wire.NewID(), run.spans[run.own].RequestID),
		Kind:       wire.KindRequest,
		AcceptedAt: Start,
		Sidecar:    sidecars[0],
		Body: fmt.Appendf(nil, `{"function_name":"f","kwargs":{},"request_response":{},"request_start_time":1,`+
			`"request_end_time":2,"span_id":%q,"trace_id":%q}`, strings.ToUpper(traced.Span.SpanID), trace),
	}

	return run
}

// sameTime returns an id with the time of another one.
func sameTime(id, of string) string { return of[:len("00000000-0000")] + id[len("00000000-0000"):] }

// loggingTraced checks that a call which an SDK both traces and logs is one request, linked to
// its span, whichever comes first and however often.
func loggingTraced(t *testing.T, open Open) {
	s, reopen := open(t)
	runs := map[string]loggedTrace{}
	for name, mark := range map[string]string{
		"promptlayer-python-run-2":   `"name":"PromptLayer Run"`,
		"promptlayer-python-wrapped": `"key":"provider"`,
	} {
		run := recordedRun(t, name, mark)
		orders := map[string][][]wire.Event{
			"traced first": {run.spans, {run.logged}},
			"logged first": {{run.logged}, run.spans},
		}

		for order, batches := range orders {
			id := wire.Identity{Account: name + " " + order, Scope: wire.ScopeFull}
			runs[id.Account] = run
			for _, batch := range batches {
				if _, err := overStore(s).Record(t.Context(), id, batch); err != nil {
					t.Fatal(err)
				}
			}
			linked(t, s, id.Account, run, run.logged.RequestID)
		}
	}

	s = reopen()
	for account, run := range runs {
		linked(t, s, account, run, run.logged.RequestID)

		// Another call that names the same span takes over when the first is gone.
		second := run.logged
		second.ID = wire.NewID()
		second.RequestID = sameTime("ffffffff-ffff-7fff-bfff-ffffffffffff", run.logged.RequestID)
		second.Body = bytes.Replace(second.Body, []byte(`"f"`), []byte(`"g"`), 1)
		id := wire.Identity{Account: account, Scope: wire.ScopeFull}
		if _, err := overStore(s).Record(t.Context(), id, []wire.Event{second}); err != nil {
			t.Fatal(err)
		}
		for requests := []string{run.logged.RequestID, second.RequestID}; len(requests) > 0; requests = requests[1:] {
			linked(t, s, account, run, requests...)
			if _, err := archive.Delete(t.Context(), s, account, wire.Deletion{RequestID: requests[0]}); err != nil {
				t.Fatal(err)
			}
		}
		linked(t, s, account, run)
	}
}

// linked checks that these requests are listed, and no others, and what the first, the span of
// its call and their trace say of each other.
func linked(t *testing.T, s archive.Store, account string, run loggedTrace, requests ...string) {
	t.Helper()
	page := search(t, s, account, wire.Search{})
	var listed []string
	for _, row := range page.Rows {
		listed = append(listed, row.RequestID)
	}
	slices.Sort(listed) // as their ids were made
	if !slices.Equal(listed, requests) || page.Total != len(requests) {
		t.Errorf("%s: the requests %q are listed, want %q", account, listed, requests)
	}

	request := strings.Join(requests[:min(1, len(requests))], "")
	a, id := overStore(s), wire.Identity{Account: account, Scope: wire.ScopeFull}
	span := run.spans[run.own].RequestID
	if r, err := a.Request(t.Context(), id, span); err != nil || !r.IsSpan() || r.RequestLogID != request {
		t.Errorf("%s: the span names the request %q, want %q, %v", account, r.RequestLogID, request, err)
	}

	trace, err := a.Trace(t.Context(), id, run.traceID)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range trace.Spans {
		want := ""
		switch at := slices.Index(requests, of.ID); {
		case of.ID == span:
			want = request
		case at > 0: // another call that names the span is below it
			want = requests[at]
		}
		if got := of.RequestLogID; got == nil && want != "" || got != nil && *got != want {
			t.Errorf("%s: in the trace, the request of %s is %v, want %q", account, of.Name, got, want)
		}
	}
	if request == "" {
		return
	}

	r, err := a.Request(t.Context(), id, request)
	if err != nil || r.SpanRecordID != span || r.TraceID != run.traceID || r.SpanName == "" {
		t.Errorf("%s: the request names the span %q of trace %q, %v", account, r.SpanRecordID, r.TraceID, err)
	}
}

// CallBody returns the body of the span of a model call, by the user ann.
func CallBody(trace string, span int, model, answer string) string {
	return fmt.Sprintf(`{"resource":{},"scope":{},"span":{"traceId":%q,"spanId":"%016x","name":"chat",`+
		`"startTimeUnixNano":"1795318943782000000","endTimeUnixNano":"1795318945782000000","attributes":[`+
		`{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},`+
		`{"key":"gen_ai.request.model","value":{"stringValue":%q}},`+
		`{"key":"gen_ai.usage.input_tokens","value":{"intValue":"1000"}},`+
		`{"key":"gen_ai.usage.output_tokens","value":{"intValue":"100"}},`+
		`{"key":"user.id","value":{"stringValue":"ann"}},`+
		`{"key":"gen_ai.output.messages","value":{"stringValue":%q}}]}}`, trace, span, model, answer)
}

// tracedCalls checks that a traced call is listed as if it had been logged, once, and that
// it is the last of what a library sent of it.
func tracedCalls(t *testing.T, open Open) {
	s, _ := open(t)
	events := []archive.Event{
		Event(t, 1, wire.KindSpan, ID(1000), CallBody(traces[0], 1, "gpt-4o", "Hel")),
		Event(t, 2, wire.KindSpan, ID(1000), CallBody(traces[0], 1, "gpt-4o", "Hello")),
		Event(t, 3, wire.KindSpan, ID(1001), CallBody(traces[0], 2, "gpt-4o", "Bye")),
		Event(t, 4, wire.KindSpan, ID(1001), SpanBody(traces[0], 2, "no call after all")),
		Event(t, 5, wire.KindSpan, ID(1002), CallBody(traces[0], 3, "gpt-4o", "traced")),
		Event(t, 6, wire.KindRequest, ID(1002), requestBody("logged")),
	}
	apply(t, s, account, events[1], events[2])
	apply(t, s, account, events...)
	sameAsFold(t, s, account, events)

	// It is found by its words, and not by those of the first content.
	for q, want := range map[string]int{"Hello": 1, "Bye": 0, "traced": 0} {
		if n := search(t, s, account, wire.Search{FilterGroup: withWords(q, nil)}).Total; n != want {
			t.Errorf("%d requests have the word %s, want %d", n, q, want)
		}
	}
	if got := allSpans(t, s, account); !slices.Equal(got, []string{ID(1001)}) {
		t.Errorf("the spans without a request are %q", got)
	}
}
