package otel

import "strings"

// langfuse is Langfuse's SDKs from version 3 on.
var langfuse = dialect{
	name: "Langfuse",
	table: []attribute{
		{"langfuse.observation.type", decides, ""},
		{"langfuse.observation.model.name", responseModel, ""},
		{"langfuse.observation.model.parameters", parameters, ""},
		{"langfuse.observation.usage_details", usageObject, ""},
		{"langfuse.observation.cost_details", price, ""},
		{"langfuse.observation.completion_start_time", firstAt, ""},
		{"langfuse.observation.input", shownInput, ""},
		{"langfuse.observation.output", shownOutput, ""},
		{"langfuse.observation.level", status, ""},
		{"langfuse.observation.status_message", errorMessage, ""},
		{"langfuse.observation.prompt.name", promptName, ""},
		{"langfuse.observation.prompt.version", promptVersion, ""},
		{"langfuse.trace.tags", tags, ""},
		{"langfuse.user.id", metadata, userKey},
		{"langfuse.observation.metadata.userId", metadata, userKey},
		{"langfuse.trace.metadata.langfuse_user_id", metadata, userKey},
		{"langfuse.session.id", metadata, sessionKey},
		{"langfuse.observation.metadata.sessionId", metadata, sessionKey},
		{"langfuse.trace.metadata.langfuse_session_id", metadata, sessionKey},
		{"langfuse.environment", metadata, environmentKey},
		{"langfuse.release", metadata, "release"},
		{"langfuse.version", metadata, "version"},
		{"langfuse.trace.name", metadata, "trace"},
		{"langfuse.observation.metadata", metadataMap, ""},
		{"langfuse.observation.metadata.*", metadata, ""},
		{"langfuse.trace.metadata", metadataMap, ""},
		{"langfuse.trace.metadata.*", metadata, ""},
	},
	input:  []source{{"langfuse.observation.input", anything}},
	output: []source{{"langfuse.observation.output", anything}},
}

// langfuseKinds are the types of observations.
var langfuseKinds = map[string]Kind{
	"generation": KindCall, "embedding": KindEmbedding, "agent": KindAgent, "tool": KindTool,
	"chain": KindChain, "span": KindChain, "event": KindChain, "retriever": KindRetriever,
	"evaluator": KindEvaluator, "guardrail": KindEvaluator,
}

func langfuseKind(s *span) Kind {
	return kinds(s.own.text("langfuse.observation.type"), langfuseKinds)
}

// langfuseUsage reads usage_details. They are the provider's own object, or Langfuse's
// counts, which are disjoint: all input is the sum of those whose names begin so.
func langfuseUsage(object value) value {
	if !object.has("input", "output") {
		return object
	}

	var u usage
	u.Details = inputDetails{
		Cached:  firstCount(object, "input_cached_tokens", "cache_read_input_tokens", "input_cache_read"),
		Written: firstCount(object, "input_cache_creation", "cache_creation_input_tokens", "input_cache_write"),
		Audio:   firstCount(object, "input_audio_tokens", "input_audio"),
	}
	u.Out = outputDetails{
		Reasoning: firstCount(object, "output_reasoning_tokens", "output_reasoning"),
		Audio:     firstCount(object, "output_audio_tokens", "output_audio"),
	}
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
