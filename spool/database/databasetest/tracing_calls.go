package databasetest

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"

	"promptspool/api/otlp"
	"promptspool/api/wire"
	"promptspool/spool/archive"
)

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
	s, reopen := open(t)
	call, other := CallBody(traces[0], 1, "gpt-4o", "Hel"), CallBody(traces[0], 1, "gpt-4o", "Hello")
	events := []archive.Event{
		Event(t, 1, wire.KindSpan, ID(1000), call),
		Event(t, 2, wire.KindSpan, ID(1000), other),
		Event(t, 3, wire.KindSpan, ID(1001), CallBody(traces[0], 2, "gpt-4o", "Bye")),
		Event(t, 4, wire.KindSpan, ID(1001), SpanBody(traces[0], 2, "no call after all")),
		Event(t, 5, wire.KindSpan, ID(1002), CallBody(traces[0], 3, "gpt-4o", "traced")),
		Event(t, 6, wire.KindRequest, ID(1002), requestBody("logged")),
	}
	apply(t, s, account, events[1], events[2])
	apply(t, s, account, events...)
	apply(t, s, account, events[3], events[0])

	s = reopen()
	states, _ := Fold(events)
	page := search(t, s, account, wire.Search{})
	sameRows(t, Rows(states), page.Rows)
	sameViews(t, s, account, events)
	isCall := func(r wire.Row) bool { return r.RequestID == ID(1000) && r.Engine == "gpt-4o" }
	if page.Total != 2 || len(page.Rows) != 2 || !slices.ContainsFunc(page.Rows, isCall) {
		t.Fatalf("the list shows %d: %+v", page.Total, page.Rows)
	}

	// It is found by its metadata and by its words, and not by those of the first content.
	for q, want := range map[string]int{"Hello": 1, "Bye": 0, "traced": 0} {
		if n := search(t, s, account, wire.Search{Q: q}).Total; n != want {
			t.Errorf("%d requests have the word %s, want %d", n, q, want)
		}
	}
	if got := allSpans(t, s, account); !slices.Equal(got, []string{ID(1001)}) {
		t.Errorf("the spans without a request are %q", got)
	}

	deleted, err := archive.Delete(context.Background(), s, account,
		wire.Deletion{Key: "user_id", Value: "ann", Before: Start.Add(seconds(60))})
	if err != nil || deleted.Records != 3 {
		t.Errorf("a deletion by metadata: %+v, %v", deleted, err)
	}
}

// The same call in both encodings of OTLP.
const (
	protobufCall = "0ab1020a170a150a0c736572766963652e6e616d6512050a037376631295020a080a036c69621201311288020a10" +
		"5b8efff798038103d269b633813fc60c1208eee19b7ec3c1b1742a0663686174206d30033900002a36fe9c971741" +
		"002f928ffe9c97174a1f0a1567656e5f61692e6f7065726174696f6e2e6e616d6512060a04636861744a200a1467" +
		"656e5f61692e70726f76696465722e6e616d6512080a066f70656e61694a1b0a1467656e5f61692e726571756573" +
		"742e6d6f64656c12030a016d4a1f0a1967656e5f61692e75736167652e696e7075745f746f6b656e73120218194a" +
		"200a1a67656e5f61692e75736167652e6f75747075745f746f6b656e73120218784a270a1a67656e5f61692e7265" +
		"71756573742e74656d7065726174757265120921000000000000e03f7a021801"

	jsonCall = `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"svc"}}]},
		"scopeSpans":[{"scope":{"name":"lib","version":"1"},"spans":[{"traceId":"5B8EFFF798038103D269B633813FC60C",
		"spanId":"7uGbfsPBsXQ=","parentSpanId":"","name":"chat m","kind":"SPAN_KIND_CLIENT",
		"startTimeUnixNano":1700000000000000000,"end_time_unix_nano":"1700000001500000000","attributes":[
		{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},
		{"key":"gen_ai.provider.name","value":{"stringValue":"openai"}},
		{"key":"gen_ai.request.model","value":{"string_value":"m"}},
		{"key":"gen_ai.usage.input_tokens","value":{"intValue":25.0}},
		{"key":"gen_ai.usage.output_tokens","value":{"intValue":"120"}},
		{"key":"gen_ai.request.temperature","value":{"doubleValue":0.50}}],"status":{"code":1},"x":[{}]}]}]}]}`
)

// exported returns the events of an OTLP request.
func exported(t *testing.T, n int, body []byte, form otlp.Form) (events []archive.Event) {
	t.Helper()
	_, err := otlp.Traces(body, form, func(s otlp.Span) error {
		id := wire.SpanRecordID(s.TraceID, s.SpanID, s.Start)
		eventID, err := wire.SpanEventID(id, s.Body)
		e := Event(t, n, wire.KindSpan, id, string(s.Body))
		e.ID = eventID
		events = append(events, e)
		return err
	})
	if err != nil || len(events) == 0 {
		t.Fatalf("%d spans, %v", len(events), err)
	}

	return events
}

// encodings checks that a call is one record, in whichever encoding it is sent, and however
// often.
func encodings(t *testing.T, open Open) {
	protobuf, err := hex.DecodeString(protobufCall)
	if err != nil {
		t.Fatal(err)
	}
	binary := exported(t, 1, protobuf, otlp.Protobuf)
	text := exported(t, 2, []byte(jsonCall), otlp.JSON)
	s, _ := open(t)

	// In one account JSON comes first, in the other one protobuf.
	for account, events := range map[string][]archive.Event{
		"a": slices.Concat(binary, text, binary), "b": slices.Concat(text, text, binary),
	} {
		var codes []wire.ResultCode
		for _, r := range apply(t, s, account, events...) {
			codes = append(codes, r.Code)
		}
		want := []wire.ResultCode{wire.ResultAccepted, wire.ResultDuplicate, wire.ResultDuplicate}
		if !slices.Equal(codes, want) {
			t.Errorf("sent three times, the call was %q", codes)
		}

		page := search(t, s, account, wire.Search{})
		if page.Total != 1 || len(page.Rows) != 1 {
			t.Fatalf("the call is listed %d times", page.Total)
		}
		row := page.Rows[0]
		if row.Engine != "m" || row.Provider != "openai" || row.RequestID != events[0].RequestID ||
			*row.InputTokens != 25 || *row.OutputTokens != 120 || *row.Latency != 1.5 {
			t.Errorf("its row is %+v", row)
		}
	}
}

// rereading reads spans again that an older version read otherwise.
func rereading(t *testing.T, open Open) {
	s, reopen := open(t)
	events := []archive.Event{
		Event(t, 1, wire.KindSpan, ID(1000), CallBody(traces[0], 1, "of-our-own", "Hello")),
		Event(t, 2, wire.KindSpan, ID(1001), SpanBody(traces[0], 2, "no call")),
		Event(t, 3, wire.KindSpan, ID(1002), CallBody(traces[0], 3, "of-our-own", "as before")),
		Event(t, 4, wire.KindMetadata, ID(1000), `{"metadata":{"user_id":"later","plan":"b"}}`),
		Event(t, 5, wire.KindRequest, ID(1003), requestBody("logged")),
		Event(t, 6, wire.KindSpan, ID(1003), CallBody(traces[0], 4, "of-our-own", "logged, too")),
	}

	// Of the first an older version knew no more than metadata; the second it took for a
	// call. The model has no price, which an archive would add.
	older := append([]archive.Event{}, events...)
	older[0].Request, older[0].Metadata = nil, map[string]string{"user_id": "other", "old": "yes"}
	older[1].Request = events[2].Request
	apply(t, s, account, older...)

	s = reopen()
	a, id := overStore(s), wire.Identity{Account: account, Scope: wire.ScopeFull}
	for _, changed := range []int{2, 0} {
		seen, n := 0, 0
		for cursor, done := "", false; !done; {
			part, err := a.Reread(t.Context(), id, cursor)
			if err != nil {
				t.Fatal(err)
			}
			seen, n, cursor, done = seen+part.Seen, n+part.Changed, part.Cursor, part.Done
		}
		// One that leaves the list is seen again among the spans.
		if seen < 4 || seen > 5 || n != changed {
			t.Errorf("of %d spans %d changed, want %d of 4", seen, n, changed)
		}
	}

	states, _ := Fold(events)
	sameRows(t, Rows(states), search(t, s, account, wire.Search{}).Rows)
	sameViews(t, s, account, events)
}
