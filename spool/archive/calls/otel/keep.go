package otel

import (
	"encoding/json"
	"strings"

	"promptspool/api/wire/jsonscan"
)

// plumbing are beginnings of the keys of HTTP, database and other instrumentation of an
// app's surroundings.
var plumbing = []string{
	"http.", "url.", "db.", "rpc.", "messaging.", "net.", "network.", "dns.", "tls.", "faas.", "graphql.", "aws.",
	"redis.", "peer.", "user_agent.", "asgi.", "next.",
}

// IsGenAI reports whether a stored span, or log record, is of a dialect that this package
// reads. Any attribute, event or scope of one is enough.
func IsGenAI(body json.RawMessage) bool {
	stored := value(body)
	if !jsonscan.Valid(body) {
		return false
	}

	for _, held := range []value{stored.at("span"), stored.at("log")} {
		if isGenAI(stored.at("scope", "name").text(), keysOf(held)) {
			return true
		}
		for _, e := range held.at("events").elements() {
			if strings.HasPrefix(e.at("name").text(), "gen_ai.") {
				return true
			}
		}
		if strings.HasPrefix(held.at("eventName").text(), "gen_ai.") {
			return true
		}
	}

	return false
}

// IsPlumbing reports whether a stored span is one of an app's HTTP or database
// instrumentation, judged by itself alone. A span that IsGenAI is none.
func IsPlumbing(body json.RawMessage) bool {
	if !jsonscan.Valid(body) || IsGenAI(body) {
		return false
	}

	for key := range keysOf(value(body).at("span")) {
		if begins(key, plumbing) {
			return true
		}
	}

	return false
}

// keysOf returns the attributes of a span or log record without their values.
func keysOf(held value) attributes {
	keys := attributes{}
	for _, kv := range held.at("attributes").elements() {
		key := kv.at("key").text()
		keys[key] = nil
		// Log records may name their event here.
		if key == "event.name" {
			keys[kv.at("value", "stringValue").text()] = nil
		}
	}

	return keys
}

// isGenAI judges by the scope and the keys of attributes.
func isGenAI(scope string, keys attributes) bool {
	for _, d := range dialects {
		for _, name := range d.scopes {
			if scope == name || strings.HasPrefix(scope, name) && name != "ai" {
				return true
			}
		}
	}
	for key := range keys {
		for _, d := range dialects {
			if begins(key, d.begins) {
				return true
			}
		}
	}

	return false
}

// begins reports whether a text begins with one of the prefixes.
func begins(text string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}

	return false
}
