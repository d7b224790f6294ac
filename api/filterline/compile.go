package filterline

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"promptspool/api/wire"
)

// conditionsMax is what a JSON filter may have.
const conditionsMax = 100

// Selection is a line as a search takes it.
type Selection struct {
	Filter *wire.Filter // nil: every record
	Words  string       // that must all be in the prompt or the response
}

// Group returns the filter with the words among its conditions, for callers that take no
// words.
func (s Selection) Group() *wire.Filter {
	if s.Words == "" {
		return s.Filter
	}
	all := wire.Filter{Logic: "AND"}
	switch f := s.Filter; {
	case f == nil || isEmpty(f):
	case f.Filters != nil && strings.EqualFold(f.Logic, "AND"):
		all.Filters = slices.Clone(f.Filters)
	default:
		all.Filters = append(all.Filters, *f)
	}

	for word := range strings.FieldsSeq(s.Words) {
		all.Filters = append(all.Filters, anywhere(word))
	}

	return &all
}

// Narrow returns the selection of what both the line and a JSON filter with words find.
func (s Selection) Narrow(f *wire.Filter, words string) Selection {
	s.Words = strings.TrimSpace(s.Words + " " + words)
	switch {
	case s.Filter == nil:
		s.Filter = f
	case f != nil && !isEmpty(f):
		both := group("AND", append(slices.Clone(s.Filter.Filters), *f)...)
		s.Filter = &both
	}

	return s
}

func isEmpty(f *wire.Filter) bool { return f.Field == "" && f.Operator == "" && len(f.Filters) == 0 }

// anywhere returns the condition that a text is in the prompt or the response.
func anywhere(text string) wire.Filter {
	return group("OR", condition("input_text", "", "contains", text), condition("output_text", "", "contains", text))
}

// Read parses a line and compiles it.
func Read(text string, clock Clock) (Selection, error) {
	line, err := Parse(text)
	if err != nil {
		return Selection{}, err
	}

	return line.Compile(clock)
}

// Compile returns what a line selects at this time. Its errors are 422 and name the place.
func (l Line) Compile(clock Clock) (Selection, error) {
	var all []wire.Filter
	var words []string
	conditions, runes := 0, 0

	for i := range l.Terms {
		t := &l.Terms[i]
		f, err := l.compileTerm(t, clock)
		if err != nil {
			return Selection{}, err
		}
		if t.Field == nil && !t.Not {
			words = append(words, strings.Fields(t.Values[0].Text)...)
			runes += utf8.RuneCountInString(t.Values[0].Text) + 1
		}

		// Conditions that must hold anyway need no separate group.
		switch {
		case f == nil:
		case f.Logic == "AND":
			all = append(all, f.Filters...)
		default:
			all = append(all, *f)
		}

		if f != nil {
			conditions += count(*f)
		}
		if conditions > conditionsMax || len(words) > conditionsMax || runes > wire.QueryRunesMax {
			return Selection{}, faultAt(l.text, t.at, "the line asks for too much, from here on")
		}
	}

	s := Selection{Words: strings.Join(words, " ")}
	if all != nil {
		s.Filter = &wire.Filter{Logic: "AND", Filters: all}
	}

	return s, nil
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

// compileTerm returns the filter of a term; nil for a word, which the search takes apart.
func (l Line) compileTerm(t *Term, clock Clock) (*wire.Filter, error) {
	var f wire.Filter
	if t.Field != nil && !t.Field.IsOfCalls() {
		return nil, faultAt(l.text, t.at, "only sessions, traces and users have %[1]s; "+
			"write metadata.%[1]s for the metadata of calls", t.key())
	}
	if t.Field == nil {
		text := t.Values[0].Text
		if !t.Not && !strings.ContainsFunc(text, unicode.IsSpace) {
			return nil, nil
		}

		// The words of a phrase are looked for as well: that is cheaper, and leaves few for this.
		f = anywhere(text)
	} else {
		var parts []wire.Filter
		for i := range t.Values {
			part, err := l.compileValue(t, &t.Values[i], clock)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
		f = either(parts)
	}

	if t.Not {
		negated, ok := negate(f, t.Field != nil && t.Field.many)
		if !ok {
			return nil, faultAt(l.text, t.at,
				"a request may have several of %s, so that a comparison of them cannot be negated", t.key())
		}
		f = negated
	}

	return &f, nil
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
	"starts_with": "not_starts_with", "ends_with": "not_ends_with", "is_true": "is_false",
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
