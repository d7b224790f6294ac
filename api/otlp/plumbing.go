package otlp

import (
	"bytes"
	"slices"
	"strings"

	"promptspool/api/wire/jsonscan"
)

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
		if ok && bytes.HasPrefix(jsonscan.UnquoteBytes(name), genAI) {
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
