package filterline

import (
	"slices"
	"strings"
	"unicode"
)

// Typing is what a person is writing at the end of an unfinished line: a key, or a value.
type Typing struct {
	Kept   string // the line in front of it
	Prefix string // what is written of it
	Field  *Field // of a value, or of the part after a dot; nil means any key
	Part   string
	Value  bool // a value, and not a key

	listed bool
}

// TypingAt returns what is being written at the end of head. It is never a fault: much of what is
// unfinished would be one.
func TypingAt(head string) Typing {
	start, colon, item := lastTerm(head)
	term := head[start:]
	bare := strings.TrimLeft(term, "-(")
	start += len(term) - len(bare)

	// A field is offered from its first letter, a part from the dot after its field.
	if colon < 0 {
		t := Typing{Kept: head[:start], Prefix: bare}
		if name, part, dotted := strings.Cut(bare, "."); dotted && find(name, true) != nil {
			t.Field, t.Prefix = find(name, true), strings.Trim(part, `"`)
		}
		return t
	}

	key := head[start:colon]
	t := Typing{Value: true, Kept: head[:item], Prefix: head[item:], listed: item > colon+1}
	t.Field, t.Part = resolve(key)
	if name, part, _ := strings.Cut(key, "."); strings.HasPrefix(part, `"`) {
		t.Field, t.Part = metadata, strings.ReplaceAll(strings.Trim(part, `"`), `\"`, `"`)
		if f := find(name, true); f != nil {
			t.Field = f
		}
	}
	for _, c := range comparisons {
		if rest, ok := strings.CutPrefix(t.Prefix, c.text); ok && t.Field.isOrdered() {
			t.Kept, t.Prefix = t.Kept+c.text, rest
		}
	}
	// Values are offered by how they begin, also while a quote is still open.
	t.Prefix = strings.TrimLeft(t.Prefix, `"*`)

	return t
}

// lastTerm returns where the last term of a line begins, its colon (-1: none), and its last value.
func lastTerm(head string) (start, colon, item int) {
	quoted, listed := false, false
	colon = -1
	for i, c := range head {
		switch {
		case c == '"' && (i == 0 || head[i-1] != '\\'):
			quoted = !quoted
		case quoted:
		case c == ':' && colon < 0:
			colon, item = i, i+1
			listed = strings.HasPrefix(head[i+1:], "(")
		case c == '(' && i == colon+1 && listed, c == ',' && listed:
			item = i + 1
		case c == ')' && listed:
			listed = false
		case unicode.IsSpace(c) && listed:
			word := strings.TrimSpace(head[item:i])
			if word == "" || strings.EqualFold(word[max(0, len(word)-len(" or")):], " or") {
				item = i + len(string(c))
			}
		case unicode.IsSpace(c):
			start, colon, item = i+len(string(c)), -1, 0
		}
	}

	return start, colon, item
}

// IsText reports whether what is written is a text to look for, which nothing completes.
func (t Typing) IsText() bool {
	return !t.Value && t.Field == nil && strings.ContainsAny(t.Prefix, `"*(`)
}

// Keys returns the fields whose names begin as what is written. Those that only sessions, traces and users
// have are among them if ofRollups is set.
func (t Typing) Keys(ofRollups bool) (all []*Field) {
	for i := range Fields {
		f := &Fields[i]
		if f.Listed() && (ofRollups || f.IsOfCalls()) && strings.HasPrefix(f.Name, strings.ToLower(t.Prefix)) {
			all = append(all, f)
		}
	}

	return all
}

// Completed returns the line with a key in place of what is written, ready for its value.
func (f *Field) Completed() string {
	if f.NeedsPart {
		return f.Name + "."
	}
	return f.Name + ":"
}

// CompletedPart returns the key of a field with a part, ready for its value.
func (f *Field) CompletedPart(part string) string {
	t := Term{Field: f, Part: part}
	return t.key() + ":"
}

// Selector splits what is written of a template at the @ in front of a version or a label. ok is false
// without one, or if it would be part of the name.
func (t Typing) Selector() (name, selector string, ok bool) {
	i := strings.LastIndex(t.Prefix, "@")
	if !t.Value || t.Field.Kind != Template || i <= 0 || needsQuotes(t.Prefix[:i], t.listed) {
		return "", "", false
	}

	return t.Prefix[:i], t.Prefix[i+1:], true
}

// Offered returns a value as the line has it, and a line of it alone, to count what it finds.
func (t Typing) Offered(v Value) (text string, alone Line) {
	return v.print(t.Field, t.listed), Line{Terms: []Term{{Field: t.Field, Part: t.Part, Values: []Value{v}}}}
}

// PartField returns the field of a JSON filter that lists the parts of a field; "" if none does.
func (f *Field) PartField() string {
	return map[string]string{
		"metadata":        "metadata_keys",
		"score":           "score_name",
		"score_author":    "score_name",
		"output":          "output_keys",
		"input_variables": "input_variable_keys",
	}[f.JSON]
}

// ValueField returns the field of a JSON filter that lists the values of a field; "" if none does.
func (f *Field) ValueField() string {
	switch f.Kind {
	case Text, Template:
		return f.JSON
	case Score:
		return scoreText
	}
	return ""
}

// Words returns the values of a field that are known without asking anybody.
func (t Typing) Words() []string {
	known := t.Field.Values
	if t.Field.Kind == Time {
		known = slices.Concat(TimeWords, []string{"1h", "24h", "7d", "30d"})
	}
	var all []string
	for _, word := range known {
		if strings.HasPrefix(strings.ToLower(word), strings.ToLower(t.Prefix)) {
			all = append(all, word)
		}
	}

	return all
}

// IsTime reports whether the term limits the time of requests.
func (t *Term) IsTime() bool { return t.Field != nil && t.Field.JSON == moment }

// OfMetadata returns the field of metadata.
func OfMetadata() *Field { return metadata }
