package dialect

import "strings"

// promptLayer is the hosted service's own SDKs and agent plugins.
var promptLayer = Dialect{
	Name: "PromptLayer",
	Table: []Attribute{
		{"promptlayer.request_log.managed", Decides, ""},
		{"node_type", Decides, ""},
		{"promptlayer.provider.type", Provider, ""},
		{"promptlayer.prompt.name", PromptName, ""},
		{"promptlayer.prompt.id", PromptName, ""},
		{"promptlayer.prompt.version", PromptVersion, ""},
		{"promptlayer.prompt.label", PromptLabel, ""},
		{"promptlayer.metadata.*", Metadata, ""},
		{"promptlayer.telemetry.source", Metadata, "source"},
		{"openai_agents.workflow_name", Metadata, "workflow"},
		{"openai_agents.agent.name", Metadata, "agent"},
		{"promptlayer.api.type", Parameter, "api_type"},
		{"openai_agents.response.raw_json", RawResponse, ""},
		{"function_input", ShownInput, ""},
		{"function_output", ShownOutput, ""},
	},
}

// promptLayerKind reads the type of a node. Agent plugins write calls of models as the use
// of a template; those follow the conventions beside it.
func promptLayerKind(s Span) Kind {
	switch s.Text("node_type") {
	case "LLM_CALL":
		return Call
	case "LLM_SESSION":
		return Agent
	case "CODE_EXECUTION":
		return Tool
	case "PROMPT_TEMPLATE":
		if !s.Has(RequestModel, ResponseModel) {
			return Chain
		}
	}

	return ""
}

// langfuse is Langfuse's SDKs from version 3 on.
var langfuse = Dialect{
	Name: "Langfuse",
	Table: []Attribute{
		{"langfuse.observation.type", Decides, ""},
		{"langfuse.observation.model.name", ResponseModel, ""},
		{"langfuse.observation.model.parameters", Parameters, ""},
		{"langfuse.observation.usage_details", UsageObject, ""},
		{"langfuse.observation.cost_details", Price, ""},
		{"langfuse.observation.completion_start_time", FirstAt, ""},
		{"langfuse.observation.input", ShownInput, ""},
		{"langfuse.observation.output", ShownOutput, ""},
		{"langfuse.observation.level", Status, ""},
		{"langfuse.observation.status_message", ErrorMessage, ""},
		{"langfuse.observation.prompt.name", PromptName, ""},
		{"langfuse.observation.prompt.version", PromptVersion, ""},
		{"langfuse.trace.tags", Tags, ""},
		{"langfuse.user.id", Metadata, UserKey},
		{"langfuse.observation.metadata.userId", Metadata, UserKey},
		{"langfuse.trace.metadata.langfuse_user_id", Metadata, UserKey},
		{"langfuse.session.id", Metadata, SessionKey},
		{"langfuse.observation.metadata.sessionId", Metadata, SessionKey},
		{"langfuse.trace.metadata.langfuse_session_id", Metadata, SessionKey},
		{"langfuse.environment", Metadata, EnvironmentKey},
		{"langfuse.release", Metadata, "release"},
		{"langfuse.version", Metadata, "version"},
		{"langfuse.trace.name", Metadata, "trace"},
		{"langfuse.observation.metadata", MetadataMap, ""},
		{"langfuse.observation.metadata.*", Metadata, ""},
		{"langfuse.trace.metadata", MetadataMap, ""},
		{"langfuse.trace.metadata.*", Metadata, ""},
	},
	Input:  []Source{{"langfuse.observation.input", Anything}},
	Output: []Source{{"langfuse.observation.output", Anything}},
}

// langfuseKinds are the types of observations.
var langfuseKinds = map[string]Kind{
	"generation": Call, "embedding": Embedding, "agent": Agent, "tool": Tool,
	"chain": Chain, "span": Chain, "event": Chain, "retriever": Retriever,
	"evaluator": Evaluator, "guardrail": Evaluator,
}

// langSmith is LangSmith's exporter.
var langSmith = Dialect{
	Name: "LangSmith",
	Table: []Attribute{
		{"langsmith.span.kind", Decides, ""},
		{"langsmith.metadata.ls_provider", Provider, ""},
		{"langsmith.metadata.ls_model_name", RequestModel, ""},
		{"langsmith.span.tags", Tags, ""},
		{"langsmith.metadata.thread_id", Metadata, SessionKey},
		{"langsmith.metadata.session_id", Metadata, SessionKey},
		{"langsmith.metadata.conversation_id", Metadata, SessionKey},
		{"langsmith.metadata.user_id", Metadata, UserKey},
		{"langsmith.metadata.*", Metadata, ""},
		{"langsmith.trace.name", Metadata, "trace"},
		{"langsmith.trace.session_name", Metadata, "project"},
		{"gen_ai.prompt", ShownInput, ""},
		{"gen_ai.completion", ShownOutput, ""},
	},
}

// langSmithKinds are the kinds of langsmith.span.kind.
var langSmithKinds = map[string]Kind{
	"llm": Call, "embedding": Embedding, "chain": Chain, "tool": Tool,
	"retriever": Retriever, "prompt": Chain, "parser": Chain, "agent": Agent,
}

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

// isBraintrustCall recognises the calls of Braintrust's SDK for Go, which have no type.
func isBraintrustCall(s Span) bool {
	return strings.Contains(s.Text("braintrust.metrics"), "prompt_tokens")
}
