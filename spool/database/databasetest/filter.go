package databasetest

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// vocabulary lists the fields of random filters, with values that random histories may
// have.
var vocabulary = withNumbers([]word{
	{field: "model", operators: texts, values: models},
	{field: "function_name", operators: texts, values: functions},
	{field: "provider", operators: texts, values: []string{"openai", "OpenAI", "ANTHROPIC"}},
	{field: "status", operators: texts, values: []string{"SUCCESS", "error", "Error"}},
	{field: "tags", operators: texts, values: tags},
	{field: "metadata", operators: append(metadataOnly, texts...), values: values},
	{field: "metadata_keys", operators: texts, values: keys},
	{field: "session_id", operators: texts, values: values[:4]},
	{field: "user_id", operators: texts, values: values},
	{field: "trace_id", operators: texts, values: append([]string{strings.ToUpper(traces[0])}, traces...)},
	{field: "score_name", operators: texts, values: names},
	{field: "score_value", operators: texts, values: scoreTexts},
	{field: "score_author", operators: texts, values: scoreAuthors},
	{field: "prompt_name", operators: texts, values: templates},
	{field: "label", operators: texts, values: labels},
	{field: "group_id", operators: texts, values: groups},
	{field: "sidecar", operators: texts, values: sidecars},
	{field: "error_type", operators: texts, values: append([]string{"provider_timeout"}, errors...)},
	{field: "tool_names", operators: texts, values: tools},
	{field: "finish_reason", operators: texts, values: append([]string{"tool_calls", "sToP"}, reasons...)},
	{field: "is_json", operators: flags},
	{field: "is_tool_call", operators: flags},
	{field: "is_plain_text", operators: flags},
	{field: "score", operators: numbers},
	{field: "accepted_at", operators: []string{"before", "after", "is_null"}, times: true},
	{field: "request_start_time", operators: []string{"before", "after", "gte", "is_not_null"}, times: true},
})

// word is a field of random filters.
type word struct {
	field     string
	operators []string
	values    []string // nil for numbers and times
	times     bool
}

// withNumbers adds the fields of all columns of numbers.
func withNumbers(words []word) []word {
	for c := range rowcode.ColumnBody {
		if d := rowcode.Define(c); d.Number() != nil {
			words = append(words, word{field: d.Fields[0], operators: numbers})
		}
	}
	return words
}

var (
	flags = []string{"is_true", "is_false"}
	texts = []string{
		"is", "is_not", "contains", "not_contains", "starts_with", "not_starts_with", "ends_with", "not_ends_with",
		"in", "not_in", "is_empty", "is_not_null",
	}
	metadataOnly = []string{"key_equals", "key_not_equals", "key_contains"}
	numbers      = []string{"eq", "neq", "gt", "gte", "lt", "lte", "between", "is_null", "is_not_null"}
)

// Filter draws a filter that query.Compile accepts: a group, with groups in it down to
// depth.
func Filter(t *rapid.T, depth int) wire.Filter {
	f := wire.Filter{
		Logic:   rapid.SampledFrom([]string{"", "AND", "OR"}).Draw(t, "logic"),
		Filters: []wire.Filter{},
	}
	for range rapid.IntRange(1, 3).Draw(t, "parts") {
		if depth > 1 && rapid.Bool().Draw(t, "group") {
			f.Filters = append(f.Filters, Filter(t, depth-1))
		} else {
			f.Filters = append(f.Filters, drawCondition(t))
		}
	}

	return f
}

// drawCondition draws a condition on one field.
func drawCondition(t *rapid.T) wire.Filter {
	word := rapid.SampledFrom(vocabulary).Draw(t, "field")
	f := wire.Filter{Field: word.field, Operator: rapid.SampledFrom(word.operators).Draw(t, "operator")}
	switch word.field {
	case "metadata":
		f.NestedKey = pick(t, keys)
	case "score", "score_value", "score_author":
		f.NestedKey = rapid.SampledFrom([]string{"", "default", "compiles"}).Draw(t, "score name")
	}

	value := func() any {
		switch {
		case word.times:
			return Start.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "second")) * time.Second)
		case word.values == nil:
			return rapid.SampledFrom([]float64{-1, 0, 0.29, 0.295, 1, 2, 50, 1000, 2000}).Draw(t, "number")
		}
		return pick(t, word.values)
	}

	// Some operators take two values, some take none.
	var v any
	switch {
	case f.Operator == "between": // the lowest first
		ends := []any{value(), value()}
		slices.SortFunc(ends, func(a, b any) int {
			if at, ok := a.(time.Time); ok {
				return at.Compare(b.(time.Time))
			}
			return cmp.Compare(a.(float64), b.(float64))
		})
		v = ends
	case slices.Contains([]string{"in", "not_in"}, f.Operator):
		v = []any{value(), value()}
	case slices.Contains([]string{"is_null", "is_not_null", "is_empty", "is_true", "is_false"}, f.Operator):
		return f
	default:
		v = value()
	}
	f.Value, _ = json.Marshal(v) // texts, numbers and times always encode

	return f
}

// withWords returns the filter that also asks for words in the prompt or the response.
func withWords(words string, f *wire.Filter) *wire.Filter {
	all := wire.Filter{Logic: "AND", Filters: []wire.Filter{}}
	for word := range strings.FieldsSeq(words) {
		all.Filters = append(all.Filters, Condition("text", "", "matches", word))
	}
	if len(all.Filters) == 0 {
		return f
	}
	if f != nil {
		all.Filters = append(all.Filters, *f)
	}

	return &all
}
