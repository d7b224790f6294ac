package otel_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"promptspool/api/calls/otel"
)

// The messages of a call come in log records, before the span or after it, and some twice.
// Exporters give all of them the same moment.
func TestLogRecordsJoinTheirSpanInAnyOrder(t *testing.T) {
	spans, _ := stored(t, payloads(t)["otel-openai-multi-turn"])
	_, records := stored(t, payloads(t)["otel-openai-multi-turn-logs"])
	span := spans[1]
	id := otel.Read(span).SpanID
	var logs []json.RawMessage
	for _, log := range records {
		if otel.SpanOf(log) == id {
			logs = append(logs, log)
		}
	}
	want := otel.Read(otel.Join(span, logs))
	if len(logs) != 7 || len(readRequest(t, want.Request()).Input) != 6 {
		t.Fatalf("%d logs: %s", len(logs), want.Request())
	}

	mixed := slices.Concat(logs[3:], logs[:5])
	slices.Reverse(mixed)
	got := otel.Read(otel.Join(span, mixed))
	if string(got.Request()) != string(want.Request()) {
		t.Errorf("in another order it becomes\n%s\nand not\n%s", got.Request(), want.Request())
	}
}

// Two equal messages of one call are not one message.
func TestEqualLogRecordsOfOnePostAreBothKept(t *testing.T) {
	span := encode(t, spanWith(map[string]any{"gen_ai.operation.name": "chat"}))
	log := func(index int) json.RawMessage {
		return encode(t, map[string]any{
			"resource": map[string]any{}, "scope": map[string]any{}, "index": index,
			"log": map[string]any{
				"eventName": "gen_ai.user.message",
				"body":      map[string]any{"stringValue": `{"content":"Yes."}`},
			},
		})
	}

	joined := otel.Read(otel.Join(span, []json.RawMessage{log(0), log(1), log(0)}))
	if got := readRequest(t, joined.Request()); len(got.Input) != 2 {
		t.Errorf("%d messages of two", len(got.Input))
	}
}

// Of too many, the first messages are kept, and the last evaluations, which are the scores.
func TestMessagesAndEvaluationsAreBoundedApart(t *testing.T) {
	span := encode(t, spanWith(map[string]any{"gen_ai.operation.name": "chat"}))
	var logs []json.RawMessage
	for n := range otel.JoinedMax + 10 {
		for _, name := range []string{"gen_ai.user.message", "gen_ai.evaluation.result"} {
			logs = append(logs, encode(t, map[string]any{
				"resource": map[string]any{}, "scope": map[string]any{}, "index": 0,
				"log": map[string]any{"eventName": name, "timeUnixNano": strconv.Itoa(n + 1)},
			}))
		}
	}

	got := otel.Join(span, logs)
	if n := strings.Count(string(got), `"eventName"`); n != 2*otel.JoinedMax {
		t.Errorf("%d are joined, want %d of each", n, otel.JoinedMax)
	}
	if again := otel.Join(got, logs[len(logs)-1:]); string(again) != string(got) {
		t.Errorf("joined again, the last evaluation changes the span")
	}
	last, first := `"timeUnixNano":"`+strconv.Itoa(otel.JoinedMax+10)+`"`, `"timeUnixNano":"1"`
	if !strings.Contains(string(got), last) || !strings.Contains(string(got), first) {
		t.Errorf("the first message or the last evaluation is missing")
	}
}
