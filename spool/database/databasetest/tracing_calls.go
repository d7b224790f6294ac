package databasetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

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
		if n := search(t, s, account, wire.Search{FilterGroup: withWords(q, nil)}).Total; n != want {
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
