package filterline

import (
	"strings"
	"unicode"
)

// Line is a parsed line.
type Line struct {
	Terms []Term

	text string // that it was parsed from, for the places of faults
}

// Term is a condition of a line: a field with values, or a text without a field.
type Term struct {
	Not    bool    // it must not hold
	Field  *Field  // nil: the text must be in the prompt or the response
	Part   string  // of the field, after its dot
	Values []Value // one of them must fit; exactly one without a field

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

	return strings.Join(texts, " ")
}

// String prints the term.
func (t *Term) String() string {
	not := ""
	if t.Not {
		not = "-"
	}
	// A text alone may look like a condition: it is quoted by other rules than a value.
	if t.Field == nil {
		return not + printWord(t.Values[0].Text)
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
	bare := !strings.ContainsFunc(t.Part, func(c rune) bool { return unicode.IsSpace(c) || c == ':' || c == '"' })

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

	switch v.Operator {
	case Contains:
		if f.Kind == Content { // it is found within its text without stars
			return text
		}
		return "*" + text + "*"
	case Begins:
		return text + "*"
	case Ends:
		return "*" + text
	case Between:
		return v.Text + ".." + v.To
	}
	for _, c := range comparisons {
		if c.operator == v.Operator {
			return c.text + text
		}
	}

	return text
}

// needsQuotes reports whether a value would be read as something else without quotes.
func needsQuotes(text string, listed bool) bool {
	return text == "" || strings.ContainsFunc(text, unicode.IsSpace) || strings.Contains(text, "*") ||
		strings.ContainsAny(text[:1], `"<>(`) ||
		listed && (strings.ContainsAny(text, ",)") || strings.EqualFold(text, "or"))
}

// printWord prints a text that has no field.
func printWord(text string) string {
	if text == "" || strings.ContainsFunc(text, unicode.IsSpace) || strings.ContainsAny(text, `":`) ||
		strings.ContainsAny(text[:1], "-(*") || strings.HasSuffix(text, "*") || reserved[text] {
		return quote(text)
	}

	return text
}

// reserved are words that people write between conditions, and that are not words to look for.
var reserved = map[string]bool{"AND": true, "OR": true, "NOT": true}

var quoteEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func quote(text string) string { return `"` + quoteEscapes.Replace(text) + `"` }
