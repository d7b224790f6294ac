package otlp

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// ContentType returns the type of a request in a form, and of its answer.
func (f Form) ContentType() string {
	if f == JSON {
		return "application/json"
	}
	return "application/x-protobuf"
}

// Answer returns the body of a 200. message says what was not kept of the request, "" if all was, and
// rejected counts the faulty part of it, in JSON as a member such as rejectedSpans. If that is none,
// exporters take the message for a warning.
func Answer(form Form, member string, rejected int, message string) []byte {
	if message == "" {
		if form == JSON {
			return []byte("{}")
		}
		return nil
	}

	if form == JSON {
		b := append([]byte(`{"partialSuccess":{"`), member...)
		// 64 bits are a text in OTLP's JSON.
		b = strconv.AppendInt(append(b, `":"`...), int64(rejected), 10)
		b = jsonscan.AppendString(append(b, `","errorMessage":`...), message)
		return append(b, `}}`...)
	}

	var partial []byte
	partial = protowire.AppendTag(partial, 1, protowire.VarintType)
	partial = protowire.AppendVarint(partial, uint64(rejected))
	partial = protowire.AppendTag(partial, 2, protowire.BytesType)
	partial = protowire.AppendString(partial, message)

	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial)
}

// Status returns the body of an error in protobuf, a google.rpc.Status. One that comes with a time to
// wait has a google.rpc.RetryInfo.
func Status(e *wire.Error) []byte {
	b := protowire.AppendTag(nil, 1, protowire.VarintType)
	b = protowire.AppendVarint(b, uint64(StatusCode(e)))
	b = protowire.AppendTag(b, 2, protowire.BytesType)
	b = protowire.AppendString(b, e.Message)
	if e.RetryAfter <= 0 {
		return b
	}

	// A Duration within a RetryInfo within an Any.
	delay := protowire.AppendTag(nil, 1, protowire.VarintType)
	delay = protowire.AppendVarint(delay, uint64(e.RetryAfter/time.Second))
	delay = protowire.AppendTag(delay, 2, protowire.VarintType)
	delay = protowire.AppendVarint(delay, uint64(e.RetryAfter%time.Second))
	info := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), delay)
	detail := protowire.AppendTag(nil, 1, protowire.BytesType)
	detail = protowire.AppendString(detail, "type.googleapis.com/google.rpc.RetryInfo")
	detail = protowire.AppendBytes(protowire.AppendTag(detail, 2, protowire.BytesType), info)

	return protowire.AppendBytes(protowire.AppendTag(b, 3, protowire.BytesType), detail)
}

// StatusCode returns the code of google.rpc.Status that fits an error.
func StatusCode(e *wire.Error) int {
	switch e.Status() {
	case 401:
		return 16 // unauthenticated
	case 403:
		return 7 // permission denied
	case 404, 405, 415, 501:
		return 12 // unimplemented
	case 409:
		return 9 // failed precondition
	case 429:
		return 8 // resource exhausted
	case 500:
		return 13 // internal
	case 408, 503:
		return 14 // unavailable
	}

	return 3 // invalid argument
}

// Kind is what a request carries.
type Kind string

// The kinds of requests. Their texts are labels of metrics.
const (
	Spans      Kind = "spans"
	LogRecords Kind = "logs"
	Metrics    Kind = "metrics"
)

// errKnown ends a walk that has found the kind.
var errKnown = errors.New("the kind is known")

// KindOf finds out what a request carries, whatever path it came to. In JSON its member shows it, in
// protobuf the times of its items. It returns "" for others, such as metrics in protobuf.
func KindOf(body []byte, form Form) Kind {
	if form == Protobuf {
		return protobufKind(body, 1, 2, 2)
	}

	at := jsonscan.SkipSpace(body, 0)
	if at == len(body) || body[at] != '{' {
		return ""
	}
	for c := jsonscan.Enter(body, at); c.Next(); c.At = jsonscan.CheckValue(body, c.At, jsonLevelsMax) {
		if kind := kinds[string(camelCase(c.Name))]; kind != "" {
			return kind
		}
	}

	return ""
}

// kinds are the kinds of requests in JSON, by the member that only one of each has.
var kinds = map[string]Kind{"resourceSpans": Spans, "resourceLogs": LogRecords, "resourceMetrics": Metrics}

// timed are the kinds whose items have a time in these fields. Metrics have theirs one level deeper.
var timed = map[protowire.Number]Kind{1: LogRecords, 11: LogRecords, 7: Spans, 8: Spans}

// protobufKind is KindOf the items at a path of field numbers below a message.
func protobufKind(message []byte, path ...protowire.Number) (kind Kind) {
	_ = eachField(message, func(f field) error {
		switch {
		case len(path) > 0 && f.isMessage(path[0]):
			kind = protobufKind(f.bytes, path[1:]...)
		case len(path) == 0 && f.kind == protowire.Fixed64Type:
			kind = timed[f.number]
		}
		if kind != "" {
			return errKnown
		}
		return nil
	})

	return kind
}

// modelKeys are how those keys of attributes begin that only instrumentation of model calls, agents
// and their tools writes.
var modelKeys = strings.Fields(`
	ai. all_messages_events braintrust.input braintrust.metadata braintrust.metrics braintrust.output
	braintrust.span_attributes embedding. gcp.vertex.agent. gen_ai. genkit: hidden_params input.value
	langfuse. langsmith. llm. mastra. mcp. metadata.user_api_key mlflow. model_request_parameters node_type
	openai. openai_agents. openinference. operation.cost output.value promptlayer. pydantic_ai. reranker.
	retrieval. spring.ai. tag.tags traceloop.`)

// modelScopes are the names of its scopes. One that ends with a star means all names that
// begin so.
var modelScopes = append(strings.Fields(`
	ai @ai-sdk/* @arizeai/openinference-* @opentelemetry/instrumentation-openai* @traceloop/* codex*
	com.anthropic.claude_code.* com.anthropic.sdk.* gcp.vertex.agent* gemini-cli* genkit-tracer langfuse-sdk*
	langsmith* litellm* Microsoft.SemanticKernel* openinference.* opentelemetry.util.genai* promptlayer.* pydantic-ai*
	traceloop.*`), traceloopScopes()...)

// scopeBytes is more than the length of any of these.
const scopeBytes = 128

// traceloopScopes returns those of OpenLLMetry in Python, whose names begin like those of
// OpenTelemetry's own instrumentation of HTTP and databases.
func traceloopScopes() []string {
	scopes := strings.Fields(`
		alephalpha anthropic bedrock chromadb cohere crewai google_generativeai groq haystack lancedb langchain
		llamaindex marqo mcp milvus mistralai ollama openai openai_agents pinecone qdrant replicate sagemaker together
		transformers vertexai watsonx weaviate writer`)
	for i, library := range scopes {
		scopes[i] = "opentelemetry.instrumentation." + library + "*"
	}

	return scopes
}

// plumbingKeys are how the keys of instrumentation of HTTP, databases and the like begin. Those that
// a distribution adds to every span, such as aws.local.service, are not among them.
var plumbingKeys = strings.Fields(`
	asgi. db. dns. express. faas. fastify. graphql. hapi. http. koa. messaging. net. network. next. redis. rpc. tls.
	url. user_agent.`)

// isPlumbing reports whether the span is one of an app's HTTP, database or similar instrumentation,
// or of a piece of a stream, and says nothing about a model call. It is judged alone: those around
// it may be in other requests. body is what was written of it.
func (p *parts) isPlumbing(scope text, body []byte) bool {
	name := string(scope.beginning(scopeBytes))
	isPiece := strings.HasPrefix(name, "codex") && slices.Contains(streamSpans, string(p.name.beginning(scopeBytes)))
	if IsModelScope(name) && !isPiece {
		return false
	}

	plumbing := false
	for key := range written(p.written.attributes.of(body)) {
		if begins(key, modelKeys) {
			return false
		}
		plumbing = plumbing || begins(key, plumbingKeys)
	}

	events := p.written.events.of(body)
	return isPiece && len(events) == 0 || plumbing && !hasModelEvent(events)
}

// hasModelEvent reports whether one of the events of a span is about a model call.
func hasModelEvent(events []byte) bool {
	if len(events) == 0 {
		return false
	}
	for _, event := range jsonscan.Elements(events) {
		name, ok := jsonscan.Lookup(event, "name")
		if ok && strings.HasPrefix(jsonscan.Unquote(name), genAI) {
			return true
		}
	}

	return false
}

// IsModelScope reports whether an instrumentation scope is one of model calls, agents or their tools.
func IsModelScope(scope string) bool {
	return slices.ContainsFunc(modelScopes, func(name string) bool {
		prefix, isPrefix := strings.CutSuffix(name, "*")
		return scope == name || isPrefix && strings.HasPrefix(scope, prefix)
	})
}

// IsModelKey reports whether only instrumentation of these writes an attribute's key.
func IsModelKey(key string) bool { return begins(key, modelKeys) }

// begins reports whether a key begins with one of the prefixes.
func begins[T string | []byte](key T, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		return len(key) >= len(prefix) && string(key[:len(prefix)]) == prefix
	})
}
