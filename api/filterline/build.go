package filterline

import (
	"slices"
	"strings"

	"promptspool/api/wire"
)

// Where returns the term that a field has a value, for pages and flags. The field is named as in a
// line, and part is what follows its dot. The value is taken as it is; of numbers and times it may
// be a range. It panics if there is no such field.
func Where(name, part, value string) Term {
	t := Term{Field: find(name, part != ""), Part: part, Values: []Value{{Text: value, Quoted: true}}}
	t.Values[0].Quoted = t.Field.Kind != Score // of which only a category has quotes
	// As people write it: session:a, not metadata.session_id:a.
	if f := find(part, false); name == "metadata" && f != nil && slices.Contains(wire.CallNames, part) {
		t.Field, t.Part = f, ""
	}

	low, high, isRange := strings.Cut(value, "..")
	if isRange && t.Field.isOrdered() {
		t.Values = []Value{{Operator: Between, Text: low, To: high}}
	}

	return t
}

// Compile returns what the term alone selects.
func (t Term) Compile(clock Clock) (*wire.Filter, error) {
	return Line{Terms: []Term{t}}.Compile(clock)
}

// With returns the term with another comparison.
func (t Term) With(o Operator) Term {
	t.Values = slices.Clone(t.Values)
	for i := range t.Values {
		t.Values[i].Operator = o
	}

	return t
}

// Negated returns the term that holds exactly if t does not.
func (t Term) Negated() Term {
	t.Not = !t.Not

	return t
}

// Absent returns the term that a field has no value.
func Absent(name string) Term { return Where(name, "", "").With(Exists).Negated() }

// Demanded returns the one text that the term demands, without a template's version or label. It
// reports false if it demands another thing.
func (t Term) Demanded() (string, bool) {
	if t.Field == nil || t.Not || len(t.Values) != 1 || t.Values[0].Operator != Is {
		return "", false
	}
	text, _ := t.selected()

	return text, true
}

// selected splits the text of the first value in front of the @ of a version or label.
func (t Term) selected() (text, selector string) {
	v := t.Values[0]
	i := strings.LastIndex(v.Text, "@")
	if t.Field.Kind != Template || v.Quoted || i <= 0 {
		return v.Text, ""
	}

	return v.Text[:i], v.Text[i:]
}

// Demanding returns a term that demands one text, with another text in its place.
func (t Term) Demanding(text string) Term {
	_, selector := t.selected()
	t.Values = []Value{{Text: text + selector, Quoted: selector == ""}}

	return t
}

// Of returns the term with another key.
func (t Term) Of(key string) Term {
	t.Field, t.Part = resolve(key)

	return t
}

// Replaced returns the line with another term in the place of one.
func (l Line) Replaced(i int, t Term) Line {
	l.Terms = slices.Clone(l.Terms)
	l.Terms[i] = t

	return l
}
