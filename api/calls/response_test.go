package calls_test

import (
	"testing"

	"promptspool/api/calls"
)

func TestAFinishReasonHasANormalForm(t *testing.T) {
	for word, want := range map[string]string{
		"stop": "stop", "STOP": "stop", "end_turn": "stop", "completed": "stop",
		"max_tokens": "length", "MAX_TOKENS": "length", "length": "length",
		"tool_calls": "tool_calls", "tool-calls": "tool_calls", "tool_use": "tool_calls", "function_call": "tool_calls",
		"content-filter": "content_filter", "SAFETY": "content_filter", "refusal": "content_filter",
		"MALFORMED_FUNCTION_CALL": "error",
		"compaction":              "compaction", "": "",
	} {
		if got := calls.NormalFinish(word); got != want {
			t.Errorf("%q is %q, want %q", word, got, want)
		}
	}
}
