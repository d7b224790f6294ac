package otel

import (
	"slices"
	"strings"

	"promptspool/api/otlp"
)

// kind returns what the span is. The first dialect that names a kind decides: an outer
// library knows better than a convention that it also follows.
func (s *span) kind() Kind {
	if s.loggedAs() != "" {
		return KindChain
	}

	for _, of := range []func(*span) Kind{
		copyKind, langfuseKind, openInferenceKind, langSmithKind, vercelKind, genAIKind, openLLMetryKind, adkKind,
		toolKind, promptLayerKind, othersKind,
	} {
		if kind := of(s); kind != "" {
			return kind
		}
	}

	return s.guess()
}

// copyKind recognises spans that only repeat another one.
func copyKind(s *span) Kind {
	name := s.body.name.text()
	if name == "raw_gen_ai_request" || s.own.text("logfire.span_type") == "pending_span" {
		return KindPlain
	}

	return ""
}

// toolKind recognises the run of a tool by its name.
func toolKind(s *span) Kind {
	if s.own.text("gen_ai.tool.name", "tool.name", "tool_name", "ai.toolCall.name") != "" {
		return KindTool
	}

	return ""
}

// guess takes a span for a call if it has a model, and usage or content.
func (s *span) guess() Kind {
	if s.find(responseModel, requestModel) == nil {
		ofModels := func(a attributeValue) bool { return otlp.IsModelKey(a.key) }
		if otlp.IsModelScope(s.scope) || slices.ContainsFunc(s.own.all, ofModels) {
			return KindChain
		}
		return KindPlain
	}

	if s.find(inputTokens, outputTokens, usageObject) != nil {
		return KindCall
	}
	for _, role := range []string{userRole, assistantRole} {
		if c := s.content(role); !c.empty() {
			return KindCall
		}
	}

	return KindChain
}

// kinds maps the words of the dialects.
func kinds(word string, table map[string]Kind) Kind {
	return table[strings.ToLower(strings.TrimSpace(word))]
}
