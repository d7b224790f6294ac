package filterline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"promptspool/api/wire"
	"promptspool/api/words"
)

// Line is a parsed line.
type Line struct {
	Terms []Term

	text string // that it was parsed from, for the places of faults
}

// Term is a condition of a line: a field with values, a text without a field, or alternatives.
type Term struct {
	Not    bool    // it must not hold
	Field  *Field  // nil: the text must be in the prompt or the response
	Part   string  // of the field, after its dot
	Values []Value // one of them must fit; exactly one without a field
	Any    []Line  // one of these must hold; then there is no field and no value

	at int // in bytes
}

// Operator is how a value is compared.
type Operator int

// The operators.
const (
	Is Operator = iota
	Contains
	Begins
	Ends
	Exists
	Above
	AtLeast
	Below
	AtMost
	Between // the range, with both ends; one of them may be missing
)

// Value is one value of a term.
type Value struct {
	Operator Operator
	Text     string
	To       string // the end of Between
	Quoted   bool   // so that an @ has no meaning

	at int // in bytes
}

// comparisons are the operators in front of a value, the longer ones first.
var comparisons = []struct {
	text     string
	operator Operator
}{{">=", AtLeast}, {"<=", AtMost}, {">", Above}, {"<", Below}}

// String prints the line, so that Parse reads the same terms from it.
func (l Line) String() string {
	texts := make([]string, len(l.Terms))
	for i := range l.Terms {
		texts[i] = l.Terms[i].String()
	}

	// Alone, alternatives need no parentheses.
	if len(l.Terms) == 1 && l.Terms[0].Any != nil && !l.Terms[0].Not {
		return strings.TrimSuffix(strings.TrimPrefix(texts[0], "("), ")")
	}

	return strings.Join(texts, " ")
}

// With returns the line with more terms, all of which must hold as well.
func (l Line) With(terms ...Term) Line { return Line{Terms: slices.Concat(l.Terms, terms)} }

// String prints the term.
func (t *Term) String() string {
	not := ""
	if t.Not {
		not = "-"
	}
	if t.Any != nil {
		alternatives := make([]string, len(t.Any))
		for i, l := range t.Any {
			alternatives[i] = l.String()
			if len(l.Terms) == 1 {
				alternatives[i] = l.Terms[0].String()
			}
		}
		return not + "(" + strings.Join(alternatives, " OR ") + ")"
	}
	// A text alone may look like a condition: it is quoted by other rules than a value.
	if t.Field == nil {
		v := t.Values[0]
		return not + v.starred(printWord(v.Text))
	}

	values := make([]string, len(t.Values))
	for i := range t.Values {
		values[i] = t.Values[i].print(t.Field, len(t.Values) > 1)
	}
	if len(values) > 1 {
		return not + t.key() + ":(" + strings.Join(values, " or ") + ")"
	}

	return not + t.key() + ":" + values[0]
}

// key prints the field with its part.
func (t *Term) key() string {
	if t.Part == "" {
		return t.Field.Name
	}
	bare := !strings.ContainsAny(t.Part, `:")`) && !strings.ContainsFunc(t.Part, unicode.IsSpace)

	// A key of metadata stands alone, unless it looks like something else.
	if f, part := resolve(t.Part); bare && t.Field == metadata && f == metadata && part == t.Part &&
		!strings.ContainsAny(t.Part[:1], "-(") {
		return t.Part
	}
	if bare {
		return t.Field.Name + "." + t.Part
	}

	return t.Field.Name + "." + quote(t.Part)
}

// print prints the value; listed is whether it is one of several.
func (v *Value) print(f *Field, listed bool) string {
	if v.Operator == Exists {
		return "*"
	}

	// Quoted text is never split, so quotes are put wherever a part would be taken for a
	// sign.
	text := v.Text
	meant := v.Quoted && (f.Kind == Template && strings.Contains(text, "@") || f.Kind == Score && isNumber(text))
	if meant || needsQuotes(text, listed) || f.isOrdered() && strings.Contains(text, "..") {
		text = quote(text)
	}

	if v.Operator == Between {
		return v.Text + ".." + v.To
	}
	for _, c := range comparisons {
		if c.operator == v.Operator {
			return c.text + text
		}
	}

	return v.starred(text)
}

// starred returns a value, as it is printed, with its stars.
func (v *Value) starred(text string) string {
	switch v.Operator {
	case Contains:
		return "*" + text + "*"
	case Begins:
		return text + "*"
	case Ends:
		return "*" + text
	}

	return text
}

// needsQuotes reports whether a value would be read as something else without quotes.
func needsQuotes(text string, listed bool) bool {
	return text == "" || strings.ContainsFunc(text, unicode.IsSpace) || strings.Contains(text, "*") ||
		strings.ContainsAny(text[:1], `"<>(`) || strings.Contains(text, ")") ||
		listed && (strings.Contains(text, ",") || strings.EqualFold(text, "or"))
}

// printWord prints a text that has no field.
func printWord(text string) string {
	if text == "" || strings.ContainsFunc(text, unicode.IsSpace) || strings.ContainsAny(text, `":)*`) ||
		strings.ContainsAny(text[:1], "-(") || reserved[text] {
		return quote(text)
	}

	return text
}

// reserved are words that people write between conditions, and that are not words to look for.
var reserved = map[string]bool{"AND": true, "OR": true, "NOT": true}

var quoteEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func quote(text string) string { return `"` + quoteEscapes.Replace(text) + `"` }

// Sought returns what the line looks for in prompts and responses.
func (l Line) Sought() (all []words.Sought) {
	for i := range l.Terms {
		t := &l.Terms[i]
		for _, alternative := range t.Any {
			if !t.Not {
				all = append(all, alternative.Sought()...)
			}
		}
		if f := t.field(); !t.Not && f.Kind == Content {
			for j := range t.Values {
				all = append(all, t.Values[j].sought(f)...)
			}
		}
	}

	return all
}

// sought returns what a value of a field of texts looks for, if that has a place in them.
func (v *Value) sought(f *Field) []words.Sought {
	var text string
	c := compileText(f, v)
	_ = json.Unmarshal(c.Value, &text)
	if s := words.Seek(c.Operator, text); s != nil {
		return []words.Sought{s}
	}

	return nil
}

// faultAt returns a 422 about a place in a line, which is given in bytes. Callers get it in
// characters, whatever their language counts in.
func faultAt(text string, at int, format string, args ...any) error {
	return faultIn("filter", text, at, format, args...)
}

// faultIn is faultAt for a line that another field of a request has.
func faultIn(field, text string, at int, format string, args ...any) error {
	offset := utf8.RuneCountInString(text[:min(at, len(text))])
	reason := fmt.Sprintf(format, args...)

	return wire.Invalid(wire.FieldError{
		Field:  field,
		Reason: fmt.Sprintf("is wrong at character %d: %s", offset+1, reason),
		Offset: &offset,
	})
}

// Where returns the term that a field has a value, for pages and flags. The field is named as in a
// line, and part is what follows its dot. The value is taken as it is; of numbers and times it may
// be a range. It panics if there is no such field.
func Where(name, part, value string) Term {
	// In which a key may be empty.
	dotted := part != "" || name == metadata.Name
	t := Term{Field: find(name, dotted), Part: part, Values: []Value{{Text: value, Quoted: true}}}
	// Of which only a category has quotes.
	t.Values[0].Quoted = t.Field.Kind != Score
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

// listedBy are the fields of what lists of sessions and users show first.
var listedBy = map[string]string{"sessions": "session", "users": "user"}

// Meant returns the line with a meaning for its words: the time that one names, or the session or user. These are
// meant in a list of them. It reports false if no word has one.
func (l Line) Meant(list string) (Line, bool) {
	meant := Line{Terms: slices.Clone(l.Terms)}
	found := false
	for i, t := range l.Terms {
		name := listedBy[list]
		if t.Field != nil || t.Any != nil {
			continue
		}
		if slices.Contains(TimeWords, t.Values[0].Text) {
			name = "time"
		}
		if name != "" {
			meant.Terms[i] = Where(name, "", t.Values[0].Text)
			meant.Terms[i].Not = t.Not
			found = true
		}
	}

	return meant, found
}

// Demanded returns the one text that the term demands, without a template's version or label. It
// reports false if it demands another thing.
func (t Term) Demanded() (string, bool) {
	if t.Field == nil || t.Not || len(t.Values) != 1 || t.Values[0].Operator != Is {
		return "", false
	}
	v := t.Values[0]
	i := strings.LastIndex(v.Text, "@")
	if t.Field.Kind != Template || v.Quoted || i <= 0 {
		return v.Text, true
	}

	return v.Text[:i], true
}
