package otlp_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/otlp"
)

// agentSpan is what a log record of a coding agent became.
type agentSpan struct {
	TraceID, SpanID, ParentSpanID, Name string
	StartTimeUnixNano, EndTimeUnixNano  string
	Attributes                          []json.RawMessage
	Status                              struct{ Code int }
	Dropped                             bool // unless everything is wanted
}

// agentSpans returns what log records without an enclosing request become.
func agentSpans(t *testing.T, records ...string) (spans []agentSpan, refused otlp.Refused) {
	t.Helper()
	body := `{"resourceLogs":[{"scopeLogs":[{"logRecords":[` + strings.Join(records, ",") + `]}]}]}`
	refused, err := otlp.Logs(t.Context(), []byte(body), otlp.JSON, func(l otlp.Log) error {
		t.Errorf("a log record of a model call: %s", l.Body)
		return nil
	}, func(s otlp.Span) error {
		var read struct{ Span agentSpan }
		if err := json.Unmarshal(s.Body, &read); err != nil {
			return err
		}
		if got := fmt.Sprintf("%x %x", s.TraceID, s.SpanID); got != read.Span.TraceID+" "+read.Span.SpanID {
			t.Errorf("ids %s of %s", got, s.Body)
		}
		read.Span.Dropped = s.Plumbing
		spans = append(spans, read.Span)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return spans, refused
}

// agentRecord returns a log record with these attributes, which are pairs, and members.
func agentRecord(members string, attributes ...string) string {
	var pairs []string
	for pair := range slices.Chunk(attributes, 2) {
		pairs = append(pairs, fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, pair[0], pair[1]))
	}

	return `{"attributes":[` + strings.Join(pairs, ",") + `]` + members + `}`
}

const (
	claudeBody = `,"body":{"stringValue":"claude_code.%s"},"timeUnixNano":"1700000002000000000"`
	agentIDs   = `,"traceId":"01010101010101010101010101010101","spanId":"0202020202020202"`
)

func TestARecordOfACodingAgentIsASpanOfItsTrace(t *testing.T) {
	record := agentRecord(fmt.Sprintf(claudeBody, "api_error")+agentIDs, "event.name", "api_error",
		"session.id", "s", "prompt.id", "p", "duration_ms", "1500", "error", "529")
	spans, refused := agentSpans(t, record, record)
	if len(spans) != 2 || refused != (otlp.Refused{}) {
		t.Fatalf("%d spans, refused %+v", len(spans), refused)
	}
	if spans[0].SpanID != spans[1].SpanID {
		t.Error("a record that is sent twice is two spans")
	}

	want := agentSpan{
		TraceID:           strings.Repeat("01", 16),
		SpanID:            spans[0].SpanID,
		ParentSpanID:      strings.Repeat("02", 8),
		Name:              "claude_code.api_error",
		StartTimeUnixNano: "1700000000500000000",
		EndTimeUnixNano:   "1700000002000000000",
		Attributes:        spans[0].Attributes,
	}
	want.Status.Code = 2
	if diff := cmp.Diff(want, spans[0]); diff != "" || len(want.Attributes) != 5 {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Without tracing, what says that it is of one session is of one trace, and hangs below its prompt.
func TestWithoutTracingASessionIsATraceAndAPromptItsTurn(t *testing.T) {
	claude := func(name, turn string) string {
		return agentRecord(fmt.Sprintf(claudeBody, name), "event.name", name, "session.id", "s", "prompt.id", turn)
	}
	spans, _ := agentSpans(t, claude("api_request", "1"), claude("user_prompt", "1"), claude("user_prompt", "2"),
		agentRecord(`,"eventName":"event x.rs:1","timeUnixNano":"0","observedTimeUnixNano":"7"`,
			"event.name", "codex.user_prompt", "conversation.id", "s"),
		agentRecord("", "event.name", "gemini_cli.api_response", "event.timestamp", "2023-11-14T22:13:20Z"),
		agentRecord("", "event.name", "gemini_cli.api_response"))
	if len(spans) != 6 {
		t.Fatalf("%d spans", len(spans))
	}

	call, prompt, next, codex, alone := spans[0], spans[1], spans[2], spans[3], spans[4]
	if call.ParentSpanID != prompt.SpanID || prompt.ParentSpanID != "" || next.SpanID == prompt.SpanID {
		t.Errorf("the call is %+v, the prompts %+v and %+v", call, prompt, next)
	}
	if call.TraceID != prompt.TraceID || call.TraceID != next.TraceID || call.TraceID != codex.TraceID {
		t.Errorf("one session is several traces: %+v", spans)
	}
	if codex.StartTimeUnixNano != "7" || codex.EndTimeUnixNano != "" || codex.Name != "codex.user_prompt" {
		t.Errorf("Codex' prompt is %+v", codex)
	}
	if alone.TraceID == spans[5].TraceID || alone.StartTimeUnixNano != "1700000000000000000" {
		t.Errorf("those without a session are %+v and %+v", alone, spans[5])
	}
}

func TestOfTheEventsOfAStreamThoseAreKeptThatSaySomething(t *testing.T) {
	event := func(attributes ...string) string {
		return agentRecord("", append([]string{"event.name", "codex.sse_event"}, attributes...)...)
	}
	spans, refused := agentSpans(t, event("event.kind", "response.completed"), event("input_token_count", "0"),
		event("error.message", "x"), agentRecord("", "event.name", "codex.websocket_event"),
		agentRecord("", "event.name", "codexes.read"), agentRecord(`,"body":{"stringValue":"codex. What else?"}`))
	var dropped []bool
	for _, s := range spans {
		dropped = append(dropped, s.Dropped)
	}
	if !slices.Equal(dropped, []bool{true, false, false, true}) || refused.Dropped != 2 {
		t.Errorf("dropped %v, and %+v", dropped, refused)
	}
}
