package otel

// langSmith is LangSmith's exporter.
var langSmith = dialect{
	name: "LangSmith",
	table: []attribute{
		{"langsmith.span.kind", decides, ""},
		{"langsmith.metadata.ls_provider", provider, ""},
		{"langsmith.metadata.ls_model_name", requestModel, ""},
		{"langsmith.span.tags", tags, ""},
		{"langsmith.metadata.thread_id", metadata, sessionKey},
		{"langsmith.metadata.session_id", metadata, sessionKey},
		{"langsmith.metadata.conversation_id", metadata, sessionKey},
		{"langsmith.metadata.user_id", metadata, userKey},
		{"langsmith.metadata.*", metadata, ""},
		{"langsmith.trace.name", metadata, "trace"},
		{"langsmith.trace.session_name", metadata, "project"},
		{"gen_ai.prompt", shownInput, ""},
		{"gen_ai.completion", shownOutput, ""},
	},
}

// langSmithKinds are the kinds of langsmith.span.kind.
var langSmithKinds = map[string]Kind{
	"llm": KindCall, "embedding": KindEmbedding, "chain": KindChain, "tool": KindTool,
	"retriever": KindRetriever, "prompt": KindChain, "parser": KindChain, "agent": KindAgent,
}

// langSmithKind comes before the conventions' operation, which prompts and retrievers have
// too.
func langSmithKind(s *span) Kind {
	return kinds(s.own.text("langsmith.span.kind"), langSmithKinds)
}
