package otlp_test

import (
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/otlp"
	"promptspool/api/wire"
)

// decodeBulk decodes spans of /spans-bulk.
func decodeBulk(t testing.TB, spans []byte) (taken []otlp.BulkSpan, refused map[string]string) {
	t.Helper()
	refused = map[string]string{}
	_, err := otlp.Bulk(t.Context(), spans,
		func(s otlp.BulkSpan) error {
			taken = append(taken, s)
			return nil
		},
		func(spanID, reason string) { refused[spanID] = reason })
	if err != nil {
		t.Fatal(err)
	}

	return taken, refused
}

func TestASpanOfSpansBulkIsStoredLikeOneOfOTLP(t *testing.T) {
	taken, refused := decodeBulk(t, []byte(`[{"name":"chat m","context":{
		"trace_id":"5b8efff798038103d269b633813fc60c","span_id":"eee19b7ec3c1b174","trace_state":""},
		"kind":"SpanKind.CLIENT","parent_id":null,"start_time":"1700000000000000000",
		"end_time":1700000001500000000,"status":{"status_code":"StatusCode.OK"},"scope":{"name":"lib","version":"1"},
		"attributes":{"gen_ai.operation.name":"chat","gen_ai.provider.name":"openai","gen_ai.request.model":"m",
		"gen_ai.usage.input_tokens":25,"gen_ai.usage.output_tokens":120,"gen_ai.request.temperature":0.5},
		"events":[],"links":[],"resource":{"attributes":{"service.name":"svc"},"schema_url":""},
		"log_request":{"provider":"openai"}}]`))
	if len(taken) != 1 || len(refused) > 0 {
		t.Fatalf("%d spans, refused %v", len(taken), refused)
	}
	s := taken[0]
	if diff := cmp.Diff(vectorBody, string(s.Body)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.Name != "chat m" || s.Start != 1700000000000000000 || s.End != 1700000001500000000 ||
		string(s.LogRequest) != `{"provider":"openai"}` {
		t.Errorf("%+v", s)
	}
}

func TestTimesEventsAndLinksOfSpansBulk(t *testing.T) {
	taken, _ := decodeBulk(t, []byte(`[{"name":"n","context":{"trace_id":"5b8efff798038103d269b633813fc60c",
		"span_id":"eee19b7ec3c1b174"},"parent_id":"c3668f6a07a09a94","start_time":"2023-11-14T22:13:20.5Z",
		"end_time":[1700000000,500],"status":{"status_code":"StatusCode.ERROR","description":"no"},
		"events":[{"name":"exception","timestamp":"1700000000000000000","attributes":{"a":true}}],
		"links":[{"context":{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"c3668f6a07a09a94"},
		"attributes":{"l":"x"}}],"resource":{"attributes":{},"schema_url":"https://s"}}]`))
	want := `{"resource":{},"resourceSchemaUrl":"https://s","scope":{},"span":{` +
		`"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","parentSpanId":"c3668f6a07a09a94",` +
		`"name":"n","startTimeUnixNano":"1700000000500000000","endTimeUnixNano":"1700000000000000500",` +
		`"events":[{"timeUnixNano":"1700000000000000000","name":"exception","attributes":[{"key":"a",` +
		`"value":{"boolValue":true}}]}],"links":[{"traceId":"5b8efff798038103d269b633813fc60c",` +
		`"spanId":"c3668f6a07a09a94","attributes":[{"key":"l","value":{"stringValue":"x"}}]}],` +
		`"status":{"message":"no","code":2}}}`
	if len(taken) != 1 {
		t.Fatalf("%d spans", len(taken))
	}
	if diff := cmp.Diff(want, string(taken[0].Body)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestABadSpanOfSpansBulkDoesNotCostTheOthers(t *testing.T) {
	const good = `{"name":"n","context":{"trace_id":"5b8efff798038103d269b633813fc60c","span_id":"eee19b7ec3c1b174"}}`
	taken, refused := decodeBulk(t, []byte(`[7,`+good+`,{"name":"x","context":{"trace_id":"00","span_id":"ab"}},`+
		good+`,null,[]]`))
	want := map[string]string{
		"": "a span must be an object with name and context", "ab": "traceId must be 16 bytes, not all zero",
	}
	if diff := cmp.Diff(want, refused); diff != "" || len(taken) != 2 {
		t.Errorf("%d spans (-want +got):\n%s", len(taken), diff)
	}
}

// FuzzBulk decodes hostile spans. Each must be JSON that every reader takes.
func FuzzBulk(f *testing.F) {
	for _, p := range payloads(f, "/spans-bulk") {
		var body struct{ Spans json.RawMessage }
		if err := json.Unmarshal(p.Body, &body); err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(body.Spans))
	}
	f.Add([]byte(`[{"name":"n","context":{"trace_id":"5b8efff798038103d269b633813fc60c","span_id":"eee19b7ec3c1b174"},
		"start_time":[1,2],"events":[{"time":"2026-01-01"}],"links":[{"context":{}}],"log_request":{}}]`))

	f.Fuzz(func(t *testing.T, spans []byte) {
		if !json.Valid(spans) {
			return
		}
		if _, err := wire.ParseObject([]byte(`{"spans":` + string(spans) + `}`)); err != nil {
			return
		}
		var body struct{ Spans json.RawMessage }
		_ = json.Unmarshal([]byte(`{"spans":`+string(spans)+`}`), &body)

		taken, _ := decodeBulk(t, body.Spans)
		for _, s := range taken {
			var read struct {
				Span struct{ TraceID, SpanID string }
			}
			if _, err := wire.ParseObject(s.Body); err != nil {
				t.Fatalf("%v in %s", err, s.Body)
			}
			if err := json.Unmarshal(s.Body, &read); err != nil || read.Span.SpanID != hex.EncodeToString(s.SpanID[:]) {
				t.Fatalf("%v, or no id, in %s", err, s.Body)
			}
		}
	})
}
