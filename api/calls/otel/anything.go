package otel

import "strings"

// anything reads an attribute that may hold anything that went in or came out: a provider's request
// or response, messages, or a text.
func anything(s *span, key, role string) conversation {
	return contentOf(s.own.get(key), role)
}

func contentOf(v value, role string) conversation {
	if role == userRole {
		return inputOf(v)
	}
	return outputOf(v)
}

// inputOf reads what went in.
func inputOf(v value) conversation {
	switch in := v.inner(); {
	case v.absent():
		return conversation{}
	case in.isArray():
		if looksLikeMessages(in) || v.isArray() && in.element().isText() {
			return messagesOf(in, "user")
		}
	case in.isObject():
		if in.at("messages").isArray() {
			return requestMessages(in)
		}
		if in.has("contents", "prompt", "input", "inputs", "inputText", "system", "message", "chat_history") {
			return conversation{raw: in}
		}
		if looksLikeMessage(in) {
			return messagesOf(in, "user")
		}
	}

	return oneText("user", v.shown())
}

// requestMessages reads a request that has messages. Its other members stay beside them.
func requestMessages(request value) conversation {
	c := messagesOf(request.at("messages"), "user")
	rest := objectOf(request)
	delete(rest, "messages")
	if len(rest) > 0 {
		c.raw = encoded(rest)
	}

	return c
}

// outputOf reads what came out.
func outputOf(v value) conversation {
	switch out := v.inner(); {
	case v.absent():
		return conversation{}
	case out.isArray():
		first := out.element()
		switch kind := first.texts("type"); {
		case first.at("message").isObject():
			return conversation{raw: encoded(map[string]value{"choices": out})}
		// These are of OpenAI's responses.
		case kind == "reasoning" || strings.HasSuffix(kind, "_call"):
			return conversation{raw: encoded(map[string]value{"output": out})}
		case looksLikeMessages(out) || v.isArray() && first.isText():
			return messagesOf(out, "assistant")
		}
	case out.isObject():
		if isResponse(out) {
			return conversation{raw: out}
		}
		if m := out.at("message"); m.isObject() {
			return messagesOf(m, "assistant")
		}
		if m := out.at("messages"); looksLikeMessages(m) {
			return messagesOf(m, "assistant")
		}
		if looksLikeMessage(out) {
			return messagesOf(out, "assistant")
		}
	}

	return oneText("assistant", v.shown())
}

// isResponse reports whether an object is a response of a provider's API, or its error.
func isResponse(v value) bool {
	for _, list := range []string{"choices", "candidates", "generations", "output", "content"} {
		if v.at(list).isArray() {
			return true
		}
	}

	return v.at("completion").isText() || v.at("generation").isText() || v.has("embeddings", "embedding") ||
		v.at("results").element().has("outputText") || v.at("outputs").element().has("text") ||
		v.at("data").element().has("embedding", "b64_json") || v.at("output", "message").isObject() ||
		v.at("error", "message").isText() && v.at("error").has("type", "code") ||
		v.at("promptFeedback").has("blockReason")
}

// looksLikeMessages reports whether a list holds messages, or lists of them.
func looksLikeMessages(list value) bool {
	first := list.element()
	if first.isArray() {
		first = first.element()
	}

	return looksLikeMessage(first)
}

func looksLikeMessage(v value) bool {
	return v.isObject() && (v.has("role", "lc", "parts", "tool_calls") ||
		v.has("content") && !v.has("score", "metadata", "page_content") || v.has("data") && v.has("type"))
}
