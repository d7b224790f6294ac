package query

import (
	"maps"
	"math"
	"slices"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/calls"
	"promptspool/spool/archive/rowcode"
)

// field is a property of a row that a filter can test. Every field is a set of values:
// none if unknown, one for most fields, several for lists. Exactly one of text, number,
// time, flag and content is set; each returns the values, under key if the field is
// nested.
type field struct {
	column rowcode.Column
	nested nesting

	// word marks a text that is one of a few words, which providers and people write in
	// different cases: whole values match in any case. Other texts match exactly.
	word   bool
	words  []string // the only ones that whole values are compared with; nil: any
	text   func(row *wire.Row, key string) []string
	number func(row *wire.Row, key string) []float64
	time   func(row *wire.Row, key string) []time.Time
	flag   func(row *wire.Row) bool

	// content looks into the body instead.
	content func(c *Content, key string) []string
	intents []string // what content may return, for a field that classifies
}

// nesting is whether a field takes a nested_key.
type nesting int

const (
	flat nesting = iota
	keyOptional
	keyRequired
)

// fields holds what filters can test, by the peer's names and ours.
var fields = map[string]field{
	"pl_id":                 {column: rowcode.ColumnID, text: requestID},
	"id":                    {column: rowcode.ColumnID, text: requestID},
	"request_id":            {column: rowcode.ColumnID, text: requestID},
	"function_name":         oneText(rowcode.ColumnFunction, func(r *wire.Row) string { return r.FunctionName }),
	"engine":                {column: rowcode.ColumnModel, text: engine},
	"model":                 {column: rowcode.ColumnModel, text: engine},
	"provider_type":         {column: rowcode.ColumnProvider, text: providerType, word: true},
	"provider":              {column: rowcode.ColumnProvider, text: providerType, word: true},
	"status":                statusField(),
	"sidecar":               oneText(rowcode.ColumnSidecar, func(r *wire.Row) string { return r.Sidecar }),
	"prompt_id":             {column: rowcode.ColumnTemplate, text: promptName},
	"prompt_name":           {column: rowcode.ColumnTemplate, text: promptName},
	"label":                 {column: rowcode.ColumnLabel, text: promptLabel},
	"tags":                  someTexts(rowcode.ColumnTags, func(r *wire.Row) []string { return r.Tags }),
	"group_id":              someTexts(rowcode.ColumnGroups, func(r *wire.Row) []string { return r.GroupIDs }),
	"metadata_keys":         {column: rowcode.ColumnMetadata, text: metadataKeys},
	"metadata":              {column: rowcode.ColumnMetadata, text: metadataValues, nested: keyRequired},
	"score_name":            {column: rowcode.ColumnScores, text: scoreNames},
	"score":                 {column: rowcode.ColumnScores, number: scores, nested: keyOptional},
	"prompt_version_number": {column: rowcode.ColumnVersion, number: promptVersion},
	"input_tokens":          oneCount(rowcode.ColumnInputTokens, inputTokens),
	"output_tokens":         oneCount(rowcode.ColumnOutputTokens, outputTokens),
	"cost":                  {column: rowcode.ColumnCost, number: price},
	"latency_ms":            {column: rowcode.ColumnLatency, number: latencyMS},
	"request_start_time":    oneTime(rowcode.ColumnStart, func(r *wire.Row) *time.Time { return r.StartTime }),
	"request_end_time":      oneTime(rowcode.ColumnEnd, func(r *wire.Row) *time.Time { return r.EndTime }),
	"input_text":            {column: rowcode.ColumnBody, content: (*Content).inputText},
	"output_text":           {column: rowcode.ColumnBody, content: (*Content).outputText},
	"is_json":               isShape(calls.ShapeJSON),
	"is_tool_call":          isShape(calls.ShapeToolCall),
	"is_plain_text":         isShape(calls.ShapePlainText),
	"tool_names":            someTexts(rowcode.ColumnTools, func(r *wire.Row) []string { return r.ToolNames }),
	"cached_tokens":         oneCount(rowcode.ColumnCachedTokens, cachedTokens),
	"reasoning_tokens":      oneCount(rowcode.ColumnReasoningTokens, reasoningTokens),
	"finish_reason":         oneWord(rowcode.ColumnFinish, func(r *wire.Row) string { return r.FinishReason }),
	"error_type":            oneWord(rowcode.ColumnErrorType, func(r *wire.Row) string { return r.ErrorType }),
	"output":                {column: rowcode.ColumnBody, content: (*Content).outputValues, nested: keyRequired},
	"output_keys":           {column: rowcode.ColumnBody, content: (*Content).outputKeys},
	"input_variables":       {column: rowcode.ColumnBody, content: (*Content).variableValues, nested: keyRequired},
	"input_variable_keys":   {column: rowcode.ColumnBody, content: (*Content).variableKeys},
	"user_intent":           isIntent((*Content).userIntent, userIntents),
	"agent_intent":          isIntent((*Content).agentIntent, agentIntents),
	"accepted_at":           oneTime(rowcode.ColumnAccepted, func(r *wire.Row) *time.Time { return &r.AcceptedAt }),
	"list_time":             oneTime(rowcode.ColumnTime, func(r *wire.Row) *time.Time { return &r.ListTime }),
}

// fieldNames lists fields for error messages.
var fieldNames = slices.Sorted(maps.Keys(fields))

// oneText returns the field of a text that is absent when it is empty.
func oneText(column rowcode.Column, get func(*wire.Row) string) field {
	return field{column: column, text: func(r *wire.Row, _ string) []string {
		return present(rowcode.Optional(get(r)))
	}}
}

// someTexts returns the field of a list of texts.
func someTexts(column rowcode.Column, get func(*wire.Row) []string) field {
	return field{column: column, text: func(r *wire.Row, _ string) []string { return get(r) }}
}

// oneWord returns the field of a text that is one of a few words.
func oneWord(column rowcode.Column, get func(*wire.Row) string) field {
	f := oneText(column, get)
	f.word = true
	return f
}

// statusField returns the field of the status. Apps may send others than wire.Statuses, which can be
// found by their beginning; as a whole value, another one is a slip more often.
func statusField() field {
	f := oneWord(rowcode.ColumnStatus, func(r *wire.Row) string { return r.Status })
	f.words = wire.Statuses
	return f
}

// oneCount returns the field of an integer that may be absent.
func oneCount(column rowcode.Column, get func(*wire.Row) *int64) field {
	return field{column: column, number: func(r *wire.Row, _ string) []float64 { return number(get(r)) }}
}

// oneTime returns the field of a time that may be absent.
func oneTime(column rowcode.Column, get func(*wire.Row) *time.Time) field {
	return field{column: column, time: func(r *wire.Row, _ string) []time.Time { return present(get(r)) }}
}

// isShape returns the field that is true of outputs of one shape.
func isShape(shape string) field {
	return field{column: rowcode.ColumnShape, flag: func(r *wire.Row) bool { return r.OutputShape == shape }}
}

// isIntent returns the field of the intents that a text shows.
func isIntent(get func(c *Content, key string) []string, intents map[string][]string) field {
	return field{column: rowcode.ColumnBody, content: get, intents: intentNames(intents)}
}

func requestID(r *wire.Row, _ string) []string    { return []string{r.RequestID} }
func engine(r *wire.Row, _ string) []string       { return present(rowcode.Optional(r.Engine)) }
func providerType(r *wire.Row, _ string) []string { return present(rowcode.Optional(r.Provider)) }
func promptName(r *wire.Row, _ string) []string   { return present(r.PromptName) }
func promptLabel(r *wire.Row, _ string) []string  { return present(r.PromptLabel) }

func inputTokens(r *wire.Row) *int64     { return r.InputTokens }
func outputTokens(r *wire.Row) *int64    { return r.OutputTokens }
func cachedTokens(r *wire.Row) *int64    { return r.CachedTokens }
func reasoningTokens(r *wire.Row) *int64 { return r.ReasoningTokens }

func price(r *wire.Row, _ string) []float64 { return present(r.Price) }

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
	return []float64{Milliseconds(*r.Latency)}
}

// Milliseconds converts a row's seconds to latency_ms; *1000 alone gives
// 1234.0000000000002.
func Milliseconds(seconds float64) float64 { return math.Round(seconds*1e9) / 1e6 }

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

// scores returns those called name, or all of them if it is empty.
func scores(r *wire.Row, name string) []float64 {
	var values []float64
	for _, s := range r.Scores {
		if name == "" || s.Name == name {
			values = append(values, float64(s.Score))
		}
	}

	return values
}

// present returns the value, or none if it is absent.
func present[T any](v *T) []T {
	if v == nil {
		return nil
	}
	return []T{*v}
}

// number is present for an integer.
func number(n *int64) []float64 {
	if n == nil {
		return nil
	}
	return []float64{float64(*n)}
}
