package filterline

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"promptspool/api/wire"
)

// Bounds of a line.
const (
	RunesMax = wire.LineRunesMax
	TermsMax = 100
)

// Parse reads a line. Its errors are 422 and name the place.
func Parse(text string) (Line, error) {
	p := parser{text: text, in: "filter"}

	return p.line()
}

// ParseText reads what to look for in prompts and responses: a line without keys. Its errors are 422
// and name the place in q.
func ParseText(text string) (Line, error) {
	p := parser{text: text, in: "q"}

	return p.line()
}

// parser is a line and the place reached, in bytes.
type parser struct {
	text  string
	in    string // what faults name
	at    int
	depth int // of parentheses
	terms int // so far
}

func (p *parser) fault(at int, format string, args ...any) error {
	return faultIn(p.in, p.text, at, format, args...)
}

// line reads all of it.
func (p *parser) line() (l Line, err error) {
	if n := utf8.RuneCountInString(p.text); n > RunesMax {
		return l, p.fault(len(p.text), "the line has %d characters, at most %d are allowed", n, RunesMax)
	}
	if !utf8.ValidString(p.text) {
		return l, p.fault(0, "the line is not valid UTF-8")
	}

	l.text = p.text
	l.Terms, err = p.conditions()

	return l, err
}

// conditions reads terms to the end of the line, or of its parentheses. Alternatives become one term.
func (p *parser) conditions() ([]Term, error) {
	var before []Line // alternatives
	var terms []Term
	from, or := p.at, 0
	for p.skipBlanks(); p.at < len(p.text) && !p.closes(); p.skipBlanks() {
		if p.terms++; p.terms > TermsMax {
			return nil, p.fault(p.at, "more than %d conditions", TermsMax)
		}
		if at := p.at; p.take("OR") && p.ended() {
			if terms == nil {
				return nil, p.fault(at, "OR needs a condition on both sides; quote it to look for the word")
			}
			before, terms, or = append(before, Line{Terms: terms}), nil, at
			p.terms--
			continue
		} else {
			p.at = at
		}
		t, err := p.term()
		switch {
		case err != nil:
			return nil, err
		case t == nil:
		// Parentheses around what must hold anyway say nothing.
		case len(t.Any) == 1 && !t.Not:
			terms = append(terms, t.Any[0].Terms...)
		default:
			terms = append(terms, *t)
		}
	}

	switch {
	case before == nil:
		return terms, nil
	case terms == nil:
		return nil, p.fault(or, "OR needs a condition on both sides; quote it to look for the word")
	}

	return []Term{{Any: append(before, Line{Terms: terms}), at: from}}, nil
}

// closes reports whether the parenthesis follows that ends conditions.
func (p *parser) closes() bool { return p.depth > 0 && p.begins(")") }

func (p *parser) skipBlanks() {
	rest := p.text[p.at:]
	p.at += len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace))
}

// begins reports whether the rest of the line begins so.
func (p *parser) begins(prefix string) bool { return strings.HasPrefix(p.text[p.at:], prefix) }

// take skips a prefix if the rest of the line begins with it.
func (p *parser) take(prefix string) bool {
	if !p.begins(prefix) {
		return false
	}
	p.at += len(prefix)

	return true
}

// ended reports whether a blank or the end of the line follows, or of its parentheses.
func (p *parser) ended() bool {
	c, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return p.at == len(p.text) || unicode.IsSpace(c) || p.closes()
}

// term reads a term; nil for an AND between two, which says nothing.
func (p *parser) term() (*Term, error) {
	t := &Term{at: p.at}
	if p.begins("-") {
		p.at++
		t.Not = !p.ended()
		if !t.Not {
			// A dash alone is a word.
			p.at--
		}
	}

	switch {
	case p.begins(`"`), p.begins(`*"`):
		return t, p.phrase(t)
	case p.begins("("):
		return t, p.group(t)
	}

	// Until its colon, a key looks like a word.
	from := p.at
	part, isKey, err := p.key()
	if err != nil {
		return nil, err
	}
	if isKey {
		return t, p.field(t, from, part)
	}

	word := p.text[from:p.at]
	switch {
	case word == "AND" && !t.Not:
		return nil, nil
	case reserved[word]:
		return nil, p.fault(from, "%s is not a condition: all conditions must hold, -key:value negates one, "+
			"OR stands between two, and %q looks for the word", word, word)
	case strings.Trim(word, "*") == "":
		return nil, p.fault(from, "* stands for any value of a field, as in customer:*; a word may end with one")
	}
	v, err := p.stars(t, Value{Text: word, at: from})
	t.Values = []Value{v}

	return t, err
}

// groupsMax is how deep parentheses may be nested: a filter that is made of them has a depth, too.
const groupsMax = 5

// group reads conditions in parentheses.
func (p *parser) group(t *Term) error {
	opening := p.at
	p.at++
	if p.depth++; p.depth > groupsMax {
		return p.fault(opening, "parentheses are nested too deeply; at most %d levels are allowed", groupsMax)
	}
	terms, err := p.conditions()
	if err != nil {
		return err
	}

	closed := p.take(")")
	p.depth--
	switch {
	case !closed:
		return p.fault(opening, "this parenthesis is not closed")
	case terms == nil:
		return p.fault(opening, "there is nothing between these parentheses; quote them to look for them")
	case !p.ended():
		return p.fault(p.at, "a blank is missing after the parenthesis")
	}
	t.Any = []Line{{Terms: terms}}
	if len(terms) == 1 && terms[0].Any != nil && !terms[0].Not {
		t.Any = terms[0].Any
	}

	return nil
}

// phrase reads a quoted text that stands alone.
func (p *parser) phrase(t *Term) error {
	from := p.at
	begin := p.take("*")
	text, err := p.quoted()
	end := err == nil && p.take("*")
	switch {
	case err != nil:
		return err
	case strings.TrimSpace(text) == "":
		return p.fault(from, "there is nothing to look for between these quotes")
	case p.begins(":"):
		return p.fault(from, `only what follows a dot can be quoted in a key, as in metadata."a key":value`)
	case !p.ended():
		return p.fault(p.at, "a blank is missing after the closing quote")
	}
	v, err := p.starred(t, Value{Text: text, Quoted: true, at: from}, begin, end)
	t.Values = []Value{v}

	return err
}

// key reads up to the colon of a key. If there is none, it is a word. part is what was quoted
// after a dot.
func (p *parser) key() (part string, isKey bool, err error) {
	from := p.at
	for p.at < len(p.text) {
		c, size := utf8.DecodeRuneInString(p.text[p.at:])
		switch {
		case p.ended():
			return "", false, nil
		case p.in == "q": // it has no keys
		case c == ':' && p.at > from:
			return "", true, nil
		case c == ':':
			return "", false, p.fault(p.at, "a key is missing in front of the colon; quote a text that has one")

		// Only after the dot of a field that has parts: elsewhere a quote is part of the word.
		case c == '"' && p.at > from && p.text[p.at-1] == '.' && find(p.text[from:p.at-1], true) != nil:
			part, err = p.quoted()
			if err != nil {
				return "", false, err
			}
			if part == "" || !p.begins(":") {
				return "", false, p.fault(from, `a quoted key needs a colon and a value, as in metadata."a key":value`)
			}
			return part, true, nil
		}
		p.at += size
	}

	return "", false, nil
}

// field reads the values of the key that begins at from and ends here, at its colon.
func (p *parser) field(t *Term, from int, part string) error {
	// A key that is not a field's is one of the metadata, so a line never fails for its names.
	key := p.text[from:p.at]
	if part == "" {
		t.Field, t.Part = resolve(key)
	} else {
		name, _, _ := strings.Cut(key, ".")
		t.Field, t.Part = find(name, true), part
	}
	p.at++ // the colon

	opening := p.at
	if !p.take("(") {
		v, err := p.item(t, false)
		t.Values = []Value{v}
		if err == nil && !p.ended() {
			err = p.fault(p.at, "a blank is missing after the closing quote")
		}
		return err
	}

	for {
		p.skipBlanks()
		v, err := p.item(t, true)
		if err != nil {
			return err
		}
		t.Values = append(t.Values, v)

		p.skipBlanks()
		switch {
		// The fault is shown at its beginning: its end could be anywhere.
		case p.at == len(p.text):
			return p.fault(opening, "this parenthesis is not closed")
		case p.take(")"):
			if !p.ended() {
				return p.fault(p.at, "a blank is missing after the parenthesis")
			}
			return nil
		case p.take(","):
		default:
			if at := p.at; !strings.EqualFold(p.bare(true), "or") {
				return p.fault(at, "values are separated by or, as in status:(error or warning); quote one with blanks")
			}
		}
	}
}

// item reads one value of a term, which is one of several if listed.
func (p *parser) item(t *Term, listed bool) (Value, error) {
	v := Value{at: p.at}
	switch {
	case p.ended() || listed && (p.begins(")") || p.begins(",")):
		return v, p.fault(p.at, "a value is missing: %s:VALUE, or %s:* if any will do", t.key(), t.key())
	case listed && p.begins("("):
		return v, p.fault(p.at, "parentheses cannot be nested; quote a value that begins so")
	}
	compared, err := p.comparison(t, &v)
	if err != nil {
		return v, err
	}

	// A star in front of a quote belongs to the value; one in front of anything else is read with it.
	begin := !compared && p.begins(`*"`)
	if begin {
		p.at++
	}
	// In quotes stars and dots stand for themselves.
	if p.begins(`"`) {
		v.Text, err = p.quoted()
		v.Quoted = true
		end := !compared && err == nil && p.take("*")
		if err != nil {
			return v, err
		}
		return p.starred(t, v, begin, end)
	}

	v.Text = p.bare(listed)
	low, high, isRange := strings.Cut(v.Text, "..")
	switch {
	case compared:
		return v, nil
	case isRange && t.Field.isOrdered() && t.Field.bound == "":
		v.Operator, v.Text, v.To = Between, low, high
		if low == "" && high == "" {
			return v, p.fault(v.at, "a range needs at least one end, as in 1..5, 1.. or ..5")
		}
		return v, nil
	}

	return p.stars(t, v)
}

// comparison reads an operator such as >= in front of a value, if there is one.
func (p *parser) comparison(t *Term, v *Value) (compared bool, err error) {
	for _, c := range comparisons {
		if !compared && p.take(c.text) {
			v.Operator, compared = c.operator, true
		}
	}

	// A quoted value may still begin so.
	switch {
	case !compared:
	case !t.Field.isOrdered():
		err = p.fault(v.at, "%s has no numbers or times that could be compared; quote a value that begins so", t.key())
	case t.Field.bound != "":
		err = p.fault(v.at, "%s compares by itself; write %s:TIME, or time: for other comparisons",
			t.Field.Name, t.Field.Name)
	case p.ended():
		err = p.fault(p.at, "a value is missing after the comparison")
	}

	return compared, err
}

// stars reads the stars of a value that is not quoted.
func (p *parser) stars(t *Term, v Value) (Value, error) {
	if v.Text == "*" || v.Text == "**" {
		v.Operator, v.Text = Exists, ""
		return p.starred(t, v, false, false)
	}

	begin, end := strings.HasPrefix(v.Text, "*"), strings.HasSuffix(v.Text, "*")
	v.Text = strings.TrimSuffix(strings.TrimPrefix(v.Text, "*"), "*")
	if i := strings.Index(v.Text, "*"); i >= 0 {
		return v, p.fault(v.at+i,
			"a * can be at the beginning and at the end of a value only; quote the value if it has one")
	}

	return p.starred(t, v, begin, end)
}

// starred sets the operator of a value that has a star at its beginning or end.
func (p *parser) starred(t *Term, v Value, begin, end bool) (Value, error) {
	f := t.field()
	switch {
	// Of a closed set of values, and of numbers and times, a part says nothing.
	case v.Operator == Exists && (f.closed || f.bound != ""),
		(begin || end) && (f.closed || f.isOrdered() && f.Kind != Score):
		return v, p.fault(v.at, "%s takes a whole value, without *", t.key())
	case begin && end:
		v.Operator = Contains
	case begin:
		v.Operator = Ends
	case end:
		v.Operator = Begins
	}
	if f.Kind == Content && (v.Operator == Is || v.Operator == Begins) && !strings.ContainsFunc(v.Text, isWord) {
		return v, p.fault(v.at, "a text is searched for words, and this has no letter and no digit; "+
			"*%s* finds it within a word, too", quote(v.Text))
	}

	return v, nil
}

// bare reads what is not quoted, to a blank, or to what separates values.
func (p *parser) bare(listed bool) string {
	rest := p.text[p.at:]
	end := strings.IndexFunc(rest, func(c rune) bool {
		return unicode.IsSpace(c) || listed && c == ',' || (listed || p.depth > 0) && c == ')'
	})
	if end < 0 {
		end = len(rest)
	}
	p.at += end

	return rest[:end]
}

// quoted reads a text in quotes.
func (p *parser) quoted() (string, error) {
	from := p.at
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		c := p.text[p.at]
		switch {
		case c == '"':
			p.at++
			return b.String(), nil
		// Any other backslash is one: paths of Windows need no care.
		case c == '\\' && p.at+1 < len(p.text) && (p.text[p.at+1] == '"' || p.text[p.at+1] == '\\'):
			p.at++
			c = p.text[p.at]
		}
		b.WriteByte(c)
	}

	return "", p.fault(from, "this quote is not closed")
}

// isWord reports whether a character is part of a word.
func isWord(c rune) bool { return unicode.In(c, unicode.L, unicode.N, unicode.M) }
