package dialect

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

func langfuseKind(s Span) Kind {
	return kindOf(s.Text("langfuse.observation.type"), langfuseKinds)
}
