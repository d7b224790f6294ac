// Package dialect is what the field's libraries call the attributes of their spans: a table for
// each dialect, and All, which has their order.
//
// The tables are data. Package otel reads spans by them, with a reader for each form in
// which content is written. They are also the source of the page that documents them.
package dialect

import (
	"slices"
	"strings"
)

// Meaning is what an attribute means for a span.
type Meaning string

// The meanings. Of most of them the first attribute that is there counts, in the order of
// the dialects and of their tables. Parameters, prompt variables and metadata add up.
const (
	Provider      Meaning = "provider"
	ResponseModel Meaning = "model that answered"
	RequestModel  Meaning = "requested model"
	ResponseID    Meaning = "response id"
	FinishReason  Meaning = "finish reason"
	ServiceTier   Meaning = "service tier"

	Input       Meaning = "input"
	Output      Meaning = "output"
	System      Meaning = "system message"
	Tools       Meaning = "tools"
	Parameter   Meaning = "parameter"
	Parameters  Meaning = "parameters, as JSON"
	RawResponse Meaning = "the provider's own response, as JSON"
	ShownInput  Meaning = "input of a span that is not a call"
	ShownOutput Meaning = "output of a span that is not a call"

	InputTokens     Meaning = "input tokens"
	OutputTokens    Meaning = "output tokens"
	CachedTokens    Meaning = "input tokens read from the cache"
	CacheWrites     Meaning = "input tokens written to the cache"
	ReasoningTokens Meaning = "output tokens of reasoning"
	InputDetail     Meaning = "part of the input tokens:"
	OutputDetail    Meaning = "part of the output tokens:"
	TotalTokens     Meaning = "tokens in all"
	UsageObject     Meaning = "usage, as JSON"
	UsageWithin     Meaning = "usage, in JSON under"
	Price           Meaning = "price in US dollars"
	FirstSeconds    Meaning = "time to first token, in seconds"
	FirstMillis     Meaning = "time to first token, in milliseconds"
	FirstAt         Meaning = "moment of the first token"
	Seconds         Meaning = "duration of a call whose span has none, in seconds"

	Status       Meaning = "status"
	ErrorType    Meaning = "error type"
	ErrorMessage Meaning = "error message"

	PromptName      Meaning = "prompt name"
	PromptVersion   Meaning = "prompt version; a label if it is not a number"
	PromptLabel     Meaning = "prompt label"
	PromptVariables Meaning = "prompt variables, as JSON"
	PromptVariable  Meaning = "prompt variable"

	Tags        Meaning = "tags"
	Metadata    Meaning = "metadata"
	MetadataMap Meaning = "metadata, as JSON"
	Unread      Meaning = "nothing, although the line below would read it"
	Decides     Meaning = "kind of the span, and whether it is a call"
)

// The keys of metadata that every dialect has a word for.
const (
	UserKey        = "user_id"
	SessionKey     = "session_id"
	EnvironmentKey = "environment"
	ServiceKey     = "service"
)

// Attribute is a line of a dialect's table.
type Attribute struct {
	Key   string // ends with * for all keys that begin so; N and M stand for indices
	Means Meaning
	As    string // the name of the parameter or metadata
}

// Aliases are other names of these keys in metadata that an app sends as a map. The first that is
// there counts.
var Aliases = []Attribute{
	{"userId", Metadata, UserKey},
	{"sessionId", Metadata, SessionKey},
	{"thread_id", Metadata, SessionKey},
	{"threadId", Metadata, SessionKey},
	{"conversation_id", Metadata, SessionKey},
	{"conversationId", Metadata, SessionKey},
}

// Source is an attribute, an event, or a group of them, that holds content of a call.
type Source struct {
	Key  string
	Form Form
}

// Form is how a source is written. Package otel has a reader for each, in forms.go.
type Form int

// The forms.
const (
	Anything Form = iota // a provider's request or response, messages, or a text

	// Those of the GenAI conventions.
	Messages
	MessageEvents // an event for each message
	ContentEvent  // an event with everything that went in or came out
	EventList     // such events, in an attribute of Pydantic AI

	// Those with an attribute for each member of a message.
	Flattened           // gen_ai.prompt.0.content, as OpenLLMetry writes them
	InferenceMessages   // llm.input_messages.0.message.content, as OpenInference does
	InferenceTexts      // a message of a text each
	InferenceEmbeddings // the texts that were embedded

	// Those of one library each.
	EmbeddedTexts // a text or several, each perhaps JSON in a text
	VercelResponse
	SentryResponse
	TextAndCalls // a text and calls of tools, in one object
	ADKRequest
	ADKResponse
	GenkitRequest
	GenkitResponse
	Said         // a text, which is never JSON that stands for something else
	GeminiChunks // the pieces of Gemini's answer, as they came
)

// All are the dialects, in the order in which their tables are searched. Those of products
// that wrap other libraries' spans come before those libraries.
var All = []*Dialect{
	&agents, &promptLayer, &langfuse, &genAI, &openInference, &openLLMetry, &vercel, &adk, &pydantic, &logfire,
	&langSmith, &liteLLM, &sentry, &mastra, &springAI, &braintrust, &anthropic, &others,
}

// Dialect is how one family of libraries writes spans.
type Dialect struct {
	Name  string
	Table []Attribute

	Input, Output []Source // the first that has anything counts

	// Of is how the scopes or the names begin of the only spans that follow the dialect. For them,
	// its meaning of a key is the only one. Empty means all spans.
	Of []string
}

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
