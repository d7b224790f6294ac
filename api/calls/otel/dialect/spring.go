package dialect

// springAI is Spring AI, which follows the conventions. All its values are texts.
var springAI = Dialect{
	Name: "Spring AI",
	Table: []Attribute{
		{"spring.ai.kind", Decides, ""},
		{"spring.ai.chat.client.user.text", ShownInput, ""},
		{"spring.ai.tool.call.arguments", ShownInput, ""},
		{"spring.ai.tool.call.result", ShownOutput, ""},
		{"spring.ai.chat.client.conversation.id", Metadata, SessionKey},
	},
}

// springKinds are the kinds of spring.ai.kind.
var springKinds = map[string]Kind{
	"chat_client": Chain, "advisor": Chain, "tool_call": Tool, "vector_store": Retriever,
}

func springKind(s Span) Kind { return kindOf(s.Text("spring.ai.kind"), springKinds) }
