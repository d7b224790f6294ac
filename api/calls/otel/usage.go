package otel

import (
	"encoding/json"
	"strings"

	"promptspool/api/calls/otel/dialect"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// usage is that of a call in OpenAI's form: input includes what the cache served, output
// the reasoning.
type usage struct {
	Input  *int64 `json:"prompt_tokens,omitempty"`
	Output *int64 `json:"completion_tokens,omitempty"`
	Total  *int64 `json:"total_tokens,omitempty"`
	In     counts `json:"prompt_tokens_details,omitempty"`
	Out    counts `json:"completion_tokens_details,omitempty"`
}

// counts are those of some of the tokens, by their names in OpenAI's form.
type counts map[string]*int64

// add adds a count that is known. The first of a name counts.
func (c *counts) add(name string, n *int64) {
	if _, known := (*c)[name]; known || n == nil {
		return
	}
	if *c == nil {
		*c = counts{}
	}
	(*c)[name] = n
}

// ownUsage are where responses that libraries keep have their usage, with all details and as the
// provider counts. 0 is the first element of a list.
var ownUsage = strings.Fields("usage usageMetadata usage_metadata x_groq.usage llm_output.token_usage " +
	"llm_output.usage llmOutput.usage generations.0.0.message.kwargs.usage_metadata " +
	"generations.0.0.message.usage_metadata")

// usage returns the tokens of a call in a form that responses have, or nil if they are unknown.
// Package calls reads all forms.
func (s *span) usage() value {
	if object := s.find(dialect.UsageObject).inner(); object.isObject() {
		return langfuseUsage(object)
	}

	var found value
	look := func(path string, v value) {
		if object := v.inner().at(strings.Split(path, ".")...); found == nil && object.isObject() {
			found = object
		}
	}
	own := s.rawResponse()
	for _, path := range ownUsage {
		look(path, own)
	}
	s.each(dialect.UsageWithin, look)
	if found == nil {
		found = s.countedUsage()
	}

	return found
}

// countedUsage returns what the attributes say, each of which is a count, or nil if they say nothing.
func (s *span) countedUsage() value {
	u := usage{Input: s.count(dialect.InputTokens), Output: s.count(dialect.OutputTokens)}
	u.Total = s.count(dialect.TotalTokens)
	read, written := s.count(dialect.CachedTokens), s.count(dialect.CacheWrites)
	u.In.add("cached_tokens", read)
	u.In.add("cache_write_tokens", written)
	s.each(dialect.InputDetail, func(name string, v value) { u.In.add(name, v.count()) })
	u.Out.add("reasoning_tokens", s.count(dialect.ReasoningTokens))
	s.each(dialect.OutputDetail, func(name string, v value) { u.Out.add(name, v.count()) })
	if u.Input == nil && u.Output == nil && len(u.In)+len(u.Out) == 0 {
		return nil
	}

	// Sentry has the provider's own input of Anthropic's, and no cache, but all tokens.
	if u.Input != nil && s.own.text("sentry.op") != "" && s.provider() == "anthropic" {
		*u.Input = max(*u.Input, wire.OrZero(u.Total)-wire.OrZero(u.Output))
	}
	// Some libraries leave out what a cache served or took. Their totals do or do not.
	if u.Input != nil && s.leavesOutCached() {
		*u.Input += wire.OrZero(read) + wire.OrZero(written)
		u.Total = nil
	}
	if s.tables == ofAgents && u.Output != nil {
		// Gemini counts so.
		*u.Output += wire.OrZero(s.own.get("thoughts_token_count").count())
	}

	return encoded(u)
}

// count returns the first count with a meaning.
func (s *span) count(means dialect.Meaning) (n *int64) {
	s.each(means, func(_ string, v value) {
		if n == nil {
			n = v.count()
		}
	})

	return n
}

// leavesOutCached reports whether the span's library counts as its provider does, and the
// provider leaves out of the input what a cache served.
func (s *span) leavesOutCached() bool {
	switch name := s.provider(); {
	case s.tables == ofAgents:
		return s.own.get("cache_read_tokens") != nil
	case name != "anthropic" && name != bedrock:
		return false
	case s.own.text("ai.operationId") != "":
		return len(s.own.sorted("ai.usage.inputTokenDetails.")) == 0
	}

	return strings.HasPrefix(s.scope, "@traceloop/instrumentation-") || strings.HasPrefix(s.scope, "strands.")
}

// langfuseUsage reads usage_details. They are the provider's own object, or Langfuse's
// counts, which are disjoint: all input is the sum of those whose names begin so.
func langfuseUsage(object value) value {
	if !object.has("input", "output") {
		return object
	}

	u := usage{Input: new(int64), Output: new(int64)}
	for m := range jsonscan.Members(json.RawMessage(object)) {
		n := value(m.Value).count()
		switch {
		case strings.HasPrefix(m.Name, "input_priority"):
		case strings.HasPrefix(m.Name, "input"), strings.HasPrefix(m.Name, "cache_"):
			*u.Input += wire.OrZero(n)
			u.In.add(strings.TrimPrefix(m.Name, "input_"), n)
		case strings.HasPrefix(m.Name, "output"):
			*u.Output += wire.OrZero(n)
			u.Out.add(strings.TrimPrefix(m.Name, "output_"), n)
		}
	}

	return encoded(u)
}
