package query

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"promptspool/api/calls"
	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// field is a property of a row that a filter can test. Every field is a set of values:
// none if unknown, one for most fields, several for lists. Exactly one of text, number,
// time, flag and content is set; each returns the values, under key if the field is
// nested.
type field struct {
	column rowcode.Column
	nested nesting
	key    string // the only one of a field that is one key of a nested one

	normal func(string) string // see rowcode.Definition.Normal
	words  []string            // the only ones that whole values are compared with; nil means any
	text   func(row *wire.Row, key string) []string
	number func(row *wire.Row, key string) []float64
	time   func(row *wire.Row, key string) []time.Time
	flag   func(row *wire.Row) bool

	// content looks into the body instead.
	content  func(c *Content, key string) []string
	searched bool     // content returns whole texts, which can be searched for words
	intents  []string // what content may return, for a field that classifies
}

// nesting is whether a field takes a nested_key.
type nesting int

const (
	flat nesting = iota
	keyOptional
	keyRequired
)

// fields holds what filters can test, by the peer's names and ours: first those without a
// separate column, or with several values in one, then what the columns define, and metadata with a
// name.
var fields = withColumns(map[string]field{
	"pl_id":               {column: rowcode.ColumnID, text: requestID},
	"id":                  {column: rowcode.ColumnID, text: requestID},
	"request_id":          {column: rowcode.ColumnID, text: requestID},
	"list_time":           {column: rowcode.ColumnTime, time: listTime},
	"metadata_keys":       {column: rowcode.ColumnMetadata, text: metadataKeys},
	"metadata":            {column: rowcode.ColumnMetadata, text: metadataValues, nested: keyRequired},
	"score_name":          {column: rowcode.ColumnScores, text: scoreNames},
	"score":               {column: rowcode.ColumnScores, number: scores, nested: keyOptional},
	"score_value":         {column: rowcode.ColumnScores, text: scoreTexts, nested: keyOptional},
	"score_author":        {column: rowcode.ColumnScores, text: scoreAuthors, nested: keyOptional},
	"is_json":             isShape(calls.ShapeJSON),
	"is_tool_call":        isShape(calls.ShapeToolCall),
	"is_plain_text":       isShape(calls.ShapePlainText),
	"text":                {column: rowcode.ColumnBody, content: (*Content).texts, searched: true},
	"input_text":          {column: rowcode.ColumnBody, content: (*Content).inputText, searched: true},
	"output_text":         {column: rowcode.ColumnBody, content: (*Content).outputText, searched: true},
	"output":              {column: rowcode.ColumnBody, content: (*Content).outputValues, nested: keyRequired},
	"output_keys":         {column: rowcode.ColumnBody, content: (*Content).outputKeys},
	"input_variables":     {column: rowcode.ColumnBody, content: (*Content).variableValues, nested: keyRequired},
	"input_variable_keys": {column: rowcode.ColumnBody, content: (*Content).variableKeys},
	"user_intent":         isIntent((*Content).userIntent, userIntents),
	"agent_intent":        isIntent((*Content).agentIntent, agentIntents),
})

// withColumns adds the fields that the columns define.
func withColumns(fields map[string]field) map[string]field {
	for c := range rowcode.ColumnBody {
		d := rowcode.Define(c)
		f := field{column: c, normal: d.Normal}
		if texts := d.Texts(); texts != nil {
			f.text = func(r *wire.Row, _ string) []string { return texts(r) }
		}
		if number := d.Number(); number != nil {
			f.number = func(r *wire.Row, _ string) []float64 { return some(number(r)) }
		}
		if moment := d.Time(); moment != nil {
			f.time = func(r *wire.Row, _ string) []time.Time { return some(moment(r)) }
		}

		// Apps may send others, which can be found by their beginning; as a whole value,
		// another one is a slip more often.
		if c == rowcode.ColumnStatus {
			f.words = wire.Statuses
		}
		for _, name := range d.Fields {
			fields[name] = f
		}
	}
	for _, key := range wire.CallNames {
		fields[key] = field{column: rowcode.ColumnMetadata, text: metadataValues, key: key}
	}

	return fields
}

// fieldNames lists fields for error messages.
var fieldNames = slices.Sorted(maps.Keys(fields))

// isShape returns the field that is true of outputs of one shape.
func isShape(shape string) field {
	return field{column: rowcode.ColumnShape, flag: func(r *wire.Row) bool { return r.OutputShape == shape }}
}

// isIntent returns the field of the intents that a text shows.
func isIntent(get func(c *Content, key string) []string, intents map[string][]string) field {
	return field{column: rowcode.ColumnBody, content: get, intents: intentNames(intents)}
}

func requestID(r *wire.Row, _ string) []string   { return []string{r.RequestID} }
func listTime(r *wire.Row, _ string) []time.Time { return []time.Time{r.ListTime} }

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

// scores returns the numbers of those called name, or of all of them if it is empty.
func scores(r *wire.Row, name string) []float64 {
	return ofScores(r, name, func(s wire.Score) (float64, bool) { return s.Number, s.Kind != wire.ScoreCategory })
}

// scoreTexts returns categories, and true or false, as scores does numbers.
func scoreTexts(r *wire.Row, name string) []string {
	return ofScores(r, name, func(s wire.Score) (string, bool) { return s.ScoreValue.String(), !s.IsNumber() })
}

func scoreAuthors(r *wire.Row, name string) []string {
	return ofScores(r, name, func(s wire.Score) (string, bool) { return s.Author, s.Author != "" })
}

// ofScores returns what get finds in the scores called name, or in all of them if it is empty.
func ofScores[T any](r *wire.Row, name string, get func(s wire.Score) (v T, ok bool)) (values []T) {
	for _, s := range r.Scores {
		if v, ok := get(s); ok && (name == "" || s.Name == name) {
			values = append(values, v)
		}
	}

	return values
}

// some returns the value, or none unless ok.
func some[T any](v T, ok bool) []T {
	if !ok {
		return nil
	}
	return []T{v}
}

// Bounds of a filter.
const (
	filterDepthMax      = 16
	filterConditionsMax = 100
	filterValuesMax     = 1000 // of one in or not_in
)

// compileFilter returns nil for an empty filter.
func compileFilter(f wire.Filter) (Condition, error) {
	if f.Field == "" && f.Operator == "" && len(f.Filters) == 0 {
		return nil, checkLogic(f.Logic, "filter_group")
	}

	c := filterCompiler{}
	return c.compile(f, "filter_group", 1)
}

// filterCompiler compiles one filter and counts its conditions.
type filterCompiler struct{ conditions int }

// compile compiles the part of the filter at path.
func (c *filterCompiler) compile(f wire.Filter, path string, depth int) (Condition, error) {
	// An empty list is a group, no list is a condition.
	if f.Filters == nil {
		c.conditions++
		if c.conditions > filterConditionsMax {
			return nil, invalid("filter_group", "has more than %d conditions", filterConditionsMax)
		}
		return compileCondition(f, path)
	}

	if depth > filterDepthMax {
		return nil, invalid(path,
			"is nested too deeply; at most %d levels of groups are allowed", filterDepthMax)
	}
	if err := checkLogic(f.Logic, path); err != nil {
		return nil, err
	}
	if f.Field != "" || f.Operator != "" {
		return nil, invalid(path, "has both filters and a condition; put the condition among the filters")
	}

	// The capacity is bounded because the number of filters is not checked yet.
	parts := make([]Condition, 0, min(len(f.Filters), filterConditionsMax))
	for i, part := range f.Filters {
		p, err := c.compile(part, fmt.Sprintf("%s.filters[%d]", path, i), depth+1)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	// Tests of the row come first: they may save the reading of a body.
	slices.SortStableFunc(parts, func(a, b Condition) int {
		return cmp.Compare(columnsOf(a)>>rowcode.ColumnBody, columnsOf(b)>>rowcode.ColumnBody)
	})

	// An OR of nothing matches everything, like an AND of nothing.
	if strings.EqualFold(f.Logic, "OR") && len(parts) > 0 {
		return Any(parts), nil
	}

	return All(parts), nil
}

// checkLogic rejects anything but AND, OR and nothing.
func checkLogic(logic, path string) error {
	if logic == "" || strings.EqualFold(logic, "AND") || strings.EqualFold(logic, "OR") {
		return nil
	}
	return invalid(path+".logic", "must be AND or OR")
}

// invalid returns a 422 about one field.
func invalid(field, format string, args ...any) error {
	return wire.Invalid(wire.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)})
}
