package dialect

import "strings"

// Kind is what a span is the record of.
type Kind string

// The kinds of spans. Only the first two are model calls.
const (
	Call      Kind = "llm"
	Embedding Kind = "embedding"
	Agent     Kind = "agent"
	Tool      Kind = "tool"
	Retriever Kind = "retriever"
	Evaluator Kind = "evaluator"
	Chain     Kind = "chain" // any other step that the app or its framework named
	Plain     Kind = "plain" // a span that is about none of these
)

// Span is what the kind of a span depends on.
type Span interface {
	Name() string
	Scope() string
	Text(key string) string       // of the span's own attribute, "" if it has no such text
	Has(meanings ...Meaning) bool // whether an attribute has one of them
	Failed() bool                 // whether its status is an error
}

// KindOf returns the kind that a dialect has a word for, or "".
func KindOf(s Span) Kind {
	for _, of := range kinds {
		if kind := of(s); kind != "" {
			return kind
		}
	}

	return ""
}

// copyKind recognises spans that only repeat another one.
func copyKind(s Span) Kind {
	if s.Name() == "raw_gen_ai_request" || s.Text("logfire.span_type") == "pending_span" {
		return Plain
	}

	return ""
}

// toolKind recognises the run of a tool by its name.
func toolKind(s Span) Kind {
	for _, key := range []string{"gen_ai.tool.name", "tool.name", "tool_name", "ai.toolCall.name"} {
		if s.Text(key) != "" {
			return Tool
		}
	}

	return ""
}

// kindOf returns the kind that a word stands for in a dialect.
func kindOf(word string, table map[string]Kind) Kind {
	return table[strings.ToLower(strings.TrimSpace(word))]
}
