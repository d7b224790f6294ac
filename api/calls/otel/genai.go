package otel

import (
	"slices"
	"strings"
)

// genAI is OpenTelemetry's own GenAI semantic conventions, of all ages.
var genAI = dialect{
	name: "GenAI semantic conventions",
	table: []attribute{
		{"gen_ai.operation.name", decides, ""},
		{"gen_ai.provider.name", provider, ""},
		{"gen_ai.system", provider, ""},
		{"gen_ai.response.model", responseModel, ""},
		{"gen_ai.request.model", requestModel, ""},
		{"gen_ai.response.id", responseID, ""},
		{"gen_ai.response.finish_reasons", finishReason, ""},
		{"openai.response.service_tier", tier, ""},
		{"gen_ai.openai.response.service_tier", tier, ""},

		{"gen_ai.request.temperature", parameter, "temperature"},
		{"gen_ai.request.top_p", parameter, "top_p"},
		{"gen_ai.request.top_k", parameter, "top_k"},
		{"gen_ai.request.max_tokens", parameter, "max_tokens"},
		{"gen_ai.request.frequency_penalty", parameter, "frequency_penalty"},
		{"gen_ai.request.presence_penalty", parameter, "presence_penalty"},
		{"gen_ai.request.stop_sequences", parameter, "stop"},
		{"gen_ai.request.seed", parameter, "seed"},
		{"gen_ai.request.choice.count", parameter, "n"},
		{"gen_ai.request.stream", parameter, "stream"},
		{"gen_ai.request.encoding_formats", parameter, "encoding_formats"},
		{"gen_ai.request.reasoning.level", parameter, "reasoning_effort"},
		{"gen_ai.request.previous_response.id", parameter, "previous_response_id"},
		{"gen_ai.output.type", parameter, "output_type"},
		{"openai.request.service_tier", parameter, "service_tier"},

		{"gen_ai.system_instructions", system, ""},
		{"gen_ai.tool.definitions", tools, ""},
		{"gen_ai.tool.call.arguments", shownInput, ""},
		{"gen_ai.tool.call.result", shownOutput, ""},

		{"gen_ai.usage.input_tokens", inputTokens, ""},
		{"gen_ai.usage.prompt_tokens", inputTokens, ""},
		{"gen_ai.usage.output_tokens", outputTokens, ""},
		{"gen_ai.usage.completion_tokens", outputTokens, ""},
		{"gen_ai.usage.cache_read.input_tokens", cachedTokens, ""},
		{"gen_ai.usage.cache_read_input_tokens", cachedTokens, ""},
		{"gen_ai.usage.cache_read_tokens", cachedTokens, ""},
		{"gen_ai.usage.details.cache_read_tokens", cachedTokens, ""},
		{"gen_ai.usage.input_cached_tokens", cachedTokens, ""},
		{"gen_ai.usage.cache_creation.input_tokens", cacheWrites, ""},
		{"gen_ai.usage.cache_write.input_tokens", cacheWrites, ""},
		{"gen_ai.usage.cache_creation_input_tokens", cacheWrites, ""},
		{"gen_ai.usage.cache_write_tokens", cacheWrites, ""},
		{"gen_ai.usage.details.cache_write_tokens", cacheWrites, ""},
		{"gen_ai.usage.reasoning.output_tokens", reasoningTokens, ""},
		{"gen_ai.usage.reasoning_tokens", reasoningTokens, ""},
		{"gen_ai.usage.details.reasoning_tokens", reasoningTokens, ""},
		{"gen_ai.usage.audio.input_tokens", audioInput, ""},
		{"gen_ai.usage.audio.output_tokens", audioOutput, ""},
		{"gen_ai.usage.cost", price, ""},
		{"gen_ai.cost.total_cost", price, ""},
		{"gen_ai.response.time_to_first_chunk", firstSeconds, ""},

		{"error.type", errorType, ""},
		{"gen_ai.prompt.name", promptName, ""},
		{"gen_ai.prompt.version", promptVersion, ""},
		{"gen_ai.prompt.variable.*", promptVariable, ""},
		{"gen_ai.conversation.id", metadata, sessionKey},
		{"gen_ai.agent.name", metadata, "agent"},
		{"gen_ai.workflow.name", metadata, "workflow"},

		// Any instrumentation may have these.
		{"user.id", metadata, userKey},
		{"enduser.id", metadata, userKey},
		{"session.id", metadata, sessionKey},
		{"deployment.environment.name", metadata, environmentKey},
		{"deployment.environment", metadata, environmentKey},
		{"service.name", metadata, serviceKey},
	},
	input: []source{
		{"gen_ai.input.messages", messages},
		{"event gen_ai.client.inference.operation.details: gen_ai.input.messages", detailed},
		{"events gen_ai.system.message, gen_ai.user.message, gen_ai.assistant.message, gen_ai.tool.message", eventsIn},
		{"gen_ai.prompt", anything},
		{"event gen_ai.content.prompt: gen_ai.prompt", contentEventIn},
	},
	output: []source{
		{"gen_ai.output.messages", messages},
		{"event gen_ai.client.inference.operation.details: gen_ai.output.messages", detailed},
		{"event gen_ai.choice", eventsOut},
		{"gen_ai.completion", anything},
		{"event gen_ai.content.completion: gen_ai.completion", contentEventOut},
	},
}

// operations are the kinds of gen_ai.operation.name, with words of libraries that follow
// the conventions in part.
var operations = map[string]Kind{
	"chat": KindCall, "text_completion": KindCall, "generate_content": KindCall, "completion": KindCall,
	"generate": KindCall, "acompletion": KindCall, "atext_completion": KindCall, "aresponses": KindCall,
	"responses": KindCall, "anthropic_messages": KindCall, "chat_completion": KindCall,
	"embeddings": KindEmbedding, "embedding": KindEmbedding, "aembedding": KindEmbedding,
	"retrieval": KindRetriever, "rerank": KindRetriever, "arerank": KindRetriever,
	"execute_tool": KindTool,
	"create_agent": KindAgent, "invoke_agent": KindAgent,
	"invoke_workflow": KindChain, "plan": KindChain, "execute_task": KindChain, "fetch_response": KindChain,
	"agent_step": KindChain,
}

func genAIKind(s *span) Kind {
	word := s.own.text("gen_ai.operation.name")
	if strings.HasSuffix(word, "_memory") {
		return KindChain
	}

	kind := kinds(word, operations)
	if kind == KindEmbedding && s.scope == vercel7 && s.find(inputTokens, errorType) == nil {
		return KindChain // around the call, which has the usage
	}

	return kind
}

func messages(s *span, key, role string) conversation { return messagesOf(s.own.get(key), role) }

// details returns what an event with the details of an operation has under a key. There
// may be one for what went in and one for what came out.
func (s *span) details(key string) value {
	for _, e := range s.events {
		if e.name != "gen_ai.client.inference.operation.details" {
			continue
		}
		if v := e.at(key); !v.absent() {
			return v
		}
	}

	return nil
}

// detailed reads the messages of such an event, whose name and key are the source's.
func detailed(s *span, key, role string) conversation {
	_, key, _ = strings.Cut(key, ": ")
	return messagesOf(s.details(key), role)
}

// messageEvents are the events of one message each, and the roles of those.
var messageEvents = map[string]string{
	"gen_ai.system.message": "system", "gen_ai.user.message": "user",
	"gen_ai.assistant.message": "assistant", "gen_ai.tool.message": "tool",
}

func eventsIn(s *span, _, _ string) conversation { return inputEvents(s.events) }

func inputEvents(events []event) conversation {
	var c conversation
	for _, e := range events {
		if role := messageEvents[e.name]; role != "" {
			c.event(e, role)
		}
	}

	return c
}

func eventsOut(s *span, _, _ string) conversation { return outputEvents(s.events) }

func outputEvents(events []event) conversation {
	var c conversation
	for _, e := range events {
		if e.name != "gen_ai.choice" {
			continue
		}

		finish := e.at("finish_reason").text()
		switch m := e.at("message").inner(); {
		case m.isObject():
			before := len(c.messages)
			c.event(event{body: m}, "assistant")
			for i := before; i < len(c.finish); i++ {
				c.finish[i] = finish
			}
		case m.isText():
			c.add(message{Role: "assistant", Content: m.text()}, finish)
		default:
			c.event(e, "assistant")
		}
	}

	return c
}

// event appends the message that an event holds.
func (c *conversation) event(e event, role string) {
	// Older versions of Semantic Kernel have the whole message as JSON.
	if whole := e.at("gen_ai.event.content").inner(); whole.isObject() {
		if m := whole.at("message"); m.isObject() {
			whole = m
		}
		e = event{body: whole}
	}
	if own := e.at("role").text(); own != "" {
		role = strings.ToLower(own)
	}

	b := builder{message: message{Role: role, Name: e.at("name").text()}}
	if role == "tool" {
		b.ToolCallID = e.at("id").text()
	}
	b.content(e.at("content"))
	b.calls(e.at("tool_calls"))
	c.take(&b, e.at("finish_reason").text())
}

func contentEventIn(s *span, _, _ string) conversation {
	return inputOf(s.event("gen_ai.content.prompt").at("gen_ai.prompt"))
}

func contentEventOut(s *span, _, _ string) conversation {
	return outputOf(s.event("gen_ai.content.completion").at("gen_ai.completion"))
}

// finishReasons returns the reasons that are not with the messages: a list, JSON of one,
// or several with commas between.
func (s *span) finishReasons() []string {
	v := s.find(finishReason).inner()
	if !v.isArray() {
		return slices.DeleteFunc(strings.Split(v.shown(), ", "), func(s string) bool { return s == "" })
	}

	var all []string
	for _, e := range v.elements() {
		all = append(all, e.shown())
	}

	return all
}
