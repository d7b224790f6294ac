package dialect

import "strings"

// braintrust is Braintrust's SDKs. Package otel takes the members of its JSON objects for
// attributes, as apps without an SDK write them.
var braintrust = Dialect{
	Name: "Braintrust",
	Table: []Attribute{
		{"braintrust.span_attributes.type", Decides, ""},
		{"braintrust.metadata.provider", Provider, ""},
		{"braintrust.metadata.model", RequestModel, ""},
		{"braintrust.metadata.id", ResponseID, ""},
		{"braintrust.metadata.tools", Tools, ""},
		{"braintrust.metadata.temperature", Parameter, "temperature"},
		{"braintrust.output_json", RawResponse, ""},
		{"braintrust.input_json", ShownInput, ""},
		{"braintrust.input", ShownInput, ""},
		{"braintrust.output_json", ShownOutput, ""},
		{"braintrust.output", ShownOutput, ""},
		{"braintrust.metrics.prompt_tokens", InputTokens, ""},
		{"braintrust.metrics.completion_tokens", OutputTokens, ""},
		{"braintrust.metrics.prompt_cached_tokens", CachedTokens, ""},
		{"braintrust.metrics.prompt_cache_creation_tokens", CacheWrites, ""},
		{"braintrust.metrics.completion_reasoning_tokens", ReasoningTokens, ""},
		{"braintrust.metrics.prompt_audio_tokens", InputDetail, "audio_tokens"},
		{"braintrust.metrics.time_to_first_token", FirstSeconds, ""},
		{"braintrust.parent", Metadata, "project"},
		{"braintrust.tags", Tags, ""},
	},
	Input:  []Source{{"braintrust.input_json", Anything}},
	Output: []Source{{"braintrust.output_json", Anything}},
}

// braintrustKinds are the types of braintrust.span_attributes.
var braintrustKinds = map[string]Kind{
	"llm": Call, "tool": Tool, "task": Chain, "function": Chain, "eval": Evaluator, "score": Evaluator,
	"classifier": Evaluator,
}

func braintrustKind(s Span) Kind {
	if kind := kindOf(s.Text("braintrust.span_attributes.type"), braintrustKinds); kind != "" {
		return kind
	}
	if strings.Contains(s.Text("braintrust.metrics"), "prompt_tokens") { // Go's calls have no type
		return Call
	}

	return ""
}
