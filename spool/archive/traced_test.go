package archive_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

// tracedCall returns the body of the span of a model call.
func tracedCall(answer string) string {
	return fmt.Sprintf(`{"resource":{},"scope":{},"span":{"traceId":"5b8efff798038103d269b633813fc60c",
		"spanId":"eee19b7ec3c1b174","name":"chat m","startTimeUnixNano":"1700000000000000000",
		"endTimeUnixNano":"1700000001500000000","attributes":[
		{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},
		{"key":"gen_ai.provider.name","value":{"stringValue":"openai"}},
		{"key":"gen_ai.request.model","value":{"stringValue":"gpt-4o-mini"}},
		{"key":"gen_ai.usage.input_tokens","value":{"intValue":"25"}},
		{"key":"gen_ai.usage.output_tokens","value":{"intValue":"7"}},
		{"key":"gen_ai.prompt.name","value":{"stringValue":"greet"}},
		{"key":"gen_ai.prompt.version","value":{"stringValue":"3"}},
		{"key":"gen_ai.prompt.variable.who","value":{"stringValue":"Ann"}},
		{"key":"user.id","value":{"stringValue":"u1"}},
		{"key":"gen_ai.input.messages","value":{"stringValue":"[{\"role\":\"user\",\"content\":\"Hi\"}]"}},
		{"key":"gen_ai.output.messages","value":{"stringValue":"[{\"role\":\"assistant\",\"content\":\"%s\"}]"}}]}}`,
		answer)
}

// A traced call is a request as if it had been logged.
func TestATracedCallIsARequest(t *testing.T) {
	states, bodies := databasetest.Fold([]archive.Event{event(t, 1, wire.KindSpan, tracedCall("Hello"))})
	s := states[databasetest.ID(1000)]
	rec := s.View(context.Background(), s.ShownBody(bodies))

	if rec.Provider != "openai" || rec.Model != "gpt-4o-mini" || *rec.InputTokens != 25 || *rec.OutputTokens != 7 ||
		rec.Metadata["user_id"] != "u1" || *rec.LatencyMS != 1500 || rec.Status != "SUCCESS" || !rec.Readable {
		t.Errorf("the record is %+v", rec)
	}
	p := rec.Prompt
	if p == nil || p.Name != "greet" || *p.Version != 3 || string(p.InputVariables) != `{"who":"Ann"}` {
		t.Errorf("its prompt is %+v", p)
	}
	if !strings.Contains(string(rec.Request), `"request_response"`) || !strings.Contains(string(rec.Span), `"span"`) {
		t.Errorf("it shows the request %s and the span %s", rec.Request, rec.Span)
	}
	row, listed := s.Row()
	if !listed || row.Engine != "gpt-4o-mini" {
		t.Errorf("its row is %+v, %v", row, listed)
	}
}

// People open such a span from its trace.
func TestTheRecordOfASpanThatIsNoCallSaysWhatItIs(t *testing.T) {
	states, bodies := databasetest.Fold([]archive.Event{event(t, 1, wire.KindSpan, `{"resource":{},"scope":{},"span":{
		"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"get_weather",
		"startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000001500000000",
		"status":{"code":2,"message":"too slow"},"attributes":[
		{"key":"gen_ai.operation.name","value":{"stringValue":"execute_tool"}},
		{"key":"error.type","value":{"stringValue":"timeout"}}]}}`)})
	s := states[databasetest.ID(1000)]
	rec := s.View(context.Background(), s.ShownBody(bodies))

	if !rec.IsSpan() || rec.SpanName != "get_weather" || rec.SpanKind != "tool" ||
		rec.TraceID != "5b8efff798038103d269b633813fc60c" || *rec.LatencyMS != 1500 {
		t.Errorf("the record is %+v", rec)
	}
	if rec.Status != "ERROR" || rec.ErrorType != "timeout" || rec.ErrorMessage != "too slow" || !rec.Readable {
		t.Errorf("the record says %s, %s: %s", rec.Status, rec.ErrorType, rec.ErrorMessage)
	}

	states, bodies = databasetest.Fold([]archive.Event{event(t, 1, wire.KindSpan, tracedCall("Hello"))})
	s = states[databasetest.ID(1000)]
	rec = s.View(context.Background(), s.ShownBody(bodies))
	if rec.IsSpan() || rec.SpanName != "chat m" || rec.SpanKind != "llm" {
		t.Errorf("the record of a call is %+v", rec)
	}
}

// Traced calls under the id of a logged one are rivals before and behind it.
func TestALoggedCallThatAnotherReplacesIsHidden(t *testing.T) {
	logged := func(n int, value string) archive.Event {
		return event(t, n, wire.KindRequest, `{"function_name":"f","kwargs":{},"request_response":{},
			"request_start_time":1,"request_end_time":2,"metadata":{"person":"`+value+`"}}`)
	}
	var s archive.State
	s.Fold(event(t, 2, wire.KindSpan, tracedCall("a")))
	s.Fold(event(t, 4, wire.KindSpan, tracedCall("b")))
	s.Fold(logged(3, "ann"))

	s.Fold(logged(1, "bob"))
	hidden := s.Hidden()
	if !slices.Contains(hidden, wire.MetadataRow{Key: "person", Value: "ann"}) {
		t.Errorf("hidden are %v, without the logged call until now", hidden)
	}
}
