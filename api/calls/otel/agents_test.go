package otel_test

import (
	"testing"

	"promptspool/api/calls/otel"
	"promptspool/api/calls/otel/dialect"
)

// agentSpan returns what is read of a span of this name and scope.
func agentSpan(t *testing.T, name, scope string, attributes map[string]any) otel.Span {
	t.Helper()
	body := spanWith(attributes)
	body["span"].(map[string]any)["name"] = name
	body["scope"] = map[string]any{"name": scope}

	return otel.Read(encode(t, body))
}

func TestContentThatAnAgentMayNotExportIsNoTextOfTheModel(t *testing.T) {
	for _, c := range []struct {
		name, key string
		value     any // nil if the agent leaves it out
		exported  bool
	}{
		{"claude_code.user_prompt", "prompt", "<REDACTED>", false},
		{"claude_code.user_prompt", "prompt", "Write a test.", true},
		{"claude_code.assistant_response", "response", "<REDACTED>", false},
		{"claude_code.assistant_response", "response", `{"content":[]}`, true},
		{"claude_code.tool_result", "tool_input", nil, false},
		{"codex.user_prompt", "prompt", "[REDACTED]", false},
		{"gemini_cli.api_request", "request_text", nil, false},
		{"gemini_cli.api_response", "response_text", nil, false},
	} {
		attributes := map[string]any{"model": "m", "request_id": "req_1", "input_token_count": 1}
		if c.value != nil {
			attributes[c.key] = c.value
		}
		s := agentSpan(t, c.name, "", attributes)

		shown, want := s.Input, c.value
		if s.IsCall() {
			shown = ""
			for _, m := range readRequest(t, s.Request()).Output {
				shown += m.Text()
			}
		}
		switch {
		case !c.exported && s.IsCall():
			want = ""
		case !c.exported:
			want = "not exported"
		}
		if shown != want || (s.Metadata["content"] == "not exported") == c.exported {
			t.Errorf("%s with %v shows %q, and its metadata is %v", c.name, c.value, shown, s.Metadata)
		}
	}
}

// Others mean something else by model and input_tokens.
func TestTheKeysOfAnAgentCountForItsOwnSpansOnly(t *testing.T) {
	attributes := map[string]any{"model": "claude-sonnet-5", "input_tokens": 3, "request_id": "r", "cost_usd": 1.5}
	s := agentSpan(t, "claude_code.api_request", "", attributes)
	if s.Kind != dialect.Call || string(s.Price) != "1.5" {
		t.Errorf("an agent's call is %+v", s)
	}
	if s := agentSpan(t, "an app's", "an-app", attributes); s.Kind != dialect.Plain || s.Price != nil {
		t.Errorf("another span is %+v", s)
	}
}
