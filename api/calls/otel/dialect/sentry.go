package dialect

// sentry is Sentry's SDKs. They follow the conventions, with some other names.
var sentry = Dialect{
	Name: "Sentry",
	Table: []Attribute{
		{"gen_ai.response.streaming", Parameter, "stream"},
		{"gen_ai.request.available_tools", Tools, ""},
		{"gen_ai.tool.input", ShownInput, ""},
		{"gen_ai.tool.output", ShownOutput, ""},
		{"gen_ai.response.text", ShownOutput, ""},
		{"gen_ai.usage.input_tokens.cached", CachedTokens, ""},
		{"gen_ai.usage.input_tokens.cache_write", CacheWrites, ""},
		{"gen_ai.usage.output_tokens.reasoning", ReasoningTokens, ""},
		{"gen_ai.response.time_to_first_token", FirstSeconds, ""},
	},
	Input: []Source{
		{"gen_ai.request.messages", Messages},
		{"gen_ai.embeddings.input", EmbeddedTexts},
	},
	Output: []Source{{"gen_ai.response.text, .tool_calls", SentryResponse}},
}
