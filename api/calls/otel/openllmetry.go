package otel

// openLLMetry is Traceloop's OpenLLMetry.
var openLLMetry = dialect{
	name: "OpenLLMetry",
	table: []attribute{
		{"llm.request.type", decides, ""},
		{"traceloop.span.kind", decides, ""},
		{"llm.is_streaming", parameter, "stream"},
		{"llm.frequency_penalty", parameter, "frequency_penalty"},
		{"llm.presence_penalty", parameter, "presence_penalty"},
		{"llm.top_k", parameter, "top_k"},
		{"llm.chat.stop_sequences", parameter, "stop"},
		{"llm.request.functions.N.*", tools, ""},
		{"traceloop.entity.input", shownInput, ""},
		{"traceloop.entity.output", shownOutput, ""},
		{"traceloop.prompt.key", promptName, ""},
		{"traceloop.prompt.version", promptVersion, ""},
		{"traceloop.prompt.template_variables", promptVariables, ""},
		{"llm.user", metadata, userKey},
		{"traceloop.association.properties.user_id", metadata, userKey},
		{"traceloop.association.properties.session_id", metadata, sessionKey},
		{"traceloop.association.properties.*", metadata, ""},
		{"traceloop.workflow.name", metadata, "workflow"},
	},
	input: []source{
		{"gen_ai.prompt.N.*", flattened},
		{"traceloop.entity.input", anything},
	},
	output: []source{
		{"gen_ai.completion.N.*", flattened},
		{"traceloop.entity.output", anything},
	},
}

// requestTypes are those of llm.request.type, entityKinds those of traceloop.span.kind.
var (
	requestTypes = map[string]Kind{
		"chat": KindCall, "completion": KindCall, "embedding": KindEmbedding, "rerank": KindRetriever,
	}
	entityKinds = map[string]Kind{
		"workflow": KindChain, "task": KindChain, "agent": KindAgent, "tool": KindTool,
	}
)

// openLLMetryKind returns the kind of a call first: LlamaIndex marks calls as tasks too.
func openLLMetryKind(s *span) Kind {
	if request := kinds(s.own.text("llm.request.type"), requestTypes); request != "" {
		return request
	}

	return kinds(s.own.text("traceloop.span.kind"), entityKinds)
}
