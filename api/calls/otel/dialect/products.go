package dialect

import (
	"slices"
	"strings"
)

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

// Turn is the key of metadata with the prompt of a coding agent's session that a step answers.
const Turn = "turn"

// agents is the log records and the spans of Claude Code, Codex and Gemini CLI. Package otlp makes
// spans of the records, under their names. Keys such as model mean something else elsewhere.
var agents = Dialect{
	Name: "Coding agents",
	Of:   strings.Fields("claude_code. com.anthropic.claude_code. codex. codex_ codex- gemini_cli. gemini-cli"),
	Table: []Attribute{
		{"model", ResponseModel, ""},
		{"request_id", ResponseID, ""},
		{"client_request_id", ResponseID, ""}, // of a request that nothing answered
		{"finish_reasons", FinishReason, ""},
		{"service_tier", ServiceTier, ""},
		{"effort", Parameter, "reasoning_effort"},
		{"model_reasoning_effort", Parameter, "reasoning_effort"},
		{"error.message", ErrorMessage, ""},
		{"error", ErrorMessage, ""},

		{"input_tokens", InputTokens, ""},
		{"input_token_count", InputTokens, ""},
		{"output_tokens", OutputTokens, ""},
		{"output_token_count", OutputTokens, ""},
		{"cache_read_tokens", CachedTokens, ""},
		{"cached_token_count", CachedTokens, ""},
		{"cached_content_token_count", CachedTokens, ""},
		{"cache_creation_tokens", CacheWrites, ""},
		{"cache_write_token_count", CacheWrites, ""},
		{"reasoning_token_count", ReasoningTokens, ""},
		{"thoughts_token_count", ReasoningTokens, ""},
		{"codex.usage.reasoning_output_tokens", ReasoningTokens, ""},
		{"cost_usd", Price, ""},
		{"ttft_ms", FirstMillis, ""},

		{"prompt", ShownInput, ""},
		{"user_prompt", ShownInput, ""},
		{"request_text", ShownInput, ""},
		{"tool_input", ShownInput, ""},
		{"tool_parameters", ShownInput, ""},
		{"function_args", ShownInput, ""},
		{"arguments", ShownInput, ""},
		{"full_command", ShownInput, ""},
		{"file_path", ShownInput, ""},
		{"body", ShownInput, ""},
		{"output", ShownOutput, ""},
		{"decision", ShownOutput, ""},

		{"conversation.id", Metadata, SessionKey},
		{"prompt.id", Metadata, Turn},
		{"prompt_id", Metadata, Turn},
		{"gen_ai.prompt.name", Metadata, Turn}, // which names no template
		{"turn.id", Metadata, Turn},
		{"turn_id", Metadata, Turn},
		{"user.email", Metadata, UserKey},
		{"user.account_id", Metadata, UserKey},
		{"query_source", Metadata, "query_source"},
		{"agent.name", Metadata, "agent"},
		{"tool_name", Metadata, "tool"},
		{"function_name", Metadata, "tool"},
	},
	Output: []Source{
		{"response", Said},
		{"response_text", GeminiChunks},
		{"body", Anything},
		{"event tool.output: output", ContentEvent},
	},
}

// Withheld has, by the name of a coding agent's span, the attribute with what was said. The agent
// leaves it out, or covers it, unless its user allows that to be exported.
var Withheld = map[string]string{
	"claude_code.user_prompt": "prompt", "claude_code.interaction": "user_prompt",
	"claude_code.assistant_response": "response", "claude_code.tool_result": "tool_input",
	"codex.user_prompt": "prompt", "gemini_cli.user_prompt": "prompt", "gemini_cli.api_request": "request_text",
	"gemini_cli.api_response": "response_text", "gemini_cli.tool_call": "function_args",
}

// agentKinds are the kinds of coding agents' spans by their names. Several spans report one call,
// of which those are calls that have a response id, or all tokens.
var agentKinds = map[string]Kind{
	"claude_code.api_request": Call, "claude_code.api_error": Call, "claude_code.assistant_response": Call,
	"claude_code.api_response_body": Call, "claude_code.llm_request": Call, "claude_code.interaction": Agent,
	"claude_code.tool": Tool, "claude_code.tool_result": Tool, "codex.tool_result": Tool, "codex.tool_decision": Chain,
	"gemini_cli.api_response": Call, "gemini_cli.api_error": Call, "gemini_cli.tool_call": Tool, "tool_call": Tool,
	"agent_call": Agent,
}

// IsAgent reports whether a span is one of a coding agent.
func IsAgent(s Span) bool {
	scope, name := s.Scope(), s.Name()
	return slices.ContainsFunc(agents.Of, func(prefix string) bool {
		return strings.HasPrefix(scope, prefix) || strings.HasPrefix(name, prefix)
	})
}

// agentKind returns the kind of a coding agent's span: a step, unless its name is known.
func agentKind(s Span) Kind {
	if !IsAgent(s) {
		return ""
	}

	kind, event := kindOf(s.Name(), agentKinds), s.Text("event.kind")
	switch {
	case kind != "":
		return kind
	case !strings.HasPrefix(s.Scope(), "codex") && !strings.HasPrefix(s.Name(), "codex."):
		return Chain
	// Of the pieces of an answer, the one with tokens is the call, or else the one that failed.
	case s.Has(InputTokens), event == "response.failed", event == "" && s.Name() == "codex.sse_event":
		return Call
	case s.Text("tool_name") != "" && s.Text("call_id") != "": // its name is the tool's
		return Tool
	}

	return Chain
}
