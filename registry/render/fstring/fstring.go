package fstring

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"promptspool/registry/render/language"
	"promptspool/registry/render/python"
)

// Bounds of one text.
const (
	fieldsMax = 10_000 // replacement fields
	pathMax   = 32     // steps into a value: {a.b[0]} has two
)

// Format is a text in Python's format grammar, as its documentation has it under "Format String Syntax": {name},
// {name!r}, {name:spec}, {name.member}, {name[0]}, {{ and }}. It differs in this: a name is an identifier (- is allowed within
// it; {} and {0} are not fields, since variables have names), and .member and [key] reach into the members and elements of a
// JSON value, never into anything else. It never changes; safe for concurrent use.
type Format struct{ parts []part }

// part is a literal text and the field behind it; the last part may have none.
type part struct {
	literal string
	field   *field
}

type field struct {
	source     string      // the name with its path, as written
	name       string      // the variable
	path       []string    // members and indexes to reach into
	conversion byte        // 'r', 's', 'a'; 0 if none
	spec       python.Spec // if nested is nil
	nested     *Format     // the spec, if it has fields itself
}

// Parse reads a text. Its error says what is wrong, for a person who wrote JSON braces and meant them.
func Parse(text string) (*Format, error) {
	p := &parser{}
	f, err := p.parse(text, false)
	if err != nil {
		e := &language.Error{Message: err.Error(), At: p.at}
		e.Line, e.Column = language.Position(text, e.At)
		return nil, e
	}
	return f, nil
}

// Variables lists the variables of the text in order of appearance, each once.
func (f *Format) Variables() []string {
	var names []string
	seen := make(map[string]bool)
	f.walk(func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	})
	return names
}

func (f *Format) walk(visit func(name string)) {
	for _, p := range f.parts {
		if p.field == nil {
			continue
		}
		visit(p.field.name)
		if p.field.nested != nil {
			p.field.nested.walk(visit)
		}
	}
}

type parser struct {
	fields int
	at     int // the byte of the brace that is being read; of a spec's fields, that of the field around them
}

var (
	errSingle  = errors.New("has a single brace; write {{ and }} for braces")
	errOpen    = errors.New("has a { that is not closed; write {{ and }} for braces")
	errFields  = fmt.Errorf("has more than %d fields", fieldsMax)
	errNesting = errors.New("has a field in a field's format spec that has fields in its own")
)

// parse reads a text, or the spec of a field, whose fields may not have fields in their specs.
func (p *parser) parse(text string, inSpec bool) (*Format, error) {
	f := &Format{}
	whole := len(text)
	var literal strings.Builder
	for {
		i := strings.IndexAny(text, "{}")
		if i < 0 {
			break
		}
		literal.WriteString(text[:i])
		if !inSpec {
			p.at = whole - len(text) + i
		}
		brace := text[i]
		text = text[i+1:]
		switch {
		case text != "" && text[0] == brace:
			literal.WriteByte(brace)
			text = text[1:]
			continue
		case brace == '}' || text == "":
			return nil, errSingle
		case p.fields == fieldsMax:
			return nil, errFields
		}
		p.fields++
		field, rest, err := p.field(text, inSpec)
		if err != nil {
			return nil, err
		}
		f.parts = append(f.parts, part{literal.String(), field})
		literal.Reset()
		text = rest
	}
	literal.WriteString(text)
	if literal.Len() > 0 {
		f.parts = append(f.parts, part{literal: literal.String()})
	}
	return f, nil
}

// field reads a field, whose { was read, and returns it with the text behind its }.
func (p *parser) field(text string, inSpec bool) (f *field, rest string, err error) {
	end, err := nameEnd(text)
	if err != nil {
		return nil, "", err
	}
	if f, err = parseName(text[:end]); err != nil {
		return nil, "", err
	}
	stop, text := text[end], text[end+1:]
	if stop == '!' {
		if f.conversion, stop, text, err = parseConversion(text); err != nil {
			return nil, "", err
		}
	}
	if stop == '}' {
		return f, text, nil
	}
	spec, rest, err := cutSpec(text)
	switch {
	case err != nil:
	case !strings.ContainsAny(spec, "{}"):
		f.spec, err = python.ParseSpec(spec)
	case inSpec:
		err = errNesting
	default:
		f.nested, err = p.parse(spec, true)
	}
	return f, rest, err
}

// nameEnd finds the : ! or } behind a field's name; within brackets they are part of a key.
func nameEnd(text string) (int, error) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '}', ':', '!':
			return i, nil
		case '{':
			return 0, errSingle
		case '[':
			n := strings.IndexByte(text[i:], ']')
			if n < 0 {
				return 0, errOpen
			}
			i += n
		}
	}
	return 0, errOpen
}

// parseConversion reads what stands behind a !, up to the : or }.
func parseConversion(text string) (conversion, stop byte, rest string, err error) {
	if len(text) < 2 {
		return 0, 0, "", errOpen
	}
	conversion, stop = text[0], text[1]
	if !strings.ContainsRune("rsa", rune(conversion)) || stop != ':' && stop != '}' {
		return 0, 0, "", errors.New("has a ! in a field that is not followed by r, s or a")
	}
	return conversion, stop, text[2:], nil
}

// cutSpec reads up to the } that closes the field.
func cutSpec(text string) (spec, rest string, err error) {
	open := 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				return text[:i], text[i+1:], nil
			}
		}
	}
	return "", "", errOpen
}

// parseName reads name.member[key]...
func parseName(text string) (*field, error) {
	end := strings.IndexAny(text, ".[")
	if end < 0 {
		end = len(text)
	}
	f := &field{source: text, name: text[:end]}
	if !isName(f.name) {
		return nil, fmt.Errorf("has {%s}, which is no variable's name; write {{ and }} for braces", language.Shorten(text))
	}
	for text = text[end:]; text != ""; {
		var step string
		switch text[0] {
		case '.':
			end := strings.IndexAny(text[1:], ".[") + 1
			if end == 0 {
				end = len(text)
			}
			step, text = text[1:end], text[end:]
		case '[':
			end := strings.IndexByte(text, ']') // there is one: nameEnd saw it
			step, text = text[1:end], text[end+1:]
		}
		if step == "" || text != "" && text[0] != '.' && text[0] != '[' || len(f.path) == pathMax {
			return nil, fmt.Errorf("has {%s}, whose path cannot be followed; write {name.member} or {name[0]}", language.Shorten(f.source))
		}
		f.path = append(f.path, step)
	}
	return f, nil
}

// isName says whether text is an identifier, with - allowed within it.
func isName(text string) bool {
	for i, r := range text {
		switch {
		case r == '_' || unicode.IsLetter(r):
		case i > 0 && (r == '-' || unicode.IsDigit(r) || unicode.IsMark(r)):
		default:
			return false
		}
	}
	return text != "" && utf8.ValidString(text)
}

// Marked is the text with marks in the places of its fields.
func (f *Format) Marked(begin, end string, names []string) (string, []string, bool) {
	var text strings.Builder
	blank := true
	for _, p := range f.parts {
		text.WriteString(p.literal)
		blank = blank && strings.TrimSpace(p.literal) == ""
		if p.field == nil {
			continue
		}
		if d := p.field; len(d.path) > 0 || d.conversion != 0 || d.nested != nil || d.spec.IsGiven() {
			return "", nil, false
		}
		text.WriteString(begin + strconv.Itoa(len(names)) + end)
		names = append(names, p.field.name)
	}
	return text.String(), names, !blank
}
