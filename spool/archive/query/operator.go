package query

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/api/words"
	"promptspool/spool/archive/rowcode"
)

// negations maps operators to those that they negate. A field may have several values or
// none, so two rules apply: an operator holds if it holds for one of the values, and its
// negation holds exactly if it does not. So tags is_not "a" means that no tag is "a", and
// finds records without tags too.
var negations = map[string]string{
	"is_not":          "is",
	"neq":             "eq",
	"not_in":          "in",
	"not_contains":    "contains",
	"not_starts_with": "starts_with",
	"not_ends_with":   "ends_with",
	"not_matches":     "matches",
	"is_not_empty":    "is_empty",
	"is_not_null":     "is_null",
	"key_not_equals":  "key_equals",
	"is_false":        "is_true",
}

// Operators by the type of the field, in the order in which errors list them.
var (
	anyOperators = []string{
		"is", "is_not", "eq", "neq", "in", "not_in", "is_null", "is_not_null", "is_empty", "is_not_empty",
	}
	partOperators = []string{
		"contains", "not_contains", "starts_with", "not_starts_with", "ends_with", "not_ends_with",
	}
	textOperators   = append(partOperators, anyOperators...)
	searchOperators = append([]string{"matches", "not_matches"}, textOperators...)
	keyOperators    = append([]string{"key_equals", "key_not_equals", "key_contains"}, textOperators...)
	numberOperators = append([]string{"gt", "gte", "lt", "lte", "between"}, anyOperators...)
	timeOperators   = append([]string{"before", "after"}, numberOperators...)
	flagOperators   = []string{"is_true", "is_false"}
	intentOperators = []string{"is", "is_not", "in", "not_in"}
)

// operation is one condition of a filter while it is compiled.
type operation struct {
	wire.Filter
	path   string
	normal func(string) string // see field
}

// compileCondition compiles a single condition.
func compileCondition(f wire.Filter, path string) (Condition, error) {
	fd, ok := fields[f.Field]
	o := operation{f, path, fd.normal}
	o.NestedKey = cmp.Or(fd.key, f.NestedKey)
	if o.normal == nil {
		o.normal = func(text string) string { return text }
	}
	switch {
	case f.Field == "":
		return nil, invalid(path+".field",
			"is missing; it may be one of: %s", strings.Join(fieldNames, ", "))
	case !ok:
		return nil, invalid(path+".field",
			"is not known; it may be one of: %s", strings.Join(fieldNames, ", "))
	case fd.nested == flat && f.NestedKey != "":
		return nil, invalid(path+".nested_key", "does not apply to %s", f.Field)
	case fd.nested == keyRequired && f.NestedKey == "":
		return nil, invalid(path+".nested_key",
			"is missing: the key of %s to look at; %s_keys looks at the keys themselves",
			f.Field, strings.TrimSuffix(f.Field, "s"))
	}

	allowed := numberOperators
	switch {
	case fd.intents != nil:
		allowed = intentOperators
	case fd.flag != nil:
		allowed = flagOperators
	case fd.nested == keyRequired:
		allowed = keyOperators
	case fd.searched:
		allowed = searchOperators
	case fd.text != nil || fd.content != nil:
		allowed = textOperators
	case fd.time != nil:
		allowed = timeOperators
	}
	if !slices.Contains(allowed, f.Operator) {
		return nil, invalid(path+".operator",
			"must be one of these for %s: %s", f.Field, strings.Join(allowed, ", "))
	}
	// Only positive operators are compiled: a negation follows from what it negates.
	if positive, negative := negations[f.Operator]; negative {
		o.Operator = positive
		t, err := o.compile(fd)
		return Not{t}, err
	}

	return o.compile(fd)
}

// compile returns the test of a positive operator that the field allows.
func (o operation) compile(fd field) (*Test, error) {
	t := &Test{Field: o.Field, Column: fd.column}
	key := o.NestedKey
	for _, want := range o.texts() {
		known := func(word string) bool { return strings.EqualFold(word, want) }
		if fd.words != nil && !slices.ContainsFunc(fd.words, known) {
			return t, invalid(o.path+".value",
				"must be one of: %s; starts_with finds others", strings.Join(fd.words, ", "))
		}
	}

	switch {
	case fd.flag != nil:
		t.match = func(s *Subject) bool { return fd.flag(s.Row) }
		return t, nil

	case fd.intents != nil:
		return t, o.intent(t, fd)

	case fd.content != nil:
		holds, err := o.text()
		t.match = func(s *Subject) bool { return holds(fd.content(s.Read(), key)) }
		if fd.searched {
			t.terms = o.terms()
			want, _, _ := parseText(o.Value)
			t.sought = words.Seek(o.Operator, want)
		}
		return t, err

	case fd.text != nil:
		// Rows have only references to long metadata values.
		if fd.column == rowcode.ColumnMetadata && key != "" {
			return t, o.metadata(t, fd)
		}
		holds, err := o.text()
		t.match = func(s *Subject) bool { return holds(fd.text(s.Row, key)) }
		t.Key, t.Texts = key, o.texts()
		return t, err

	// Stores skip what From and To exclude, so these may only be set for a value that was
	// understood.
	case fd.time != nil:
		holds, err := ordered(o, parseMoment, time.Time.Compare)
		t.match = func(s *Subject) bool { return holds(fd.time(s.Row, key)) }
		if err == nil {
			t.From, t.To = o.span()
		}
		return t, err
	}

	// Only a number is left.
	holds, err := ordered(o, parseNumber, cmp.Compare[float64])
	t.match = func(s *Subject) bool { return holds(fd.number(s.Row, key)) }

	// A row has many scores, so that no single number decides.
	if fd.column == rowcode.ColumnScores {
		t.Key = key
	} else {
		t.Number = holds
	}
	t.Ranges = o.ranges()

	return t, err
}

// metadata compiles the test of a metadata value. Whole values are compared by their
// stored form; to find a part, the test must look into long values.
func (o operation) metadata(t *Test, fd field) error {
	t.Key = o.NestedKey
	t.Texts = o.texts()
	for i, text := range t.Texts {
		t.Texts[i] = rowcode.StoredValue(t.Key, text)
	}

	switch {
	case t.Texts != nil:
		// texts ignores values of a wrong type; text rejects them.
		if _, err := o.text(); err != nil {
			return err
		}
		t.match = func(s *Subject) bool {
			return slices.ContainsFunc(fd.text(s.Row, t.Key), oneOf(t.Texts))
		}
		return nil

	case o.Operator == "is_null" || o.Operator == "is_empty":
		holds, err := o.text()
		t.match = func(s *Subject) bool { return holds(fd.text(s.Row, t.Key)) }
		return err
	}

	// The others look for a part, which a reference does not show.
	holds, err := o.text()
	t.whole = true
	t.match = func(s *Subject) bool {
		values := fd.text(s.Row, t.Key)
		if len(values) == 0 {
			return holds(values)
		}
		value, ok := s.wholeValue(t.Key, values[0])
		return ok && holds([]string{value})
	}
	return err
}

// texts returns the values of which the field must have one, nil for other operators.
func (o operation) texts() (wanted []string) {
	switch o.Operator {
	case "in":
		wanted, _ = list(o, parseText)
	case "is", "eq", "key_equals":
		if want, _, ok := parseText(o.Value); ok {
			wanted = []string{want}
		}
	}

	return mapped(wanted, o.normal)
}

// ranges returns those of which a number must be in one, nil for other operators.
func (o operation) ranges() []Range {
	var numbers []float64
	// Values of a wrong type are ignored here: ordered rejects them.
	switch o.Operator {
	case "is_null", "is_empty":
		return nil
	case "in", "between":
		numbers, _ = list(o, parseNumber)
	default:
		if x, _, ok := parseNumber(o.Value); ok {
			numbers = []float64{x}
		}
	}

	// All other operators have a range for each number.
	if o.Operator == "between" && len(numbers) == 2 {
		return []Range{{Least: numbers[0], Most: numbers[1]}}
	}

	ranges := make([]Range, len(numbers))
	for i, x := range numbers {
		r := Range{Least: x, Most: x}
		switch o.Operator {
		case "gt", "gte":
			r = Range{Least: x, Most: math.Inf(1), AboveOnly: o.Operator == "gt"}
		case "lt", "lte":
			r = Range{Least: math.Inf(-1), Most: x, BelowOnly: o.Operator == "lt"}
		}
		ranges[i] = r
	}

	return ranges
}

// intent compiles the test of a field that classifies a text. It accepts only the peer's
// words.
func (o operation) intent(t *Test, fd field) error {
	var wanted []string
	var err error
	if o.Operator == "in" {
		wanted, err = list(o, parseText)
	} else {
		var w string
		w, err = one(o, o.Value, parseText)
		wanted = []string{w}
	}
	if err != nil {
		return err
	}

	// A word that the peer does not have would match nothing, and hide a spelling
	// mistake.
	for _, w := range mapped(wanted, strings.ToLower) {
		if !slices.Contains(fd.intents, w) {
			return invalid(o.path+".value", "must be one of: %s", strings.Join(fd.intents, ", "))
		}
	}

	t.match = func(s *Subject) bool {
		return slices.ContainsFunc(fd.content(s.Read(), ""), oneOf(wanted))
	}
	return nil
}

// span returns the first and the last moment for which a positive operator on a time can
// hold, to the nanosecond; zero means unbounded.
func (o operation) span() (from, to time.Time) {
	// The values were already checked by ordered.
	switch o.Operator {
	case "is", "eq":
		at, _, _ := parseMoment(o.Value)
		return at, at
	case "gte":
		from, _, _ = parseMoment(o.Value)
	case "lte":
		to, _, _ = parseMoment(o.Value)

	// The ends themselves must be within, so exclusive ones move by a nanosecond.
	case "after", "gt":
		from, _, _ = parseMoment(o.Value)
		from = from.Add(1)
	case "before", "lt":
		to, _, _ = parseMoment(o.Value)
		to = to.Add(-1)
	case "between":
		if ends, err := list(o, parseMoment); err == nil && len(ends) == 2 {
			return ends[0], ends[1]
		}
	}

	return from, to
}

// mapped replaces texts by what of makes of them, in place.
func mapped(texts []string, of func(string) string) []string {
	for i := range texts {
		texts[i] = of(texts[i])
	}
	return texts
}

// text compiles the test of a text field. is and in compare normal forms;
// parts of a text match in any case.
func (o operation) text() (func([]string) bool, error) {
	switch o.Operator {
	case "is_null":
		return isNull[string], nil

	// A field without a value is empty, too.
	case "is_empty":
		return func(values []string) bool {
			return !slices.ContainsFunc(values, func(v string) bool { return v != "" })
		}, nil

	case "in":
		wanted, err := list(o, parseText)
		wanted = mapped(wanted, o.normal)
		return func(values []string) bool {
			return slices.ContainsFunc(values, func(v string) bool { return slices.Contains(wanted, o.normal(v)) })
		}, err
	}

	want, err := one(o, o.Value, parseText)
	if err != nil {
		return nil, err
	}

	// Lower case is made once here, not for each row.
	part := strings.ToLower(want)
	whole := o.normal(want)
	holds := func(v string) bool { return o.normal(v) == whole }
	switch o.Operator {
	case "matches":
		phrase, ok := words.ParsePhrase(want)
		if !ok {
			return nil, invalid(o.path+".value", "must have a word: letters or digits to look for")
		}
		holds = phrase.In
	case "contains", "key_contains":
		holds = func(v string) bool { return strings.Contains(strings.ToLower(v), part) }
	case "starts_with":
		holds = func(v string) bool { return strings.HasPrefix(strings.ToLower(v), part) }
	case "ends_with":
		holds = func(v string) bool { return strings.HasSuffix(strings.ToLower(v), part) }
	}

	return func(values []string) bool { return slices.ContainsFunc(values, holds) }, nil
}

// oneOf returns a test for one of some values.
func oneOf(wanted []string) func(string) bool {
	return func(v string) bool { return slices.Contains(wanted, v) }
}

// ordered compiles the test of a field whose values have an order.
func ordered[T any](o operation, parse parser[T], compare func(a, b T) int) (func([]T) bool, error) {
	var holds func(T) bool
	switch o.Operator {
	case "is_null", "is_empty":
		return isNull[T], nil

	case "in":
		wanted, err := list(o, parse)
		if err != nil {
			return nil, err
		}
		holds = func(v T) bool {
			return slices.ContainsFunc(wanted, func(w T) bool { return compare(v, w) == 0 })
		}

	case "between":
		ends, err := list(o, parse)
		if err != nil {
			return nil, err
		}
		if len(ends) != 2 {
			return nil, invalid(o.path+".value", "must be an array of two: the lowest and the highest")
		}
		if compare(ends[0], ends[1]) > 0 {
			return nil, invalid(o.path+".value", "is a range that ends before it begins")
		}
		holds = func(v T) bool { return compare(v, ends[0]) >= 0 && compare(v, ends[1]) <= 0 }

	default:
		want, err := one(o, o.Value, parse)
		if err != nil {
			return nil, err
		}
		holds = func(v T) bool { return comparison(o.Operator, compare(v, want)) }
	}

	// A field without a value satisfies no comparison.
	return func(values []T) bool { return slices.ContainsFunc(values, holds) }, nil
}

// comparison reports whether the sign of a comparison satisfies an operator.
func comparison(operator string, sign int) bool {
	switch operator {
	case "gt", "after":
		return sign > 0
	case "gte":
		return sign >= 0
	case "lt", "before":
		return sign < 0
	case "lte":
		return sign <= 0
	}

	return sign == 0 // is, eq
}

// isNull reports whether a field has no value.
func isNull[T any](values []T) bool { return len(values) == 0 }

// parser reads a JSON value. If ok is false, expected names the type for the error
// message.
type parser[T any] func(raw json.RawMessage) (v T, expected string, ok bool)

// one reads a single value of an operation.
func one[T any](o operation, raw json.RawMessage, parse parser[T]) (T, error) {
	v, expected, ok := parse(raw)
	if !ok {
		return v, invalid(o.path+".value", "must be %s for %s %s", expected, o.Field, o.Operator)
	}
	return v, nil
}

// list reads an array of values of an operation.
func list[T any](o operation, parse parser[T]) ([]T, error) {
	var raws []json.RawMessage
	if json.Unmarshal(o.Value, &raws) != nil || raws == nil || len(raws) > filterValuesMax {
		return nil, invalid(o.path+".value", "must be an array of at most %d values for %s %s",
			filterValuesMax, o.Field, o.Operator)
	}

	// One wrong value rejects the list: to ignore it would change what the filter means.
	values := make([]T, len(raws))
	for i, raw := range raws {
		var err error
		values[i], err = one(o, raw, parse)
		if err != nil {
			return nil, err
		}
	}

	return values, nil
}

// parseText accepts integers too, because some clients send ids as numbers.
func parseText(raw json.RawMessage) (string, string, bool) {
	const expected = "a string"
	var s string
	if json.Unmarshal(raw, &s) == nil && !isNullValue(raw) {
		return s, expected, true
	}

	// A fraction is not an id, and has many spellings.
	var n json.Number
	if isNullValue(raw) || json.Unmarshal(raw, &n) != nil {
		return "", expected, false
	}
	_, err := n.Int64()
	return n.String(), expected, err == nil
}

func parseNumber(raw json.RawMessage) (float64, string, bool) {
	// encoding/json accepts no NaN and no infinity, which could not be ordered.
	var x float64
	ok := !isNullValue(raw) && json.Unmarshal(raw, &x) == nil
	return x, "a number", ok
}

func parseMoment(raw json.RawMessage) (time.Time, string, bool) {
	const expected = "an ISO-8601 time or a number of seconds since 1970"
	if _, _, ok := parseNumber(raw); ok {
		// Milliseconds are a mistake here.
		t, _ := wire.UnixTime(string(bytes.TrimSpace(raw)), time.Time{})
		return t, expected, !t.IsZero()
	}

	s, _, ok := parseText(raw)
	if !ok {
		return time.Time{}, expected, false
	}
	t, ok := wire.ParseTime(s)
	return t, expected, ok
}

// isNullValue reports whether a value is absent or null, which json.Unmarshal accepts as
// any type.
func isNullValue(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}
