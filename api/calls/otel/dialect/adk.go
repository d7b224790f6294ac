package dialect

// adk is Google's Agent Development Kit.
var adk = Dialect{
	Name: "Google ADK",
	Table: []Attribute{
		{"gcp.vertex.agent.llm_response", UsageWithin, "usageMetadata"},
		{"gcp.vertex.agent.tool_call_args", ShownInput, ""},
		{"gcp.vertex.agent.tool_response", ShownOutput, ""},
		{"gcp.vertex.agent.data", ShownInput, ""},
		{"gcp.vertex.agent.session_id", Metadata, SessionKey},
		{"gcp.vertex.agent.invocation_id", Metadata, "invocation_id"},
	},
	Input:  []Source{{"gcp.vertex.agent.llm_request", ADKRequest}},
	Output: []Source{{"gcp.vertex.agent.llm_response", ADKResponse}},
}

func adkKind(s Span) Kind {
	if s.Name() == "call_llm" && s.Text("gcp.vertex.agent.llm_request") != "" {
		return Call
	}

	return ""
}
