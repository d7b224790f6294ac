package otel

import "strings"

// promptLayer is the hosted service's own SDKs and agent plugins.
var promptLayer = dialect{
	name: "PromptLayer",
	table: []attribute{
		{"promptlayer.request_log.managed", decides, ""},
		{"node_type", decides, ""},
		{"promptlayer.provider.type", provider, ""},
		{"promptlayer.prompt.name", promptName, ""},
		{"promptlayer.prompt.id", promptName, ""},
		{"promptlayer.prompt.version", promptVersion, ""},
		{"promptlayer.prompt.label", promptLabel, ""},
		{"promptlayer.metadata.*", metadata, ""},
		{"promptlayer.telemetry.source", metadata, "source"},
		{"openai_agents.workflow_name", metadata, "workflow"},
		{"openai_agents.agent.name", metadata, "agent"},
		{"promptlayer.api.type", parameter, "api_type"},
		{"openai_agents.response.raw_json", rawResponse, ""},
		{"function_input", shownInput, ""},
		{"function_output", shownOutput, ""},
	},
}

// loggedAs returns the span id under which the SDK logs the span's call itself, or "". Wrapped
// clients and runs use the id of the span without a mark.
func (s *span) loggedAs() string {
	id := strings.ToLower(s.body.spanID.text())
	if s.own.is("promptlayer.request_log.managed") {
		if other := s.own.text("promptlayer.request_log.span_id"); other != "" {
			id = strings.ToLower(other)
		}
		return id
	}

	if s.scope != "" && !strings.HasPrefix(s.scope, "promptlayer") {
		return ""
	}
	run := s.body.name.text() == "PromptLayer Run"
	wrapped := s.scope == "promptlayer.promptlayer_mixins" && s.own.text("provider") != "" &&
		s.own.text("function_name") != ""
	// JavaScript's say nothing but how the call ended.
	script := s.own.text("response_status") == "success" && s.own.text("function_input") != "" &&
		s.find(requestModel, responseModel) == nil
	if run || wrapped || script {
		return id
	}

	return ""
}

// promptLayerKind reads the type of a node. Agent plugins write calls of models as the use
// of a template; those follow the conventions beside it.
func promptLayerKind(s *span) Kind {
	switch s.own.text("node_type") {
	case "LLM_CALL":
		return KindCall
	case "LLM_SESSION":
		return KindAgent
	case "CODE_EXECUTION":
		return KindTool
	case "PROMPT_TEMPLATE":
		if s.find(requestModel, responseModel) == nil {
			return KindChain
		}
	}

	return ""
}
