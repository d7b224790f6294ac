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
	case fd.classifies:
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
func (o operation) compile(fd field) (t *Test, err error) {
	t = &Test{Field: o.Field, Column: fd.column}
	key := o.NestedKey
	switch {
	case fd.flag != nil:
		t.match = func(s *Subject) bool { return fd.flag(s.Row) }
		return t, nil

	case fd.time != nil:
		holds, spans, err := ordered(o, parseMoment, time.Time.Compare)
		t.match = func(s *Subject) bool { return holds(fd.time(s.Row, key)) }
		if len(spans) == 1 {
			t.From, t.To = spanOfOne(spans[0])
		}
		return t, err

	case fd.number != nil:
		holds, spans, err := ordered(o, parseNumber, cmp.Compare[float64])
		t.match = func(s *Subject) bool { return holds(fd.number(s.Row, key)) }
		t.Ranges = rangesOf(spans)
		// A row has many scores, so that no single number decides.
		if fd.column == rowcode.ColumnScores {
			t.Key = key
		} else {
			t.Number = holds
		}
		return t, err
	}

	holds, wanted, err := o.text()
	if err == nil && fd.words != nil {
		err = o.checkWords(fd, wanted)
	}
	switch {
	case fd.content != nil:
		t.match = func(s *Subject) bool { return holds(fd.content(s.Read(), key)) }
		if fd.searched {
			t.terms = o.terms()
			want, _, _ := parseText(o.Value)
			t.sought = words.Seek(o.Operator, want)
		}

	case fd.column == rowcode.ColumnMetadata && key != "":
		// Rows have only references to long values. Whole values are compared by these, in place of what
		// holds looks for; to find a part, the test must look into long values.
		t.Key, t.Texts = key, mapped(wanted, func(text string) string { return rowcode.StoredValue(key, text) })
		t.whole = wanted == nil && o.Operator != "is_null" && o.Operator != "is_empty"
		t.match = func(s *Subject) bool {
			values := fd.text(s.Row, key)
			if !t.whole || len(values) == 0 {
				return holds(values)
			}
			value, ok := s.wholeValue(key, values[0])
			return ok && holds([]string{value})
		}

	default:
		t.match = func(s *Subject) bool { return holds(fd.text(s.Row, key)) }
		t.Key, t.Texts = key, wanted
	}

	return t, err
}

// checkWords refuses whole values that are none of the field's words: they would match nothing, and hide
// a slip.
func (o operation) checkWords(fd field, wanted []string) error {
	for _, want := range wanted {
		if slices.ContainsFunc(fd.words, func(word string) bool { return strings.EqualFold(word, want) }) {
			continue
		}
		others := "; starts_with finds others"
		if fd.classifies {
			others = ""
		}
		return invalid(o.path+".value", "must be one of: %s%s", strings.Join(fd.words, ", "), others)
	}

	return nil
}

// mapped replaces texts by what of makes of them, in place.
func mapped(texts []string, of func(string) string) []string {
	for i := range texts {
		texts[i] = of(texts[i])
	}
	return texts
}

// text compiles the test of a text field. is and in compare normal forms; parts of a text match in any
// case. wanted are the values of which the field must have one, nil for other operators.
func (o operation) text() (holds func([]string) bool, wanted []string, err error) {
	switch o.Operator {
	case "is_null":
		return isNull[string], nil, nil

	// A field without a value is empty, too.
	case "is_empty":
		return func(values []string) bool {
			return !slices.ContainsFunc(values, func(v string) bool { return v != "" })
		}, nil, nil

	case "in", "is", "eq", "key_equals":
		if o.Operator == "in" {
			wanted, err = list(o, parseText)
		} else {
			wanted = make([]string, 1)
			wanted[0], err = one(o, o.Value, parseText)
		}
		wanted = mapped(wanted, o.normal)
		return func(values []string) bool {
			return slices.ContainsFunc(values, func(v string) bool { return slices.Contains(wanted, o.normal(v)) })
		}, wanted, err
	}

	want, err := one(o, o.Value, parseText)
	if err != nil {
		return nil, nil, err
	}

	// Lower case is made once here, not for each row.
	part := strings.ToLower(want)
	// Of contains and key_contains.
	of := func(v string) bool { return strings.Contains(strings.ToLower(v), part) }
	switch o.Operator {
	case "matches":
		phrase, ok := words.ParsePhrase(want)
		if !ok {
			return nil, nil, invalid(o.path+".value", "must have a word: letters or digits to look for")
		}
		of = phrase.In
	case "starts_with":
		of = func(v string) bool { return strings.HasPrefix(strings.ToLower(v), part) }
	case "ends_with":
		of = func(v string) bool { return strings.HasSuffix(strings.ToLower(v), part) }
	}

	return func(values []string) bool { return slices.ContainsFunc(values, of) }, nil, nil
}

// interval is what is between two values; nil means unbounded.
type interval[T any] struct {
	from, to             *T
	aboveOnly, belowOnly bool // exclude from itself, to itself
}

func (i interval[T]) has(v T, compare func(a, b T) int) bool {
	above, below := 1, -1
	if i.from != nil {
		above = compare(v, *i.from)
	}
	if i.to != nil {
		below = compare(v, *i.to)
	}

	return (above > 0 || above == 0 && !i.aboveOnly) && (below < 0 || below == 0 && !i.belowOnly)
}

// ordered compiles the test of a field whose values have an order. It holds for a value in one of the
// intervals; of an operator that asks whether there is a value, there are none.
func ordered[T any](o operation, parse parser[T], compare func(a, b T) int) (
	holds func([]T) bool, spans []interval[T], err error,
) {
	switch o.Operator {
	case "is_null", "is_empty":
		return isNull[T], nil, nil
	case "in", "between":
		values, listErr := list(o, parse)
		spans, err = []interval[T]{}, listErr
		for i := range values {
			spans = append(spans, interval[T]{from: &values[i], to: &values[i]})
		}
		if o.Operator == "between" && err == nil {
			spans, err = between(o, values, compare)
		}
	default:
		v, oneErr := one(o, o.Value, parse)
		spans, err = []interval[T]{intervalOf(o.Operator, &v)}, oneErr
	}

	// A field without a value satisfies no comparison.
	return func(values []T) bool {
		return slices.ContainsFunc(values, func(v T) bool {
			return slices.ContainsFunc(spans, func(i interval[T]) bool { return i.has(v, compare) })
		})
	}, spans, err
}

func between[T any](o operation, ends []T, compare func(a, b T) int) ([]interval[T], error) {
	switch {
	case len(ends) != 2:
		return nil, invalid(o.path+".value", "must be an array of two: the lowest and the highest")
	case compare(ends[0], ends[1]) > 0:
		return nil, invalid(o.path+".value", "is a range that ends before it begins")
	}

	return []interval[T]{{from: &ends[0], to: &ends[1]}}, nil
}

// intervalOf returns the interval of an operator that compares with one value.
func intervalOf[T any](operator string, v *T) interval[T] {
	switch operator {
	case "gt", "after":
		return interval[T]{from: v, aboveOnly: true}
	case "gte":
		return interval[T]{from: v}
	case "lt", "before":
		return interval[T]{to: v, belowOnly: true}
	case "lte":
		return interval[T]{to: v}
	}

	// Of is and eq.
	return interval[T]{from: v, to: v}
}

// rangesOf returns intervals of numbers as a Test has them.
func rangesOf(spans []interval[float64]) (ranges []Range) {
	if spans != nil {
		ranges = []Range{}
	}
	for _, i := range spans {
		r := Range{Least: math.Inf(-1), Most: math.Inf(1), AboveOnly: i.aboveOnly, BelowOnly: i.belowOnly}
		if i.from != nil {
			r.Least = *i.from
		}
		if i.to != nil {
			r.Most = *i.to
		}
		ranges = append(ranges, r)
	}

	return ranges
}

// spanOfOne returns the first and the last moment of an interval, to the nanosecond; zero means unbounded.
func spanOfOne(i interval[time.Time]) (from, to time.Time) {
	// The ends themselves must be within, so exclusive ones move by a nanosecond.
	if i.from != nil {
		from = *i.from
		if i.aboveOnly {
			from = from.Add(1)
		}
	}
	if i.to != nil {
		to = *i.to
		if i.belowOnly {
			to = to.Add(-1)
		}
	}

	return from, to
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
