package otel

import (
	"slices"
	"strings"

	"promptspool/api/calls/otel/dialect"
	"promptspool/api/otlp"
)

// kind returns what the span is.
func (s *span) kind() dialect.Kind {
	if s.loggedAs() != "" {
		return dialect.Chain
	}
	if kind := dialect.KindOf(s); kind != "" {
		return kind
	}

	return s.guess()
}

// loggedAs returns the span id under which the SDK logs the span's call itself, or "". Wrapped
// clients and runs use the id of the span without a mark.
func (s *span) loggedAs() string {
	id := strings.ToLower(s.body.spanID.text())
	if s.own.is("promptlayer.request_log.managed") {
		if other := s.own.text("promptlayer.request_log.span_id"); other != "" {
			id = strings.ToLower(other)
		}
		return id
	}

	if s.scope != "" && !strings.HasPrefix(s.scope, "promptlayer") {
		return ""
	}
	run := s.body.name.text() == "PromptLayer Run"
	wrapped := s.scope == "promptlayer.promptlayer_mixins" && s.own.text("provider") != "" &&
		s.own.text("function_name") != ""
	// JavaScript's say nothing but how the call ended.
	script := s.own.text("response_status") == "success" && s.own.text("function_input") != "" &&
		s.find(dialect.RequestModel, dialect.ResponseModel) == nil
	if run || wrapped || script {
		return id
	}

	return ""
}

// Name is the span's name.
func (s *span) Name() string { return s.body.name.text() }

// Scope is the name of the span's instrumentation scope.
func (s *span) Scope() string { return s.scope }

// Text returns the text of one of the span's own attributes.
func (s *span) Text(key string) string { return s.own.get(key).text() }

// Has reports whether an attribute has one of the meanings.
func (s *span) Has(meanings ...dialect.Meaning) bool { return s.find(meanings...) != nil }

// Failed reports whether the span's status is an error.
func (s *span) Failed() bool {
	code := s.body.status.at("code").shown()
	return code == "2" || code == "STATUS_CODE_ERROR"
}

// guess takes a span for a call if it has a model, and usage or content.
func (s *span) guess() dialect.Kind {
	if s.find(dialect.ResponseModel, dialect.RequestModel) == nil {
		ofModels := func(a attributeValue) bool { return otlp.IsModelKey(a.key) }
		if otlp.IsModelScope(s.scope) || slices.ContainsFunc(s.own.all, ofModels) {
			return dialect.Chain
		}
		return dialect.Plain
	}

	if s.find(dialect.InputTokens, dialect.OutputTokens, dialect.UsageObject) != nil {
		return dialect.Call
	}
	for _, role := range []string{userRole, assistantRole} {
		if c := s.content(role); !c.empty() {
			return dialect.Call
		}
	}

	return dialect.Chain
}
