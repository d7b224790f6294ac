package filterline

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire"
)

// FromFilter returns the line that selects what a JSON filter and words do. It reports false if no
// line can say that.
func FromFilter(f *wire.Filter, words string) (Line, bool) {
	var terms []Term
	if f != nil && !emptyFilter(f) {
		var ok bool
		if terms, ok = fromGroup(*f, nil); !ok {
			return Line{}, false
		}
	}

	// The words of a phrase are in both.
	texts := strings.Fields(words)
	for _, t := range terms {
		if t.Field != nil || t.Not {
			continue
		}
		for _, word := range strings.Fields(t.Values[0].Text) {
			same := func(other string) bool { return strings.EqualFold(other, word) }
			if i := slices.IndexFunc(texts, same); i >= 0 {
				texts = slices.Delete(texts, i, i+1)
			}
		}
	}
	for _, text := range texts {
		terms = append(terms, Term{Values: []Value{{Text: text, Quoted: true}}})
	}

	return Line{Terms: terms}, true
}

func emptyFilter(f *wire.Filter) bool {
	return f.Field == "" && f.Operator == "" && len(f.Filters) == 0
}

// fromGroup adds the terms of a filter, all parts of which must hold.
func fromGroup(f wire.Filter, terms []Term) ([]Term, bool) {
	switch {
	case f.Filters == nil:
		added, ok := fromCondition(f)
		return append(terms, added...), ok
	case strings.EqualFold(f.Logic, "OR") && len(f.Filters) > 1:
		t, ok := fromPhrase(f.Filters)
		return append(terms, t), ok
	}

	ok := true
	for _, part := range f.Filters {
		if !ok {
			break
		}
		terms, ok = fromGroup(part, terms)
	}

	return terms, ok
}

// fromPhrase returns the term of a text that must be in the prompt or the response.
func fromPhrase(parts []wire.Filter) (Term, bool) {
	if len(parts) != 2 || parts[0].Field != "input_text" || parts[1].Field != "output_text" {
		return Term{}, false
	}
	text, ok := texts(parts[0].Value)
	for _, part := range parts {
		ok = ok && part.Operator == "contains" && string(part.Value) == string(parts[0].Value)
	}

	// A phrase of blanks only is a fault in a line.
	if !ok || strings.TrimSpace(text) == "" {
		return Term{}, false
	}

	return Term{Values: []Value{{Text: text, Quoted: true}}}, true
}

// spellings maps the operators of a JSON filter to those of a line, without those that a line
// writes in another way.
var spellings = map[string]struct {
	operator Operator
	not      bool
}{
	"is":       {Is, false},
	"eq":       {Is, false},
	"is_not":   {Is, true},
	"neq":      {Is, true},
	"in":       {Is, false},
	"not_in":   {Is, true},
	"contains": {Contains, false}, "not_contains": {Contains, true},
	"starts_with": {Begins, false}, "not_starts_with": {Begins, true},
	"ends_with": {Ends, false}, "not_ends_with": {Ends, true},
	"is_not_null": {Exists, false}, "is_null": {Exists, true},
	"key_equals": {Is, false}, "key_not_equals": {Is, true}, "key_contains": {Contains, false},
	"gt": {Above, false}, "gte": {AtLeast, false}, "lt": {Below, false}, "lte": {AtMost, false},
	"after": {Above, false}, "before": {Below, false},
}

// fromCondition returns the terms of one condition, which are two for a stretch of time.
func fromCondition(c wire.Filter) ([]Term, bool) {
	for value, field := range flagFields {
		if field == c.Field {
			t := Term{Not: c.Operator == "is_false", Field: find("is", false), Values: []Value{{Text: value}}}
			return []Term{t}, t.Not || c.Operator == "is_true"
		}
	}

	f := ofFilter(c.Field, c.NestedKey != "")
	if f == nil || f.NeedsPart && c.NestedKey == "" {
		return nil, false
	}
	t := Term{Field: f}
	if f.Part != "" {
		t.Part = c.NestedKey // a filter ignores that of other fields
	}
	ordered := f.isOrdered()

	// A number or time is empty exactly if it is absent; a text may also be "".
	switch {
	case ordered && c.Operator == "is_empty":
		c.Operator = "is_null"
	case ordered && c.Operator == "is_not_empty":
		c.Operator = "is_not_null"
	case c.Operator == "between":
		return fromRange(t, c)
	}
	spelling, ok := spellings[c.Operator]
	if !ok {
		return nil, false
	}
	t.Not = spelling.not
	if spelling.operator == Exists {
		t.Values = []Value{{Operator: Exists}}
		return []Term{t}, !f.closed
	}

	// A long text is always searched for a part in a line.
	if f.Kind == Content && spelling.operator == Is || f.closed && spelling.operator != Is {
		return nil, false
	}
	raws := []json.RawMessage{c.Value}
	if c.Operator == "in" || c.Operator == "not_in" {
		raws = nil
		if json.Unmarshal(c.Value, &raws) != nil || len(raws) == 0 {
			return nil, false
		}
	}
	for _, raw := range raws {
		text, ok := fieldText(f, raw)
		if !ok {
			return nil, false
		}
		t.Values = append(t.Values, Value{Operator: spelling.operator, Text: text, Quoted: true})
	}

	return []Term{t}, true
}

// ofFilter returns the field of a line that stands for one of a JSON filter; nil if none does.
func ofFilter(name string, dotted bool) *Field {
	if name == moment {
		return find("time", false) // not since, whose name compares
	}
	for i := range Fields {
		f := &Fields[i]
		if (f.JSON == name || slices.Contains(f.Aliases, name)) && f.NeedsPart == (dotted && f.NeedsPart) {
			return f
		}
	}

	return nil
}

// fromRange returns the terms of a condition between two values.
func fromRange(t Term, c wire.Filter) ([]Term, bool) {
	var ends []json.RawMessage
	if json.Unmarshal(c.Value, &ends) != nil || len(ends) != 2 || !t.Field.isOrdered() {
		return nil, false
	}
	low, okLow := fieldText(t.Field, ends[0])
	high, okHigh := fieldText(t.Field, ends[1])
	t.Values = []Value{{Operator: Between, Text: low, To: high}}

	return []Term{t}, okLow && okHigh
}

// fieldText returns a JSON value as a line has it.
func fieldText(f *Field, raw json.RawMessage) (string, bool) {
	text, ok := texts(raw)
	switch {
	case !ok:
		return "", false
	case f.Kind == Number:
		_, _, ok := parseNumber(f, text)
		return text, ok && raw[0] != '"'
	case f.Kind == Duration:
		return durationText(f, text)
	case f.Kind == Time:
		at, ok := wire.ParseTime(text)
		if seconds, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(seconds) < 1e11 {
			at, ok = time.UnixMicro(int64(math.Round(seconds*1e6))).UTC(), true
		}
		return at.Format(time.RFC3339Nano), ok
	}

	return text, true
}

// durationText prints milliseconds with a unit.
func durationText(f *Field, milliseconds string) (string, bool) {
	n, err := json.Number(milliseconds).Float64()
	if err != nil {
		return "", false
	}
	text := time.Duration(n * 1e6).String()

	// 2m0s is 2m. What has no exact form here has none.
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	back, _, ok := parseNumber(f, text)

	return text, ok && back == n
}

// texts returns a JSON string or number as text.
func texts(raw json.RawMessage) (string, bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil && string(raw) != "null" {
		return text, true
	}
	var number json.Number
	if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &number) != nil {
		return "", false
	}

	return number.String(), true
}

// Rekeyed returns the line with another key in place of one of metadata that a condition has. It
// returns the changed term as well, and reports false if no term has that key.
func (l Line) Rekeyed(demand wire.Filter, key string) (line, term string, ok bool) {
	for i := range l.Terms {
		if t := &l.Terms[i]; t.Field == metadata && t.Part == demand.NestedKey {
			other := Line{Terms: slices.Clone(l.Terms)}
			other.Terms[i].Field, other.Terms[i].Part = resolve(key)

			return other.String(), other.Terms[i].String(), true
		}
	}

	return "", "", false
}

// Replaced returns the line with another text in place of the value that a condition demands. It
// returns the changed term as well, and reports false if no term has just that value.
func (l Line) Replaced(demand wire.Filter, text string) (line, term string, ok bool) {
	for i := range l.Terms {
		t := &l.Terms[i]
		if t.Field == nil || t.Not || len(t.Values) != 1 || t.Part != demand.NestedKey ||
			t.Field.JSON != demand.Field && !slices.Contains(t.Field.Aliases, demand.Field) {
			continue
		}

		// The template in name@3 is the part in front.
		v := t.Values[0]
		old, isText := texts(demand.Value)
		if selector, found := strings.CutPrefix(v.Text, old+"@"); found && t.Field.Kind == Template && !v.Quoted {
			v.Text = text + "@" + selector
		} else if isText && v.Operator == Is && v.Text == old {
			v.Text, v.Quoted = text, true
		} else {
			continue
		}

		other := Line{Terms: slices.Clone(l.Terms)}
		other.Terms[i].Values = []Value{v}

		return other.String(), other.Terms[i].String(), true
	}

	return "", "", false
}
