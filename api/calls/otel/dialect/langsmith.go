package dialect

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

// langSmithKind comes before the conventions' operation, which prompts and retrievers have
// too.
func langSmithKind(s Span) Kind {
	return kindOf(s.Text("langsmith.span.kind"), langSmithKinds)
}
