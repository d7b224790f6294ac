package otel

import "strings"

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
		if isGenAI(s.scope, &s.own) {
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

// isGenAI reports whether the scope, or the key of an attribute, is one of a dialect.
func isGenAI(scope string, own *attributes) bool {
	for _, d := range dialects {
		for _, name := range d.scopes {
			if scope == name || strings.HasPrefix(scope, name) && name != "ai" {
				return true
			}
		}
	}
	for i := range own.all {
		for _, d := range dialects {
			if begins(own.all[i].key, d.begins) {
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
