package query

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"promptspool/api/calls"
	"promptspool/api/wire"
	"promptspool/api/words"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/archive/textindex"
)

// Condition is a compiled filter or a part of one: All, Any, Not or *Test. A store may
// take it apart to look at a column for many rows together, as long as it finds what
// Match finds.
type Condition interface {
	Match(s *Subject) bool
}

// All holds if each of its conditions does, and if it has none.
type All []Condition

// Match reports whether the condition holds.
func (a All) Match(s *Subject) bool {
	for _, c := range a {
		if !c.Match(s) {
			return false
		}
	}
	return true
}

// Any holds if one of its conditions does.
type Any []Condition

// Match reports whether the condition holds.
func (a Any) Match(s *Subject) bool {
	for _, c := range a {
		if c.Match(s) {
			return true
		}
	}
	return false
}

// Not negates a condition.
type Not struct{ Condition }

// Match reports whether the condition holds.
func (n Not) Match(s *Subject) bool { return !n.Condition.Match(s) }

// Test is a condition on one field.
type Test struct {
	Field  string         // of the filter
	Column rowcode.Column // the only one that it looks at
	Key    string         // the metadata key or score that it looks at, if it is only one

	// Number is set for a field with at most one number. It reports whether the test
	// holds.
	Number func(values []float64) bool

	// Texts is set if the test asks only whether a text field has one of these values, words
	// in lower case.
	Texts []string

	// Ranges is set if the test asks only whether a number of the field is in one of
	// these.
	Ranges []Range

	// From and To are the first and the last moment for which the test of a time can
	// hold; zero means unbounded. If one is set, the test holds for every moment between them,
	// and for From and To themselves.
	From, To time.Time

	terms  []textindex.Term // of words that the text must have, as far as an index can tell
	whole  bool             // it looks into long metadata values
	sought words.Sought     // what a positive operator looks for in texts; nil if that has no place there
	match  func(s *Subject) bool
}

// Range is an interval of numbers.
type Range struct {
	Least, Most          float64 // infinite: unbounded
	AboveOnly, BelowOnly bool    // exclude Least itself, Most itself
}

// Has reports whether a number is in the range.
func (r Range) Has(x float64) bool {
	return (x > r.Least || x == r.Least && !r.AboveOnly) && (x < r.Most || x == r.Most && !r.BelowOnly)
}

// Match reports whether the condition holds.
func (t *Test) Match(s *Subject) bool { return t.match(s) }

// Subject is what a condition is tested on: a row and, on demand, its request's body. Not
// safe for concurrent use.
type Subject struct {
	Row  *wire.Row
	Body func() ([]byte, error) // nil: there is no body to look into

	// Context ends the reading of a body; nil means nothing does. Then conditions that need the
	// body fail, and Cut reports that.
	Context context.Context

	// Metadata returns that of the record, with whole long values. If it is nil,
	// conditions that must look into a long value do not hold, and Unsure reports that
	// there was one.
	Metadata func() (map[string]string, error)
	Unsure   bool

	// Err is the first error of Body or Metadata. After it, conditions that need them
	// fail.
	Err error

	content *Content
	cut     bool
	whole   map[string]string
}

// Read returns what the body says. The body is read once.
func (s *Subject) Read() *Content {
	if s.content != nil {
		return s.content
	}

	// Set before the body is read: after an error, no condition tries again.
	s.content = &Content{}
	if s.Body == nil {
		return s.content
	}
	body, err := s.Body()
	if err != nil {
		s.Err = err
		return s.content
	}
	ctx := s.Context
	if ctx == nil {
		ctx = context.Background()
	}
	s.content = ReadContent(ctx, body)
	s.cut = ctx.Err() != nil
	if s.cut {
		s.content = &Content{}
	}

	return s.content
}

// Cut reports whether the reading of the body was ended before its end.
func (s *Subject) Cut() bool { return s.cut }

// Judge decides for one row after the other whether it matches a query, until the query's budget is
// spent. Not safe for concurrent use.
type Judge struct {
	Stopped *Position // where the budget was spent; nil if it was not

	query    *Query
	deadline time.Time // zero: none
	last     *Position // of the row before; nil before the first
	subject  Subject   // of the row that was judged last
}

// NewJudge returns a Judge for a pass over the rows of q, which begins now.
func NewJudge(q *Query) Judge {
	j := Judge{query: q}
	if q.Budget > 0 {
		j.deadline = time.Now().Add(q.Budget)
	}

	return j
}

// Matches reports whether a row matches. body and metadata are called only if the row leaves that open,
// or for a snippet. Once Stopped is set, the pass ends.
func (j *Judge) Matches(
	ctx context.Context, row *wire.Row, body func() ([]byte, error), metadata func() (map[string]string, error),
) (matches bool, err error) {
	// The first row is read to its end, so that each pass comes further.
	reading := ctx
	if j.last != nil && !j.deadline.IsZero() {
		var cancel context.CancelFunc
		reading, cancel = context.WithDeadline(ctx, j.deadline)
		defer cancel()
	}

	j.subject = Subject{Row: row, Context: reading, Body: body, Metadata: metadata}
	matches = j.query.Match(&j.subject)
	j.subject.Context = ctx
	switch {
	case j.subject.Err != nil:
		return false, j.subject.Err
	case j.subject.Cut(): // the next pass begins with this row
		j.Stopped = j.last
		return false, ctx.Err()
	}

	p := PositionOf(row)
	j.last = &p
	// Only where nothing matched: a page of matches ends by itself.
	if !matches && !j.deadline.IsZero() && time.Now().After(j.deadline) {
		j.Stopped = j.last
	}

	return matches, nil
}

// wholeValue returns the whole metadata value of which the row has a stored one.
func (s *Subject) wholeValue(key, stored string) (value string, ok bool) {
	if !rowcode.IsReference(stored) {
		return stored, true
	}

	// Without the record nothing is certain; the caller may have to look again.
	if s.Metadata == nil {
		s.Unsure = true
		return "", false
	}

	// One record may be read for many conditions.
	if s.whole == nil {
		all, err := s.Metadata()
		if err != nil {
			s.Err = err
			return "", false
		}
		s.whole = all
	}
	value, ok = s.whole[key]

	return value, ok
}

// needsWhole reports whether a condition may have to look into long metadata values.
func needsWhole(c Condition) bool {
	t, isTest := c.(*Test)
	return isTest && t.whole || slices.ContainsFunc(within(c), needsWhole)
}

// columnsOf returns the columns that a condition looks at.
func columnsOf(c Condition) (s rowcode.Columns) {
	if t, isTest := c.(*Test); isTest {
		return rowcode.ColumnsOf(t.Column)
	}
	for _, part := range within(c) {
		s |= columnsOf(part)
	}

	return s
}

// within returns the conditions that a condition consists of, or that it negates.
func within(c Condition) []Condition {
	if n, negates := c.(Not); negates {
		return []Condition{n.Condition}
	}
	return partsOf(c)
}

// spanned reports whether a condition holds for exactly the records of an interval of time.
func spanned(c Condition) bool {
	switch c := c.(type) {
	case All:
		return !slices.ContainsFunc(c, func(part Condition) bool { return !spanned(part) })
	case *Test:
		// A test of time with neither end, such as is_null, is not an interval.
		return c.Column == rowcode.ColumnTime && !(c.From.IsZero() && c.To.IsZero())
	}

	return false
}

// spanOf bounds the moments of a column for which a condition can hold; zero means unbounded.
func spanOf(c Condition, column rowcode.Column) (from, to time.Time) {
	switch c := c.(type) {
	case All:
		// All parts must hold, so the narrowest bounds count.
		for _, part := range c {
			f, t := spanOf(part, column)
			if f.After(from) {
				from = f
			}
			if !t.IsZero() && (to.IsZero() || t.Before(to)) {
				to = t
			}
		}
	case *Test:
		if c.Column == column {
			return c.From, c.To
		}
	}

	// Any and Not are taken to hold at any time. Where they do not, that costs time, but
	// no record is missed.
	return from, to
}

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
	content    func(c *Content, key string) []string
	searched   bool // content returns whole texts, which can be searched for words
	classifies bool // content returns some of words
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
	names := intentNames(intents)
	return field{column: rowcode.ColumnBody, content: get, classifies: true, words: names, normal: strings.ToLower}
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
