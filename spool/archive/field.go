package archive

import (
	"maps"
	"math"
	"slices"
	"time"

	"promptspool/api/wire"
)

// field is something of a row that a filter can ask about. Every field is a set of values: none where the row knows
// nothing, one for most fields, several for lists. Exactly one of text, number and time is set; each returns the values,
// under key where the field is nested.
type field struct {
	nested nesting
	text   func(row *wire.Row, key string) []string
	number func(row *wire.Row, key string) []float64
	time   func(row *wire.Row, key string) []time.Time
}

// nesting says whether a field takes a nested_key.
type nesting int

const (
	flat nesting = iota
	keyOptional
	keyRequired
)

// fields is what filters can ask about, by the peer's names and ours.
var fields = map[string]field{
	"pl_id":                 {text: requestID},
	"id":                    {text: requestID},
	"request_id":            {text: requestID},
	"function_name":         oneText(func(r *wire.Row) string { return r.FunctionName }),
	"engine":                {text: engine},
	"model":                 {text: engine},
	"provider_type":         {text: providerType},
	"provider":              {text: providerType},
	"status":                oneText(func(r *wire.Row) string { return r.Status }),
	"sidecar":               oneText(func(r *wire.Row) string { return r.Sidecar }),
	"prompt_id":             {text: promptName},
	"prompt_name":           {text: promptName},
	"label":                 {text: func(r *wire.Row, _ string) []string { return present(r.PromptLabel) }},
	"tags":                  {text: func(r *wire.Row, _ string) []string { return r.Tags }},
	"group_id":              {text: func(r *wire.Row, _ string) []string { return r.GroupIDs }},
	"metadata_keys":         {text: metadataKeys},
	"metadata":              {text: metadataValues, nested: keyRequired},
	"score_name":            {text: scoreNames},
	"score":                 {number: scores, nested: keyOptional},
	"prompt_version_number": {number: promptVersion},
	"input_tokens":          {number: func(r *wire.Row, _ string) []float64 { return number(r.InputTokens) }},
	"output_tokens":         {number: func(r *wire.Row, _ string) []float64 { return number(r.OutputTokens) }},
	"cost":                  {number: func(r *wire.Row, _ string) []float64 { return present(r.Price) }},
	"latency_ms":            {number: latencyMS},
	"request_start_time":    {time: func(r *wire.Row, _ string) []time.Time { return present(r.StartTime) }},
	"request_end_time":      {time: func(r *wire.Row, _ string) []time.Time { return present(r.EndTime) }},
	"accepted_at":           {time: func(r *wire.Row, _ string) []time.Time { return []time.Time{r.AcceptedAt} }},
}

// bodyFields are the peer's that look into prompts and responses.
var bodyFields = []string{"input_text", "output_text", "is_json", "is_tool_call", "is_plain_text", "tool_names", "output",
	"output_keys", "input_variables", "input_variable_keys", "user_intent", "agent_intent"}

// fieldNames lists fields for error messages.
var fieldNames = slices.Sorted(maps.Keys(fields))

// oneText is a text that is absent when it is empty.
func oneText(get func(*wire.Row) string) field {
	return field{text: func(r *wire.Row, _ string) []string { return present(known(get(r))) }}
}

func requestID(r *wire.Row, _ string) []string    { return []string{r.RequestID} }
func engine(r *wire.Row, _ string) []string       { return present(known(r.Engine)) }
func providerType(r *wire.Row, _ string) []string { return present(known(r.Provider)) }
func promptName(r *wire.Row, _ string) []string   { return present(r.PromptName) }

func promptVersion(r *wire.Row, _ string) []float64 {
	if r.PromptVersion == nil {
		return nil
	}
	return []float64{float64(*r.PromptVersion)}
}

func latencyMS(r *wire.Row, _ string) []float64 {
	if r.Latency == nil {
		return nil
	}
	return []float64{math.Round(*r.Latency*1e9) / 1e6} // the row has seconds; *1000 alone gives 1234.0000000000002
}

func metadataKeys(r *wire.Row, _ string) []string {
	keys := make([]string, len(r.Metadata))
	for i, m := range r.Metadata {
		keys[i] = m.Key
	}
	return keys
}

func metadataValues(r *wire.Row, key string) []string {
	for _, m := range r.Metadata {
		if m.Key == key {
			return []string{m.Value}
		}
	}
	return nil
}

func scoreNames(r *wire.Row, _ string) []string {
	names := make([]string, len(r.Scores))
	for i, s := range r.Scores {
		names[i] = s.Name
	}
	return names
}

// scores are those called name, or all of them if it is empty.
func scores(r *wire.Row, name string) []float64 {
	var values []float64
	for _, s := range r.Scores {
		if name == "" || s.Name == name {
			values = append(values, float64(s.Score))
		}
	}
	return values
}

// present is the value, or none.
func present[T any](v *T) []T {
	if v == nil {
		return nil
	}
	return []T{*v}
}

func number(n *int64) []float64 {
	if n == nil {
		return nil
	}
	return []float64{float64(*n)}
}
