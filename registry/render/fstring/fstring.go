// Package fstring parses and renders texts in the format grammar of Python's str.format.
// Rendering reads JSON values only; its work and its output are bounded.
package fstring

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"promptspool/registry/render/language"
)

// Bounds of one text.
const (
	fieldsMax = 10_000 // replacement fields
	pathMax   = 32     // steps into a value: {a.b[0]} has two
)

// Format is a text in Python's format grammar: {name}, {name!r}, {name:spec},
// {name.member}, {name[0]}, {{ and }}. Python documents it under "Format String Syntax".
//
// Two things differ. A name is an identifier, with - allowed inside it; {} and {0} are
// not fields, because variables have names. And .member and [key] reach into the members
// and elements of a JSON value, never into anything else.
//
// A Format never changes and is safe for concurrent use.
type Format struct{ parts []part }

// part is a literal text and the field after it. The last part may have no field.
type part struct {
	literal string
	field   *field
}

type field struct {
	source     string   // the name with its path, as written
	name       string   // the variable
	path       []string // members and indexes to reach into
	conversion byte     // 'r' or 's'; 0 if none
	spec       spec
}

// Parse reads a text. Its error is written for a person who wrote JSON braces and meant
// them.
func Parse(text string) (*Format, error) {
	p := &parser{}
	f, err := p.parse(text)
	if err != nil {
		e := &language.Error{Message: err.Error(), At: p.at}
		e.Line, e.Column = language.Position(text, e.At)
		return nil, e
	}

	return f, nil
}

// Variables lists the variables of the text, each once, in order of appearance.
func (f *Format) Variables() []string {
	var names language.Names
	for _, p := range f.parts {
		if p.field != nil {
			names.Add(p.field.name)
		}
	}

	return names.List
}

// inBraces finds a variable's name as isName knows it, or with members, in one pair of braces.
var inBraces = regexp.MustCompile(`(?:^|[^{])\{\s*([\pL_][\pL\p{Nd}\pM_.-]*)\s*\}(?:[^}]|$)`)

// Doubled returns the first name in doubled braces, or "" if there is none. Other template languages
// take it for a variable.
func (f *Format) Doubled() string {
	for _, p := range f.parts {
		if found := inBraces.FindStringSubmatch(p.literal); found != nil {
			return found[1]
		}
	}

	return ""
}

// Marked returns the text with a mark in the place of each field. A mark is begin, the
// number of the field, and end. Marked appends the variables to names; a field's number
// is its index there.
//
// ok is false if a value decides on more than the text in its place, or if the text may
// become blank.
func (f *Format) Marked(begin, end string, names []string) (text string, all []string, ok bool) {
	var b strings.Builder
	isBlank := true
	for _, p := range f.parts {
		b.WriteString(p.literal)
		isBlank = isBlank && strings.TrimSpace(p.literal) == ""
		if p.field == nil {
			continue
		}
		// Each of these makes more of a value than its text.
		if d := p.field; len(d.path) > 0 || d.conversion != 0 || d.spec.given {
			return "", nil, false
		}
		b.WriteString(begin + strconv.Itoa(len(names)) + end)
		names = append(names, p.field.name)
	}

	return b.String(), names, !isBlank
}

type parser struct {
	fields int
	at     int // the byte of the current brace
}

var (
	errSingle     = errors.New("has a single brace; write {{ and }} for braces")
	errOpen       = errors.New("has a { that is not closed; write {{ and }} for braces")
	errFields     = fmt.Errorf("has more than %d fields", fieldsMax)
	errNesting    = errors.New("has a field within a field's format spec, which is not supported")
	errConversion = errors.New("has a ! in a field that is not followed by r or s")
)

func (p *parser) parse(text string) (*Format, error) {
	f := &Format{}
	whole := len(text)
	var literal strings.Builder
	for {
		i := strings.IndexAny(text, "{}")
		if i < 0 {
			break
		}
		literal.WriteString(text[:i])
		p.at = whole - len(text) + i

		// A doubled brace is a literal brace.
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
		field, rest, err := readField(text)
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

// readField reads a field, whose { was read, and returns it with the text after its }.
func readField(text string) (f *field, rest string, err error) {
	end, err := nameEnd(text)
	if err != nil {
		return nil, "", err
	}
	f, err = parseName(text[:end])
	if err != nil {
		return nil, "", err
	}

	// After the name: a conversion, a format spec, or the end.
	stop, text := text[end], text[end+1:]
	if stop == '!' {
		f.conversion, stop, text, err = parseConversion(text)
		if err != nil {
			return nil, "", err
		}
	}
	if stop == '}' {
		return f, text, nil
	}

	end = strings.IndexAny(text, "{}")
	switch {
	case end < 0:
		return nil, "", errOpen
	case text[end] == '{':
		return nil, "", errNesting
	}
	f.spec, err = parseSpec(text[:end])

	return f, text[end+1:], err
}

// nameEnd finds the : ! or } after a field's name. Within brackets they are part of a
// key.
func nameEnd(text string) (int, error) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '}', ':', '!':
			return i, nil
		case '{':
			return 0, errSingle
		case '[':
			// The text in brackets is a key, and may have any of the other characters.
			n := strings.IndexByte(text[i:], ']')
			if n < 0 {
				return 0, errOpen
			}
			i += n
		}
	}

	return 0, errOpen
}

// parseConversion reads what follows a !, up to the : or }.
func parseConversion(text string) (conversion, stop byte, rest string, err error) {
	if len(text) < 2 {
		return 0, 0, "", errOpen
	}
	conversion, stop = text[0], text[1]
	if !strings.ContainsRune("rs", rune(conversion)) || stop != ':' && stop != '}' {
		return 0, 0, "", errConversion
	}

	return conversion, stop, text[2:], nil
}

// parseName reads name.member[key]...
func parseName(text string) (*field, error) {
	end := strings.IndexAny(text, ".[")
	if end < 0 {
		end = len(text)
	}
	// The source is kept for errors, which show what the person wrote.
	f := &field{source: text, name: text[:end]}
	if !isName(f.name) {
		return nil, fmt.Errorf("has {%s}, which is no variable's name; write {{ and }} for braces",
			language.Shorten(text))
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
			// There is one: nameEnd found it.
			end := strings.IndexByte(text, ']')
			step, text = text[1:end], text[end+1:]
		}
		isJoined := text == "" || text[0] == '.' || text[0] == '['
		if step == "" || !isJoined || len(f.path) == pathMax {
			return nil, fmt.Errorf(
				"has {%s}, whose path cannot be followed; write {name.member} or {name[0]}",
				language.Shorten(f.source))
		}
		f.path = append(f.path, step)
	}

	return f, nil
}

// isName reports whether text is an identifier, with - allowed inside it.
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
