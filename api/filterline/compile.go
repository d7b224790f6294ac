package filterline

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/api/words"
)

// conditionsMax is what a JSON filter may have.
const conditionsMax = 100

// Both returns the filter of what two filters find; nil is every record.
func Both(f, g *wire.Filter) *wire.Filter {
	switch {
	case f == nil || g != nil && isEmpty(f):
		return g
	case g == nil || isEmpty(g):
		return f
	}
	both := group("AND", *f, *g)
	if f.Filters != nil && strings.EqualFold(f.Logic, "AND") {
		both.Filters = append(slices.Clone(f.Filters), *g)
	}

	return &both
}

func isEmpty(f *wire.Filter) bool { return f.Field == "" && f.Operator == "" && len(f.Filters) == 0 }

// Compile returns the filter of what a line selects at this time; nil is every record. Its errors are
// 422 and name the place.
func (l Line) Compile(clock Clock) (*wire.Filter, error) {
	var all []wire.Filter
	conditions := 0
	for i := range l.Terms {
		f, err := l.compileTerm(&l.Terms[i], clock, false)
		if err != nil {
			return nil, err
		}

		// Conditions that must hold anyway need no separate group.
		if f.Logic == "AND" {
			all = append(all, f.Filters...)
		} else {
			all = append(all, f)
		}
		if conditions += count(f); conditions > conditionsMax {
			return nil, faultAt(l.text, l.Terms[i].at, "the line asks for too much, from here on")
		}
	}
	if all == nil {
		return nil, nil
	}

	return &wire.Filter{Logic: "AND", Filters: all}, nil
}

// count counts the conditions of a filter.
func count(f wire.Filter) (n int) {
	if f.Filters == nil {
		return 1
	}
	for _, part := range f.Filters {
		n += count(part)
	}

	return n
}

// compileTerm returns the filter of a term, or of its opposite.
func (l Line) compileTerm(t *Term, clock Clock, not bool) (f wire.Filter, err error) {
	not = not != t.Not
	if t.Any != nil {
		return l.compileAny(t.Any, clock, not)
	}
	if t.Field != nil && !t.Field.IsOfCalls() {
		return f, faultAt(l.text, t.at, "only sessions, traces and users have %[1]s, outside of parentheses and OR; "+
			"write metadata.%[1]s for the metadata of calls", t.key())
	}

	parts := make([]wire.Filter, len(t.Values))
	for i := range t.Values {
		parts[i], err = l.compileValue(t, &t.Values[i], clock)
		if err != nil {
			return f, err
		}
	}
	f = either(parts)
	if not {
		negated, ok := negate(f, t.field().many)
		if !ok {
			return f, faultAt(l.text, t.at,
				"a request may have several of %s, so that a comparison of them cannot be negated", t.key())
		}
		f = negated
	}

	return f, nil
}

// compileAny returns the filter that one of some alternatives holds, or that none does.
func (l Line) compileAny(alternatives []Line, clock Clock, not bool) (wire.Filter, error) {
	within, between := "AND", "OR"
	if not {
		within, between = between, within
	}

	var any []wire.Filter
	for _, a := range alternatives {
		var all []wire.Filter
		for i := range a.Terms {
			f, err := l.compileTerm(&a.Terms[i], clock, not)
			if err != nil {
				return f, err
			}
			all = append(all, f)
		}
		any = append(any, joined(within, all))
	}

	return joined(between, any), nil
}

// joined returns the filter of some; a single one needs no group.
func joined(logic string, parts []wire.Filter) wire.Filter {
	if len(parts) == 1 {
		return parts[0]
	}
	return group(logic, parts...)
}

// either returns the filter that holds if one of some does. Values that are compared as a whole
// become one condition, which a store can look up.
func either(parts []wire.Filter) wire.Filter {
	if len(parts) == 1 {
		return parts[0]
	}
	var values []json.RawMessage
	for _, f := range parts {
		if f.Operator != "is" || f.Field != parts[0].Field {
			return group("OR", parts...)
		}
		values = append(values, f.Value)
	}

	return condition(parts[0].Field, parts[0].NestedKey, "in", values)
}

func group(logic string, parts ...wire.Filter) wire.Filter {
	return wire.Filter{Logic: logic, Filters: parts}
}

func condition(field, key, operator string, value any) wire.Filter {
	f := wire.Filter{Field: field, NestedKey: key, Operator: operator}
	if value != nil {
		// Texts, finite numbers, times and lists of them.
		f.Value, _ = json.Marshal(value)
	}

	return f
}

// operators are those of a JSON filter for texts and numbers.
var operators = map[Operator]string{
	Is: "is", Contains: "contains", Begins: "starts_with", Ends: "ends_with",
	Above: "gt", AtLeast: "gte", Below: "lt", AtMost: "lte",
}

// negations maps operators to those that hold exactly if they do not.
var negations = map[string]string{
	"is": "is_not", "in": "not_in", "contains": "not_contains", "is_not_null": "is_null",
	"starts_with": "not_starts_with", "ends_with": "not_ends_with", "is_true": "is_false", "matches": "not_matches",
}

// opposites maps comparisons to those that hold instead, provided that a value exists.
var opposites = map[string]string{"gt": "lte", "gte": "lt", "lt": "gte", "lte": "gt"}

// negate returns the filter that holds exactly if f does not. It fails for a comparison of what a
// request may have many of: that all are small is not that one is not large.
func negate(f wire.Filter, many bool) (wire.Filter, bool) {
	if f.Filters != nil {
		logic := "AND"
		if f.Logic == "AND" {
			logic = "OR"
		}
		parts := slices.Clone(f.Filters)
		for i := range parts {
			part, ok := negate(parts[i], many)
			if !ok {
				return f, false
			}
			parts[i] = part
		}
		return group(logic, parts...), true
	}

	absent := condition(f.Field, f.NestedKey, "is_null", nil)
	if opposite, ok := opposites[f.Operator]; ok {
		f.Operator = opposite
		return group("OR", f, absent), !many
	}
	if f.Operator == "between" {
		var ends [2]json.RawMessage
		_ = json.Unmarshal(f.Value, &ends) // we made it
		below := condition(f.Field, f.NestedKey, "lt", ends[0])
		above := condition(f.Field, f.NestedKey, "gt", ends[1])
		return group("OR", below, above, absent), !many
	}
	f.Operator = negations[f.Operator]

	return f, true
}

// compileValue returns the condition that a term's field has one value.
func (l Line) compileValue(t *Term, v *Value, clock Clock) (wire.Filter, error) {
	f := t.field()
	if v.Operator == Exists {
		// A score is a number or a text.
		switch {
		case f.Kind == Score && t.Part != "":
			return condition("score_name", "", "is", t.Part), nil
		case f.Kind == Score:
			return condition("score_name", "", "is_not_null", nil), nil
		}
		return condition(f.JSON, t.Part, "is_not_null", nil), nil
	}

	switch f.Kind {
	case Content:
		return compileText(f, v), nil
	case Template:
		return l.compileTemplate(f, v)
	case Time:
		return l.compileTime(f, v, clock)
	case Number, Duration:
		return l.compileNumber(t, v)
	case Score:
		if v.Operator >= Above || v.Operator == Is && !v.Quoted && isNumber(v.Text) {
			return l.compileNumber(t, v)
		}
		return condition(scoreText, t.Part, operators[v.Operator], v.Text), nil
	}

	// A value that can never be found is a slip of the hand.
	if f.Values != nil && v.Operator == Is {
		i := slices.IndexFunc(f.Values, func(known string) bool { return strings.EqualFold(known, v.Text) })
		if i < 0 {
			return wire.Filter{}, faultAt(l.text, v.at, "%s takes one of: %s%s",
				f.Name, strings.Join(f.Values, ", "), words.DidYouMean(v.Text, f.Values))
		}
		if f.Kind == Flag {
			return condition(flagFields[f.Values[i]], "", "is_true", nil), nil
		}
	}

	return condition(f.JSON, t.Part, operators[v.Operator], v.Text), nil
}

// compileText returns the condition that a text has words, or any part with a * in front.
func compileText(f *Field, v *Value) wire.Filter {
	text := strings.TrimRight(v.Text, "*")
	switch v.Operator {
	case Is:
		return condition(f.JSON, "", "matches", text)
	case Begins:
		return condition(f.JSON, "", "matches", text+"*")
	}

	return condition(f.JSON, "", operators[v.Operator], v.Text)
}

// compileTemplate reads name, name@version or name@label. A name may have an @ itself.
func (l Line) compileTemplate(f *Field, v *Value) (wire.Filter, error) {
	whole := condition(f.JSON, "", operators[v.Operator], v.Text)
	i := strings.LastIndex(v.Text, "@")
	if i <= 0 || v.Quoted || v.Operator != Is {
		return whole, nil
	}

	name, selector := v.Text[:i], v.Text[i+1:]
	named := condition(f.JSON, "", "is", name)
	switch n, err := strconv.Atoi(selector); {
	case selector == "":
		return whole, faultAt(l.text, v.at+i, "a version or a label is missing after the @; quote a name that ends so")
	case err == nil:
		return group("AND", named, condition("prompt_version_number", "", "is", n)), nil
	}
	// A name that contains an @, or a label: whichever exists.
	labelled := group("AND", named, condition("label", "", "is", selector))

	return group("OR", whole, labelled), nil
}

// compileNumber reads a number, an amount of dollars or a duration.
func (l Line) compileNumber(t *Term, v *Value) (wire.Filter, error) {
	read := func(text string, at int) (float64, error) {
		n, expected, ok := parseNumber(t.Field, text)
		if !ok {
			return 0, faultAt(l.text, at, "%s takes %s", t.key(), expected)
		}
		return n, nil
	}

	if v.Operator != Between {
		n, err := read(v.Text, v.at)
		return condition(t.Field.JSON, t.Part, operators[v.Operator], n), err
	}

	low, high, err := ends(v, read)
	switch {
	case err != nil:
		return wire.Filter{}, err
	case v.To == "":
		return condition(t.Field.JSON, t.Part, "gte", low), nil
	case v.Text == "":
		return condition(t.Field.JSON, t.Part, "lte", high), nil
	case low > high:
		return wire.Filter{}, faultAt(l.text, v.at, "the range ends before it begins")
	}

	return condition(t.Field.JSON, t.Part, "between", []float64{low, high}), nil
}

// ends reads the ends of a range. Either may be missing, not both: Parse has seen to that.
func ends[T any](v *Value, read func(text string, at int) (T, error)) (low, high T, err error) {
	if v.Text != "" {
		low, err = read(v.Text, v.at)
	}
	if err == nil && v.To != "" {
		high, err = read(v.To, v.at+len(v.Text)+len(".."))
	}

	return low, high, err
}

// parseNumber reads a number of a field; expected says what it should have been.
func parseNumber(f *Field, text string) (n float64, expected string, ok bool) {
	if f.Kind == Duration {
		d, ok := ParseDuration(text)
		return float64(d) / 1e6, "a time with its unit, as in 2s, 500ms or 1m30s", ok
	}
	if f.Name == "cost" {
		text = strings.TrimPrefix(text, "$")
	}

	// JSON has no hexadecimal numbers and no infinity, which ParseFloat reads.
	n, err := strconv.ParseFloat(text, 64)

	return n, "a number", err == nil && json.Valid([]byte(text))
}

func isNumber(text string) bool {
	_, _, ok := parseNumber(&Field{}, text)
	return ok
}

// compileTime reads a time. A day is compared by its beginning or its end, whichever fits.
func (l Line) compileTime(f *Field, v *Value, clock Clock) (wire.Filter, error) {
	read := func(text string, at int) (span, error) {
		s, ok := clock.span(text)
		if !ok {
			return s, faultAt(l.text, at, "%s takes a day or a time, as in today, yesterday, 2026-11-21, "+
				"2026-11-21T18:00, or 2h for two hours ago", f.Name)
		}
		return s, nil
	}

	// since: and before: compare by their name.
	operator := operators[v.Operator]
	if f.bound != "" {
		operator = f.bound
	}
	if v.Operator != Between {
		s, err := read(v.Text, v.at)
		return timeFilter(f.JSON, operator, s), err
	}

	from, to, err := ends(v, read)
	low, high := timeFilter(f.JSON, "gte", from), timeFilter(f.JSON, "lte", to)
	switch {
	case err != nil:
		return wire.Filter{}, err
	case v.To == "":
		return low, nil
	case v.Text == "":
		return high, nil
	case from.from.After(to.to):
		return wire.Filter{}, faultAt(l.text, v.at, "the range ends before it begins")
	}

	return group("AND", low, high), nil
}

// timeFilter compares a time with a span.
func timeFilter(field, operator string, s span) wire.Filter {
	at := func(operator string, t time.Time) wire.Filter { return condition(field, "", operator, t) }
	// A day is a span: after it means after its end, until it includes it.
	switch {
	case s.isMoment() || operator == "gte" || operator == "lt":
		return at(operator, s.from)
	case operator == "gt":
		return at("gte", s.to)
	case operator == "lte":
		return at("lt", s.to)
	}

	return group("AND", at("gte", s.from), at("lt", s.to))
}

// Rollup is a line as a search for sessions, traces or users takes it.
type Rollup struct {
	Calls  *wire.Filter // what at least one of its calls must match; nil for anything
	Having *wire.Filter // what it must be itself; nil for anything
}

// Search returns the search for sessions, traces or users.
func (r Rollup) Search(of string) wire.RollupSearch {
	return wire.RollupSearch{Of: of, FilterGroup: r.Calls, Having: r.Having}
}

// CompileRollup returns what a line selects of sessions, traces or users. Its errors are those of Compile.
//
// Facts that these have themselves are theirs. A time is that of calls if the line selects calls,
// otherwise it finds what began before its end and ended after its beginning.
func (l Line) CompileRollup(clock Clock) (r Rollup, err error) {
	having := group("AND")
	calls, times := Line{text: l.text}, Line{text: l.text}
	for _, t := range l.Terms {
		compared := !t.Not && len(t.Values) == 1 && t.Values[0].Operator != Exists
		switch {
		case t.isFact() && !compared:
			return r, faultAt(l.text, t.at, "of sessions, traces and users, %s takes one comparison, as in %s, "+
				"and no dash", t.key(), t.Field.Example)
		case t.isFact():
			f, err := l.compileValue(&t, &t.Values[0], clock)
			if err != nil {
				return r, err
			}
			having.Filters = append(having.Filters, f)
		case t.IsTime() && compared:
			times.Terms = append(times.Terms, t)
		default:
			calls.Terms = append(calls.Terms, t)
		}
	}

	ofCalls := calls.Terms != nil
	calls.Terms = append(calls.Terms, times.Terms...)
	r.Calls, err = calls.Compile(clock)
	if !ofCalls {
		r.Calls = nil
		from, to := times.Range(clock)
		if !from.IsZero() {
			having.Filters = append(having.Filters, condition("last_seen", "", "gte", from))
		}
		if !to.IsZero() {
			having.Filters = append(having.Filters, condition("first_seen", "", "lt", to))
		}
	}
	if having.Filters != nil {
		r.Having = &having
	}

	return r, err
}

// isFact reports whether the term is about a fact of sessions, traces and users. Whether a call has a
// cost is not.
func (t *Term) isFact() bool {
	return t.Field != nil && (t.Field.of == ofRollups || t.Field.of == ofBoth && t.Values[0].Operator != Exists)
}
