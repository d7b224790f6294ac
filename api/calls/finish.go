package calls

import "strings"

// normalFinish is the normal form of the words of providers and libraries for why an answer ended.
var normalFinish = func() map[string]string {
	forms := map[string]string{}
	for form, words := range map[string]string{
		"stop":       "stop end_turn stop_sequence completed complete end finished eos eos_token",
		"length":     "length max_tokens max_output_tokens model_length model_context_window_exceeded",
		"tool_calls": "tool_calls tool_call tool_use function_call",
		"content_filter": "content_filter content_filtered safety recitation blocklist prohibited_content spii " +
			"image_safety guardrail_intervened refusal",
		"error": "error error_toxic failed malformed_function_call unexpected_tool_call",
	} {
		for word := range strings.FieldsSeq(words) {
			forms[word] = form
		}
	}

	return forms
}()

// NormalFinish returns the normal form of a finish reason. That is stop, length, tool_calls,
// content_filter or error, and otherwise the word itself, in lower case.
func NormalFinish(reason string) string {
	word := strings.ToLower(strings.ReplaceAll(reason, "-", "_"))
	if form, known := normalFinish[word]; known {
		return form
	}

	return word
}
