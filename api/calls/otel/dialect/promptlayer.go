package dialect

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
