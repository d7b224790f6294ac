package otel

import (
	"encoding/json"
	"slices"

	"promptspool/api/wire/jsonscan"
)

// Read is ReadObject of a body that is not parsed. Of one that is no object it reads nothing.
func Read(body json.RawMessage) Span {
	if !jsonscan.Valid(body) || !value(body).isObject() {
		return Span{}
	}

	return ReadObject(slices.Collect(jsonscan.Members(body)))
}

// SpanOf returns the id of the span that a stored log record belongs to.
func SpanOf(log json.RawMessage) string { return value(log).at("log", "spanId").text() }
