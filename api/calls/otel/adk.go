package otel

// adk is Google's Agent Development Kit.
var adk = dialect{
	name: "Google ADK",
	table: []attribute{
		{"gcp.vertex.agent.tool_call_args", shownInput, ""},
		{"gcp.vertex.agent.tool_response", shownOutput, ""},
		{"gcp.vertex.agent.data", shownInput, ""},
		{"gcp.vertex.agent.session_id", metadata, sessionKey},
		{"gcp.vertex.agent.invocation_id", metadata, "invocation_id"},
	},
	input:  []source{{"gcp.vertex.agent.llm_request", adkIn}},
	output: []source{{"gcp.vertex.agent.llm_response", adkOut}},
}

func adkKind(s *span) Kind {
	switch name := s.body.name.text(); {
	case s.own.get("gcp.vertex.agent.llm_request").absent():
	case name == "call_llm":
		return KindCall
	}

	return ""
}

// adkIn reads Gemini's request.
func adkIn(s *span, key, _ string) conversation {
	request := s.own.get(key).inner()
	if !request.has("contents", "config") { // {} and <not serializable> are nothing
		return conversation{}
	}

	return conversation{raw: request}
}

// adkOut reads a response, which is one candidate of Gemini's with its usage beside it.
func adkOut(s *span, key, _ string) conversation {
	response := s.own.get(key).inner()
	if !response.has("content", "finish_reason", "usage_metadata") {
		return conversation{}
	}

	members := map[string]any{"candidates": []map[string]value{{
		"content": response.at("content"), "finish_reason": response.at("finish_reason"),
	}}}
	if counts := response.at("usage_metadata"); counts.isObject() {
		members["usage_metadata"] = counts
	}

	return conversation{raw: encoded(members)}
}
