package dialect

// openInference is Arize's OpenInference.
var openInference = Dialect{
	Name: "OpenInference",
	Table: []Attribute{
		{"openinference.span.kind", Decides, ""},
		{"llm.provider", Provider, ""},
		{"llm.system", Provider, ""},
		{"llm.response.model_name", ResponseModel, ""},
		{"llm.model_name", ResponseModel, ""},
		{"embedding.model_name", ResponseModel, ""},
		{"llm.request.model_name", RequestModel, ""},
		{"llm.finish_reason", FinishReason, ""},
		{"llm.invocation_parameters", Parameters, ""},
		{"llm.tools.N.tool.json_schema", Tools, ""},
		{"output.value", RawResponse, ""},
		{"input.value", ShownInput, ""},
		{"output.value", ShownOutput, ""},

		{"llm.token_count.prompt", InputTokens, ""},
		{"llm.token_count.completion", OutputTokens, ""},
		{"llm.token_count.prompt_details.cache_read", CachedTokens, ""},
		{"llm.token_count.prompt_details.cache_write", CacheWrites, ""},
		{"llm.token_count.prompt_details.audio", InputDetail, "audio_tokens"},
		{"llm.token_count.completion_details.reasoning", ReasoningTokens, ""},
		{"llm.token_count.completion_details.audio", OutputDetail, "audio_tokens"},
		{"llm.token_count.total", TotalTokens, ""},
		{"llm.cost.total", Price, ""},

		{"llm.prompt_template.version", PromptVersion, ""},
		{"llm.prompt_template.variables", PromptVariables, ""},
		{"tag.tags", Tags, ""},
		{"metadata", MetadataMap, ""},
		{"agent.name", Metadata, "agent"},
	},
	Input: []Source{
		{"llm.input_messages.N.message.*", InferenceMessages},
		{"llm.prompts.N.prompt.text", InferenceTexts},
		{"embedding.embeddings.N.embedding.text", InferenceEmbeddings},
		{"input.value", Anything},
	},
	Output: []Source{
		{"llm.output_messages.N.message.*", InferenceMessages},
		{"llm.choices.N.completion.text", InferenceTexts},
		{"output.value", Anything},
	},
}

// inferenceKinds are the kinds of openinference.span.kind.
var inferenceKinds = map[string]Kind{
	"llm": Call, "embedding": Embedding, "chain": Chain, "retriever": Retriever,
	"reranker": Retriever, "tool": Tool, "agent": Agent, "guardrail": Evaluator,
	"evaluator": Evaluator, "prompt": Chain,
}

func openInferenceKind(s Span) Kind {
	return kindOf(s.Text("openinference.span.kind"), inferenceKinds)
}
