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

// openLLMetry is Traceloop's OpenLLMetry.
var openLLMetry = Dialect{
	Name: "OpenLLMetry",
	Table: []Attribute{
		{"llm.request.type", Decides, ""},
		{"traceloop.span.kind", Decides, ""},
		{"llm.is_streaming", Parameter, "stream"},
		{"llm.frequency_penalty", Parameter, "frequency_penalty"},
		{"llm.presence_penalty", Parameter, "presence_penalty"},
		{"llm.top_k", Parameter, "top_k"},
		{"llm.chat.stop_sequences", Parameter, "stop"},
		{"llm.request.functions.N.*", Tools, ""},
		{"llm.usage.total_tokens", TotalTokens, ""},
		{"traceloop.entity.input", ShownInput, ""},
		{"traceloop.entity.output", ShownOutput, ""},
		{"traceloop.prompt.key", PromptName, ""},
		{"traceloop.prompt.version", PromptVersion, ""},
		{"traceloop.prompt.template_variables", PromptVariables, ""},
		{"llm.user", Metadata, UserKey},
		{"traceloop.association.properties.user_id", Metadata, UserKey},
		{"traceloop.association.properties.session_id", Metadata, SessionKey},
		{"traceloop.association.properties.thread_id", Metadata, SessionKey},
		{"traceloop.association.properties.*", Metadata, ""},
		{"traceloop.workflow.name", Metadata, "workflow"},
	},
	Input: []Source{
		{"gen_ai.prompt.N.*", Flattened},
		{"traceloop.entity.input", Anything},
	},
	Output: []Source{
		{"gen_ai.completion.N.*", Flattened},
		{"traceloop.entity.output", Anything},
	},
}

// requestTypes are those of llm.request.type, entityKinds those of traceloop.span.kind.
var (
	requestTypes = map[string]Kind{
		"chat": Call, "completion": Call, "embedding": Embedding, "rerank": Retriever,
	}
	entityKinds = map[string]Kind{
		"workflow": Chain, "task": Chain, "agent": Agent, "tool": Tool,
	}
)

// liteLLM is LiteLLM's own callback. It follows the conventions, and flattens messages as
// OpenLLMetry did.
var liteLLM = Dialect{
	Name: "LiteLLM",
	Table: []Attribute{
		{"metadata.user_api_key_user_id", Metadata, UserKey},
		{"metadata.user_api_key_alias", Metadata, "key_alias"},
		{"metadata.user_api_key_team_alias", Metadata, "team"},
		{"metadata.requester_metadata", MetadataMap, ""},
	},
}
