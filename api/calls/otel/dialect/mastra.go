package dialect

// mastra is Mastra's exporter. Its spans follow the conventions, but for what goes into a call: that is
// in the span of the step around it, which reports the same call.
var mastra = Dialect{
	Name: "Mastra",
	Table: []Attribute{
		{"mastra.span.type", Decides, ""},
		{"mastra.completion_start_time", FirstAt, ""},
		{"gen_ai.usage.cached_input_tokens", CachedTokens, ""},
		{"gen_ai.usage.audio_input_tokens", InputDetail, "audio_tokens"},
		{"gen_ai.usage.audio_output_tokens", OutputDetail, "audio_tokens"},
		{"mastra.<type>.input", ShownInput, ""},
		{"mastra.<type>.output", ShownOutput, ""},
		{"mastra.metadata.userId", Metadata, UserKey},
		{"mastra.metadata.sessionId", Metadata, SessionKey},
		{"mastra.metadata.threadId", Metadata, SessionKey},
		{"mastra.metadata.environment", Metadata, EnvironmentKey},
		{"mastra.metadata.body", RawResponse, ""},
		{"mastra.metadata.headers", Unread, ""},
		{"mastra.metadata.modelMetadata", Unread, ""},
		{"mastra.metadata.*", Metadata, ""},
		{"mastra.tags", Tags, ""},
	},
	Input:  []Source{{"mastra.model_step.input", Anything}},
	Output: []Source{{"mastra.model_step.output", TextAndCalls}},
}

// mastraKind takes a step for a report of its call. Steps of older versions are around no span of
// a call: there the generation is the call, with all its steps.
func mastraKind(s Span) Kind {
	if s.Text("mastra.span.type") == "model_step" && s.Text("gen_ai.operation.name") == "agent_step" &&
		s.Text("mastra.model_step.input")+s.Text("mastra.model_step.output") != "" {
		return Call
	}

	return ""
}
