package dialect

import (
	"slices"
	"strings"
)

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
