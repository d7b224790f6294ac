package otel

import (
	"slices"
	"strings"

	"promptspool/api/calls/otel/dialect"
)

// usage is that of a call in OpenAI's form: input includes what the cache served, output
// the reasoning.
type usage struct {
	Input, Output, Total *int64
	Details, Out         tokenDetails // of Input, of Output
}

func (u usage) members(o *object) {
	o.addCount("prompt_tokens", u.Input)
	o.addCount("completion_tokens", u.Output)
	o.addCount("total_tokens", u.Total)
	if len(u.Details) > 0 {
		o.add("prompt_tokens_details", u.Details)
	}
	if len(u.Out) > 0 {
		o.add("completion_tokens_details", u.Out)
	}
}

// tokenDetails are counts of some of the tokens, by their names in OpenAI's form.
type tokenDetails []tokenDetail

type tokenDetail struct {
	name  string
	count *int64
}

// add adds a count that is known. The first of a name counts.
func (d *tokenDetails) add(name string, count *int64) {
	if count != nil && !slices.ContainsFunc(*d, func(other tokenDetail) bool { return other.name == name }) {
		*d = append(*d, tokenDetail{name, count})
	}
}

func (d tokenDetails) members(o *object) {
	for _, detail := range d {
		o.addCount(detail.name, detail.count)
	}
}

// ownUsage are where responses that libraries keep have their usage, with all details and as the
// provider counts. 0 is the first element of a list.
var ownUsage = strings.Fields("usage usageMetadata usage_metadata x_groq.usage llm_output.token_usage " +
	"llm_output.usage llmOutput.usage generations.0.0.message.kwargs.usage_metadata " +
	"generations.0.0.message.usage_metadata")

// under returns the object at a path, or nil.
func (v value) under(path string) value {
	for name := range strings.SplitSeq(path, ".") {
		if name == "0" {
			v = v.element()
		} else {
			v = v.at(name)
		}
	}
	if !v.isObject() {
		return nil
	}

	return v
}

// usage returns the tokens of a call in a form that responses have, or nil if they are unknown.
// Package calls reads all forms.
func (s *span) usage() value {
	if object := s.find(dialect.UsageObject).inner(); object.isObject() {
		if u := langfuseUsage(object); u != nil {
			return u
		}
	}

	own := s.rawResponse()
	for _, path := range ownUsage {
		if object := own.under(path); object != nil {
			return object
		}
	}
	var within value
	s.each(dialect.UsageWithin, func(path string, v value) {
		if within == nil {
			within = v.inner().under(path)
		}
	})
	if within != nil {
		return within
	}

	return s.countedUsage().json()
}

// countedUsage returns what the attributes say, each of which is a count.
func (s *span) countedUsage() usage {
	u := usage{Input: s.count(dialect.InputTokens), Output: s.count(dialect.OutputTokens)}
	u.Total = s.count(dialect.TotalTokens)
	read, written := s.count(dialect.CachedTokens), s.count(dialect.CacheWrites)
	u.Details.add("cached_tokens", read)
	u.Details.add("cache_write_tokens", written)
	s.each(dialect.InputDetail, func(name string, v value) { u.Details.add(name, v.count()) })
	u.Out.add("reasoning_tokens", s.count(dialect.ReasoningTokens))
	s.each(dialect.OutputDetail, func(name string, v value) { u.Out.add(name, v.count()) })

	// Sentry has the provider's own input of Anthropic's, and no cache, but all tokens.
	if u.Input != nil && s.own.text("sentry.op") != "" && s.provider() == "anthropic" {
		*u.Input = max(*u.Input, zero(u.Total)-zero(u.Output))
	}
	// Some libraries leave out what a cache served or took. Their totals do or do not.
	if u.Input != nil && s.leavesOutCached() {
		*u.Input += zero(read) + zero(written)
		u.Total = nil
	}
	if s.tables == ofAgents && u.Output != nil {
		*u.Output += zero(s.own.get("thoughts_token_count").count()) // as Gemini counts
	}

	return u
}

// json returns nil if nothing is known.
func (u usage) json() value {
	if u.Input == nil && u.Output == nil && len(u.Details)+len(u.Out) == 0 {
		return nil
	}

	return encoded(u)
}

// count returns the first count with a meaning.
func (s *span) count(means dialect.Meaning) *int64 {
	lines := s.tables.byMeaning[means]
	for i := range lines {
		if l := &lines[i]; s.own.has(&l.mark) {
			if n := s.own.get(l.Key).count(); n != nil {
				return n
			}
		}
	}

	return nil
}

// leavesOutCached reports whether the span's library counts as its provider does, and the
// provider leaves out of the input what a cache served.
func (s *span) leavesOutCached() bool {
	if s.tables == ofAgents {
		return s.own.get("cache_read_tokens") != nil
	}
	name := s.provider()
	exclusive := name == "anthropic" || name == bedrock
	switch {
	case !exclusive:
		return false
	case s.own.text("ai.operationId") != "":
		return len(s.own.sorted("ai.usage.inputTokenDetails.")) == 0
	}

	return strings.HasPrefix(s.scope, "@traceloop/instrumentation-") || strings.HasPrefix(s.scope, "strands.")
}

func zero(n *int64) int64 {
	if n == nil {
		return 0
	}

	return *n
}

// langfuseUsage reads usage_details. They are the provider's own object, or Langfuse's
// counts, which are disjoint: all input is the sum of those whose names begin so.
func langfuseUsage(object value) value {
	if !object.has("input", "output") {
		return object
	}

	var u usage
	u.Details.add("cached_tokens",
		firstCount(object, "input_cached_tokens", "cache_read_input_tokens", "input_cache_read"))
	u.Details.add("cache_write_tokens",
		firstCount(object, "input_cache_creation", "cache_creation_input_tokens", "input_cache_write"))
	u.Details.add("audio_tokens", firstCount(object, "input_audio_tokens", "input_audio"))
	u.Out.add("reasoning_tokens", firstCount(object, "output_reasoning_tokens", "output_reasoning"))
	u.Out.add("audio_tokens", firstCount(object, "output_audio_tokens", "output_audio"))
	var in, out int64
	for name, v := range objectOf(object) {
		n := zero(v.count())
		switch {
		case strings.HasPrefix(name, "input_priority"):
		case strings.HasPrefix(name, "input"), strings.HasPrefix(name, "cache_"):
			in += n
		case strings.HasPrefix(name, "output"):
			out += n
		}
	}
	u.Input, u.Output = &in, &out

	return u.json()
}

// firstCount returns the first count among the members called names.
func firstCount(object value, names ...string) *int64 {
	for _, name := range names {
		if n := object.at(name).count(); n != nil {
			return n
		}
	}

	return nil
}
