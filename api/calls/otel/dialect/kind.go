package dialect

import (
	"slices"
	"strings"
)

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

// kinds find what a span is, for the dialects that have words for it. The first that names
// a kind decides: an outer library knows better than a convention that it also follows.
var kinds = []func(Span) Kind{
	agentKind,
	when(isCopy, Plain),
	word("langfuse.observation.type", langfuseKinds),
	word("openinference.span.kind", inferenceKinds),
	// Before the conventions' operation, which prompts and retrievers have too.
	word("langsmith.span.kind", langSmithKinds),
	vercelKind,
	when(isLogfireRequest, Chain),
	when(isMastraCall, Call),
	genAIKind,
	// LlamaIndex marks calls as tasks too.
	word("llm.request.type", requestTypes),
	word("traceloop.span.kind", entityKinds),
	when(isADKCall, Call),
	word("spring.ai.kind", springKinds),
	word("braintrust.span_attributes.type", braintrustKinds),
	when(isBraintrustCall, Call),
	when(has("gen_ai.tool.name", "tool.name", "tool_name", "ai.toolCall.name"), Tool),
	promptLayerKind,
	word("genkit:metadata:subtype", genkitKinds),
	// Spans of Genkit besides actions are steps, which repeat the content of the calls in them.
	when(has("genkit:type"), Chain),
	mlflowKind,
	// An operation that is not known here is a step: only a word that is known makes a call.
	when(has("gen_ai.operation.name", "openinference.span.kind"), Chain),
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

// isCopy recognises spans that only repeat another one.
func isCopy(s Span) bool {
	return s.Name() == "raw_gen_ai_request" || s.Text("logfire.span_type") == "pending_span"
}

// word returns what reads the kind from the word in an attribute.
func word(key string, table map[string]Kind) func(Span) Kind {
	return func(s Span) Kind { return kindOf(s.Text(key), table) }
}

// when returns what takes some spans for a kind.
func when(is func(Span) bool, kind Kind) func(Span) Kind {
	return func(s Span) Kind {
		if is(s) {
			return kind
		}

		return ""
	}
}

// has returns what reports whether a span has one of some attributes.
func has(keys ...string) func(Span) bool {
	return func(s Span) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return s.Text(key) != "" })
	}
}

// kindOf returns the kind that a word stands for in a dialect.
func kindOf(word string, table map[string]Kind) Kind {
	return table[strings.ToLower(strings.TrimSpace(word))]
}
