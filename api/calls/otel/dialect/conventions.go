package dialect

import "strings"

// genAI is OpenTelemetry's own GenAI semantic conventions, of all ages.
var genAI = Dialect{
	Name: "GenAI semantic conventions",
	Table: []Attribute{
		{"gen_ai.operation.name", Decides, ""},
		{"gen_ai.provider.name", Provider, ""},
		{"gen_ai.system", Provider, ""},
		{"gen_ai.response.model", ResponseModel, ""},
		{"gen_ai.request.model", RequestModel, ""},
		{"gen_ai.response.id", ResponseID, ""},
		{"gen_ai.response.finish_reasons", FinishReason, ""},
		{"openai.response.service_tier", ServiceTier, ""},
		{"gen_ai.openai.response.service_tier", ServiceTier, ""},

		{"gen_ai.request.temperature", Parameter, "temperature"},
		{"gen_ai.request.top_p", Parameter, "top_p"},
		{"gen_ai.request.top_k", Parameter, "top_k"},
		{"gen_ai.request.max_tokens", Parameter, "max_tokens"},
		{"gen_ai.request.frequency_penalty", Parameter, "frequency_penalty"},
		{"gen_ai.request.presence_penalty", Parameter, "presence_penalty"},
		{"gen_ai.request.stop_sequences", Parameter, "stop"},
		{"gen_ai.request.seed", Parameter, "seed"},
		{"gen_ai.request.choice.count", Parameter, "n"},
		{"gen_ai.request.stream", Parameter, "stream"},
		{"gen_ai.request.encoding_formats", Parameter, "encoding_formats"},
		{"gen_ai.request.reasoning.level", Parameter, "reasoning_effort"},
		{"gen_ai.request.previous_response.id", Parameter, "previous_response_id"},
		{"gen_ai.output.type", Parameter, "output_type"},
		{"openai.request.service_tier", Parameter, "service_tier"},

		{"gen_ai.system_instructions", System, ""},
		{"gen_ai.system_instructions_ref", System, ""},
		{"gen_ai.tool.definitions", Tools, ""},
		{"gen_ai.tool.call.arguments", ShownInput, ""},
		{"gen_ai.tool.call.result", ShownOutput, ""},

		{"gen_ai.usage.input_tokens", InputTokens, ""},
		{"gen_ai.usage.prompt_tokens", InputTokens, ""},
		{"gen_ai.usage.output_tokens", OutputTokens, ""},
		{"gen_ai.usage.completion_tokens", OutputTokens, ""},
		{"gen_ai.usage.cache_read.input_tokens", CachedTokens, ""},
		{"gen_ai.usage.cache_read_input_tokens", CachedTokens, ""},
		{"gen_ai.usage.cache_read_tokens", CachedTokens, ""},
		{"gen_ai.usage.details.cache_read_tokens", CachedTokens, ""},
		{"gen_ai.usage.input_cached_tokens", CachedTokens, ""},
		{"gen_ai.usage.cache_creation.input_tokens", CacheWrites, ""},
		{"gen_ai.usage.cache_write.input_tokens", CacheWrites, ""},
		{"gen_ai.usage.cache_creation_input_tokens", CacheWrites, ""},
		{"gen_ai.usage.cache_write_tokens", CacheWrites, ""},
		{"gen_ai.usage.cache_write_input_tokens", CacheWrites, ""},
		{"gen_ai.usage.details.cache_write_tokens", CacheWrites, ""},
		{"gen_ai.usage.reasoning.output_tokens", ReasoningTokens, ""},
		{"gen_ai.usage.reasoning_tokens", ReasoningTokens, ""},
		{"gen_ai.usage.details.reasoning_tokens", ReasoningTokens, ""},
		{"gen_ai.usage.audio.input_tokens", InputDetail, "audio_tokens"},
		{"gen_ai.usage.audio.output_tokens", OutputDetail, "audio_tokens"},
		{"gen_ai.usage.text.input_tokens", InputDetail, "text_tokens"},
		{"gen_ai.usage.text.output_tokens", OutputDetail, "text_tokens"},
		{"gen_ai.usage.image.input_tokens", InputDetail, "image_tokens"},
		{"gen_ai.usage.image.output_tokens", OutputDetail, "image_tokens"},
		{"gen_ai.usage.video.input_tokens", InputDetail, "video_tokens"},
		{"gen_ai.usage.video.output_tokens", OutputDetail, "video_tokens"},
		{"gen_ai.usage.total_tokens", TotalTokens, ""},
		{"gen_ai.usage.cost", Price, ""},
		{"gen_ai.cost.total_cost", Price, ""},
		{"gen_ai.response.time_to_first_chunk", FirstSeconds, ""},
		{"gen_ai.server.time_to_first_token", FirstMillis, ""}, // Strands'

		{"error.type", ErrorType, ""},
		{"gen_ai.prompt.name", PromptName, ""},
		{"gen_ai.prompt.version", PromptVersion, ""},
		{"gen_ai.prompt.variable.*", PromptVariable, ""},
		{"gen_ai.conversation.id", Metadata, SessionKey},
		{"gen_ai.agent.name", Metadata, "agent"},
		{"gen_ai.workflow.name", Metadata, "workflow"},

		// Any instrumentation may have these.
		{"user.id", Metadata, UserKey},
		{"enduser.id", Metadata, UserKey},
		{"session.id", Metadata, SessionKey},
		{"deployment.environment.name", Metadata, EnvironmentKey},
		{"deployment.environment", Metadata, EnvironmentKey},
		{"service.name", Metadata, ServiceKey},
	},
	Input: []Source{
		{"gen_ai.input.messages", Messages},
		{
			"events gen_ai.system.message, gen_ai.user.message, gen_ai.assistant.message, gen_ai.tool.message",
			MessageEvents,
		},
		{"gen_ai.prompt", Anything},
		{"gen_ai.input.messages_ref", Anything}, // an address, where the content is stored elsewhere
		{"event gen_ai.content.prompt: gen_ai.prompt", ContentEvent},
	},
	Output: []Source{
		{"gen_ai.output.messages", Messages},
		{"event gen_ai.choice", MessageEvents},
		{"gen_ai.completion", Anything},
		{"gen_ai.output.messages_ref", Anything},
		{"event gen_ai.content.completion: gen_ai.completion", ContentEvent},
	},
}

// operations are the kinds of gen_ai.operation.name, with words of libraries that follow
// the conventions in part.
var operations = map[string]Kind{
	"chat": Call, "text_completion": Call, "generate_content": Call, "completion": Call,
	"generate": Call, "acompletion": Call, "atext_completion": Call, "aresponses": Call,
	"responses": Call, "anthropic_messages": Call, "chat_completion": Call, "chat.completions": Call,
	"text.completions": Call, "image": Call, "image_generation": Call, "audio": Call, "llm_call": Call,
	"embeddings": Embedding, "embedding": Embedding, "aembedding": Embedding,
	"retrieval": Retriever, "rerank": Retriever, "arerank": Retriever,
	"execute_tool": Tool,
	"create_agent": Agent, "invoke_agent": Agent,
}

func genAIKind(s Span) Kind {
	kind := kindOf(s.Text("gen_ai.operation.name"), operations)
	if kind == Embedding && s.Scope() == vercel7 && !s.Has(InputTokens, ErrorType) {
		// Around the call, which has the usage.
		return Chain
	}

	return kind
}

// pydantic is Pydantic AI, and Logfire around it. It follows the conventions.
var pydantic = Dialect{
	Name: "Pydantic AI",
	Table: []Attribute{
		{"operation.cost", Price, ""},
		{"pydantic_ai.all_messages", ShownInput, ""},
		{"all_messages_events", ShownInput, ""},
		{"tool_arguments", ShownInput, ""},
		{"final_result", ShownOutput, ""},
		{"tool_response", ShownOutput, ""},
		{"agent_name", Metadata, "agent"},
	},
	Input:  []Source{{"events", EventList}},
	Output: []Source{{"events", EventList}},
}

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

// isLogfireRequest tells the two spans of a streamed call apart. One is the request, which ends when the
// stream begins; the other, a log without a length, has what came back, and is the call.
func isLogfireRequest(s Span) bool {
	return strings.HasPrefix(s.Scope(), "logfire.") && s.Text("gen_ai.operation.name") != "" && !s.Failed() &&
		s.Text("response_data")+s.Text("gen_ai.output.messages")+s.Text("events") == "" &&
		!s.Has(InputTokens, OutputTokens)
}

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

// springAI is Spring AI, which follows the conventions. All its values are texts.
var springAI = Dialect{
	Name: "Spring AI",
	Table: []Attribute{
		{"spring.ai.kind", Decides, ""},
		{"spring.ai.chat.client.user.text", ShownInput, ""},
		{"spring.ai.tool.call.arguments", ShownInput, ""},
		{"spring.ai.tool.call.result", ShownOutput, ""},
		{"spring.ai.chat.client.conversation.id", Metadata, SessionKey},
	},
}

// springKinds are the kinds of spring.ai.kind.
var springKinds = map[string]Kind{
	"chat_client": Chain, "advisor": Chain, "tool_call": Tool, "vector_store": Retriever,
}

// anthropic is Anthropic's own SDKs, which follow the conventions.
var anthropic = Dialect{
	Name: "Anthropic SDK",
	Table: []Attribute{
		{"anthropic.message.stop_reason", FinishReason, ""},
		{"anthropic.response.service_tier", ServiceTier, ""},
		{"anthropic.request.service_tier", Parameter, "service_tier"},
	},
}

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
