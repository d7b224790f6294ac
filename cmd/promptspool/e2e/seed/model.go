package seed

import (
	"encoding/json"
	"time"
)

// model is a model and how its provider's library speaks with it.
type model struct {
	name, provider, function string
	request, response        func(*call) map[string]any
	perToken                 time.Duration // of the answer
}

var models = []model{
	openAI("gpt-5.1", 14*time.Millisecond),
	openAI("gpt-5-mini", 7*time.Millisecond),
	openAI("gpt-4.1-mini", 6*time.Millisecond),
	anthropic("claude-sonnet-4-5", 15*time.Millisecond),
	anthropic("claude-haiku-4-5", 6*time.Millisecond),
	google("gemini-2.5-pro", 12*time.Millisecond),
	google("gemini-2.5-flash", 4*time.Millisecond),
	mistral("mistral-medium-latest", 9*time.Millisecond),
}

// named returns the model of a name.
func named(name string) model {
	for _, m := range models {
		if m.name == name {
			return m
		}
	}
	panic("seed: there is no model " + name)
}

func openAI(name string, perToken time.Duration) model {
	return model{name, "openai", "openai.chat.completions.create", chatRequest, chatResponse, perToken}
}

// Mistral's library differs from OpenAI's in its name only.
func mistral(name string, perToken time.Duration) model {
	return model{name, "mistral", "mistral.chat.complete", chatRequest, chatResponse, perToken}
}

func anthropic(name string, perToken time.Duration) model {
	return model{name, "anthropic", "anthropic.messages.create", blockRequest, blockResponse, perToken}
}

func google(name string, perToken time.Duration) model {
	return model{name, "google", "google.genai.models.generate_content", partRequest, partResponse, perToken}
}

type list = []any

// chatRequest is a request as OpenAI takes it.
func chatRequest(c *call) map[string]any {
	messages := list{map[string]any{"role": "system", "content": c.system}}
	for _, m := range c.messages {
		messages = append(messages, chatMessage(m))
	}
	request := map[string]any{"model": c.model.name, "temperature": 0.3, "messages": messages}
	if c.usesTools() {
		request["tools"] = list{map[string]any{"type": "function", "function": trackParcel}}
	}

	return request
}

func chatMessage(m message) map[string]any {
	out := map[string]any{"role": m.role, "content": m.text}
	switch {
	case m.role == "tool":
		out["tool_call_id"] = m.tool.id
	case m.tool != nil:
		out["content"] = nil
		out["tool_calls"] = list{map[string]any{"id": m.tool.id, "type": "function", "function": map[string]any{
			"name": m.tool.name, "arguments": m.tool.arguments,
		}}}
	case m.png != "":
		url := map[string]any{"url": "data:image/png;base64," + m.png}
		out["content"] = list{
			map[string]any{"type": "text", "text": m.text},
			map[string]any{"type": "image_url", "image_url": url},
		}
	}

	return out
}

func chatResponse(c *call) map[string]any {
	if c.failure != nil {
		return c.failure.body
	}
	in, out := c.tokens()

	return map[string]any{
		"object": "chat.completion", "model": c.model.name,
		"choices": list{map[string]any{
			"index":         0,
			"finish_reason": c.stopped("tool_calls", "stop"),
			"message":       chatMessage(c.answer),
		}},
		"usage": map[string]any{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out},
	}
}

// blockRequest is a request as Anthropic takes it.
func blockRequest(c *call) map[string]any {
	messages := list{}
	for _, m := range c.messages {
		role := m.role
		if role == "tool" {
			role = "user"
		}
		messages = append(messages, map[string]any{"role": role, "content": blocks(m)})
	}
	request := map[string]any{
		"model": c.model.name, "max_tokens": 1024, "system": c.system, "messages": messages,
	}
	if c.usesTools() {
		request["tools"] = list{map[string]any{
			"name":         trackParcel["name"],
			"description":  trackParcel["description"],
			"input_schema": trackParcel["parameters"],
		}}
	}

	return request
}

func blocks(m message) list {
	switch {
	case m.role == "tool":
		return list{map[string]any{"type": "tool_result", "tool_use_id": m.tool.id, "content": m.text}}
	case m.tool != nil:
		return list{map[string]any{
			"type": "tool_use", "id": m.tool.id, "name": m.tool.name, "input": json.RawMessage(m.tool.arguments),
		}}
	}
	text := list{map[string]any{"type": "text", "text": m.text}}
	if m.png != "" {
		source := map[string]any{"type": "base64", "media_type": "image/png", "data": m.png}
		text = append(text, map[string]any{"type": "image", "source": source})
	}

	return text
}

func blockResponse(c *call) map[string]any {
	if c.failure != nil {
		return c.failure.body
	}
	in, out := c.tokens()

	return map[string]any{
		"type": "message", "role": "assistant", "model": c.model.name, "content": blocks(c.answer),
		"stop_reason": c.stopped("tool_use", "end_turn"),
		"usage":       map[string]any{"input_tokens": in, "output_tokens": out},
	}
}

// partRequest is a request as Google takes it.
func partRequest(c *call) map[string]any {
	contents := list{}
	for _, m := range c.messages {
		contents = append(contents, partContent(m))
	}
	config := map[string]any{"temperature": 0.3, "system_instruction": c.system}
	if c.usesTools() {
		config["tools"] = list{map[string]any{"function_declarations": list{trackParcel}}}
	}

	return map[string]any{"model": c.model.name, "contents": contents, "config": config}
}

func partContent(m message) map[string]any {
	role, part := "user", map[string]any{"text": m.text}
	switch {
	case m.role == "tool":
		part = map[string]any{"functionResponse": map[string]any{
			"name": m.tool.name, "response": json.RawMessage(m.text),
		}}
	case m.role == "assistant" && m.tool != nil:
		role = "model"
		part = map[string]any{"functionCall": map[string]any{
			"name": m.tool.name, "args": json.RawMessage(m.tool.arguments),
		}}
	case m.role == "assistant":
		role = "model"
	}
	parts := list{part}
	if m.png != "" {
		parts = append(parts, map[string]any{"inlineData": map[string]any{"mimeType": "image/png", "data": m.png}})
	}

	return map[string]any{"role": role, "parts": parts}
}

func partResponse(c *call) map[string]any {
	if c.failure != nil {
		return c.failure.body
	}
	in, out := c.tokens()

	return map[string]any{
		"candidates":    list{map[string]any{"content": partContent(c.answer), "finishReason": "STOP"}},
		"usageMetadata": map[string]any{"promptTokenCount": in, "candidatesTokenCount": out},
		"modelVersion":  c.model.name,
	}
}

// usesTools reports whether the call may call the tool.
func (c *call) usesTools() bool { return c.template == "support/agent" }

// stopped returns why an answer ended, in a provider's words.
func (c *call) stopped(tool, text string) string {
	if c.answer.tool != nil {
		return tool
	}

	return text
}

var trackParcel = map[string]any{
	"name":        "track_parcel",
	"description": "Returns where the parcel of an order is.",
	"parameters": map[string]any{
		"type":       "object",
		"properties": map[string]any{"order": map[string]any{"type": "string"}},
		"required":   []string{"order"},
	},
}
