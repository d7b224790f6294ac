package filterline

import (
	"encoding/json"
	"slices"
	"strings"

	"promptspool/api/wire"
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

// Read parses a line and compiles it.
func Read(text string, clock Clock) (*wire.Filter, error) {
	line, err := Parse(text)
	if err != nil {
		return nil, err
	}

	return line.Compile(clock)
}

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
		if parts[i], err = l.compileValue(t, &t.Values[i], clock); err != nil {
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
		f.Value, _ = json.Marshal(value) // texts, finite numbers, times and lists of them
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
