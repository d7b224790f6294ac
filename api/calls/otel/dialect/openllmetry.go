package dialect

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

// openLLMetryKind returns the kind of a call first: LlamaIndex marks calls as tasks too.
func openLLMetryKind(s Span) Kind {
	if request := kindOf(s.Text("llm.request.type"), requestTypes); request != "" {
		return request
	}

	return kindOf(s.Text("traceloop.span.kind"), entityKinds)
}
