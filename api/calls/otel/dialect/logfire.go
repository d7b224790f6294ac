package dialect

import "strings"

// logfire is Logfire's instrumentation of OpenAI's and Anthropic's clients. It follows the
// conventions, and has the provider's request and response as JSON.
var logfire = Dialect{
	Name: "Logfire",
	Table: []Attribute{
		{"gen_ai.usage.raw", UsageObject, ""},
		{"duration", Seconds, ""},
		{"request_data", ShownInput, ""},
		{"response_data", ShownOutput, ""},
	},
	Input:  []Source{{"request_data", Anything}},
	Output: []Source{{"response_data", TextAndCalls}},
}

// logfireKind tells the two spans of a streamed call apart. One is the request, which ends when the
// stream begins; the other, a log without a length, has what came back, and is the call.
func logfireKind(s Span) Kind {
	if strings.HasPrefix(s.Scope(), "logfire.") && s.Text("gen_ai.operation.name") != "" && !s.Failed() &&
		s.Text("response_data")+s.Text("gen_ai.output.messages")+s.Text("events") == "" &&
		!s.Has(InputTokens, OutputTokens) {
		return Chain
	}

	return ""
}
