package databasetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// spanOfTrace returns the event of the nth span of a trace, which is a call unless it is the first.
func spanOfTrace(t rapid.TB, n int, parent string, attributes ...any) wire.Event {
	t.Helper()
	if parent != "" {
		attributes = append(attributes,
			attribute("gen_ai.operation.name", "chat"), attribute("gen_ai.request.model", "m"))
	}
	start := Start.Add(time.Duration(n) * time.Millisecond)
	body := encoded(map[string]any{"resource": map[string]any{}, "scope": map[string]any{}, "span": map[string]any{
		"traceId": traces[0], "spanId": fmt.Sprintf("%016x", n), "parentSpanId": parent, "name": "step",
		"startTimeUnixNano": fmt.Sprint(start.UnixNano()), "attributes": attributes,
	}})
	record := ID(1000 + n)
	id, err := wire.SpanEventID(record, body)
	if err != nil {
		t.Fatal(err)
	}

	return wire.Event{
		ID: id, RequestID: record, Kind: wire.KindSpan, AcceptedAt: Start, Sidecar: "host-a", Body: body,
	}
}

// having returns how many requests have a metadata value.
func having(t rapid.TB, s archive.Store, account, key, value string) int {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	filter := &wire.Filter{Field: "metadata", NestedKey: key, Operator: "is", Value: text}

	return search(t, s, account, wire.Search{FilterGroup: filter, PerPage: 1}).Total
}

// contexts checks that calls have the user and the session of the first span of their trace, and keep
// their own.
func contexts(t *testing.T, open Open) {
	s, _ := open(t)
	const first = "0000000000000001"
	root := spanOfTrace(t, 1, "", attribute("user.id", "ann"), attribute("session.id", "s-1"))
	later := spanOfTrace(t, 2, "", attribute("user.id", "eve")) // another without a parent
	call, own := spanOfTrace(t, 3, first), spanOfTrace(t, 4, first, attribute("user.id", "bob"))
	for _, e := range []wire.Event{call, own, later, root} {
		apply(t, s, account, Decode(t, e, Start))
	}

	ann, bob := having(t, s, account, "user_id", "ann"), having(t, s, account, "user_id", "bob")
	if session := having(t, s, account, "session_id", "s-1"); ann != 1 || bob != 1 || session != 2 {
		t.Errorf("%d calls are ann's, %d bob's, %d of the session", ann, bob, session)
	}
}

// logging checks that a call which is logged with the ids of its trace is in that trace, also beside
// what its instrumentation reports.
func logging(t *testing.T, open Open) {
	s, _ := open(t)
	const first, own = "0000000000000001", "0000000000000003"
	logged := func(n int, members string) wire.Event {
		return Event(t, n, wire.KindRequest, ID(1000+n), `{"function_name":"answer","kwargs":{"model":"m"},`+
			`"request_response":"yes","request_start_time":"2026-03-01T12:00:00Z",`+
			`"request_end_time":"2026-03-01T12:00:01Z","trace_id":"`+traces[0]+`",`+members+`}`).Event
	}
	root := spanOfTrace(t, 1, "", attribute("user.id", "ann"), attribute("session.id", "s-1"))
	traced := spanOfTrace(t, 3, first)
	below := logged(10, `"parent_span_id":"`+first+`","session_id":"s-2","time_to_first_token_ms":"x"`)
	twin := logged(11, `"parent_span_id":"`+first+`","span_id":"`+own+`"`)
	one := logged(12, `"span_id":"`+first+`"`) // as the other one, all of a function
	other := logged(13, `"span_id":"`+first+`","tags":["x"]`)
	all := []wire.Event{root, traced, below, twin, one, other}

	for name, batches := range map[string][][]wire.Event{
		"traced first": {{root, traced}, {below, twin}, {one, other}},
		"logged first": {{other}, {one, twin, below}, {traced}, {root}},
	} {
		service, id := overStore(s), wire.Identity{Account: name, Scope: wire.ScopeFull}
		for _, batch := range batches {
			if _, err := service.Record(t.Context(), id, batch); err != nil {
				t.Fatal(err)
			}
		}

		// The call that is also traced is there once, with what its trace says.
		if n := search(t, s, name, wire.Search{}).Total; n != 4 {
			t.Errorf("%s: the list has %d calls, want 4", name, n)
		}
		ann, session := having(t, s, name, "user_id", "ann"), having(t, s, name, "session_id", "s-1")
		if ann != 2 || session != 1 {
			t.Errorf("%s: %d calls are ann's, %d of her session", name, ann, session)
		}
		r := view(t, s, name, below.RequestID)
		if r.SessionID != "s-2" || r.UserID != "ann" || r.TraceID != traces[0] || r.ParentSpanID != first {
			t.Errorf("%s: the call below the first span shows %+v", name, r)
		}

		trace, err := service.Trace(t.Context(), id, traces[0])
		if err != nil || len(trace.Spans) != len(all) {
			t.Fatalf("%s: the trace has %+v, %v", name, trace.Spans, err)
		}
		ids := map[string]bool{}
		for _, span := range trace.Spans {
			ids[span.SpanID] = true
			above := first
			switch span.ID {
			case root.RequestID:
				continue
			case twin.RequestID:
				above = own
			}
			if span.ParentID == nil || *span.ParentID != above {
				t.Errorf("%s: %+v is not below %s", name, span, above)
			}
		}
		if len(ids) != len(all) {
			t.Errorf("%s: some spans have the same id: %+v", name, trace.Spans)
		}
	}
}
