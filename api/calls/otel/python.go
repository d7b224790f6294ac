package otel

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"promptspool/api/wire/jsonscan"
)

// pythonLevelsMax bounds the nesting of a text in Python's notation.
const pythonLevelsMax = 100

// python turns the repr of a Python value into JSON, in one pass.
type python struct {
	in  []byte // what was not read yet
	out []byte
}

// fromPython reads dicts, lists, tuples, strings, numbers and None, and objects in the
// usual notation Name(member=value), which become dicts. It reports whether the text is
// nothing else.
func fromPython(text []byte) (value, bool) {
	p := python{in: text, out: make([]byte, 0, len(text))}
	if !p.value(0) || p.peek() != 0 || !jsonscan.Valid(p.out) {
		return nil, false
	}

	return p.out, true
}

// peek returns the next byte that is not a blank; 0 at the end.
func (p *python) peek() byte {
	p.in = bytes.TrimLeft(p.in, " \n")
	if len(p.in) == 0 {
		return 0
	}

	return p.in[0]
}

// next reads so many bytes.
func (p *python) next(n int) (read []byte) {
	read, p.in = p.in[:n], p.in[n:]
	return read
}

// value reads one value.
func (p *python) value(level int) bool {
	if level > pythonLevelsMax {
		return false
	}

	switch c := p.peek(); {
	case c == '{':
		return p.list('}', '{', level, p.dictItem)
	case c == '[':
		return p.list(']', '[', level, p.value)
	case c == '(':
		return p.list(')', '[', level, p.value)
	case c == '\'' || c == '"':
		return p.string()
	// An object in angle brackets, such as one at 0x...
	case c == '<':
		end := bytes.IndexByte(p.in, '>')
		p.out = jsonscan.AppendString(p.out, string(p.next(end+1)))
		return end >= 0
	case c == '-' || c >= '0' && c <= '9':
		after := bytes.TrimLeft(p.in, "0123456789.eE+-")
		p.out = append(p.out, p.next(len(p.in)-len(after))...)
		return true
	}

	return p.word(level)
}

// list reads what is between brackets, and writes it between open and its counterpart.
func (p *python) list(end, open byte, level int, item func(int) bool) bool {
	p.next(1)
	p.out = append(p.out, open)
	for first := true; p.peek() != end; first = false {
		if !first {
			p.out = append(p.out, ',')
		}
		if !item(level + 1) {
			return false
		}
		if c := p.peek(); c == ',' {
			p.next(1)
		} else if c != end {
			return false
		}
	}
	p.next(1)
	// In ASCII ] and } come two after [ and {.
	p.out = append(p.out, open+2)

	return true
}

// dictItem reads key: value. A key that is not a string is not read.
func (p *python) dictItem(level int) bool {
	if c := p.peek(); c != '\'' && c != '"' || !p.string() {
		return false
	}
	return p.pair(':', level)
}

// member reads name=value of an object.
func (p *python) member(level int) bool {
	p.peek()
	p.out = jsonscan.AppendString(p.out, p.name())
	return p.pair('=', level)
}

// pair reads what is between a name and its value, and the value.
func (p *python) pair(sign byte, level int) bool {
	if p.peek() != sign {
		return false
	}
	p.next(1)
	p.out = append(p.out, ':')

	return p.value(level)
}

// name reads an identifier, perhaps with dots.
func (p *python) name() string {
	end := bytes.IndexFunc(p.in, func(r rune) bool {
		return r != '.' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	if end < 0 {
		end = len(p.in)
	}

	return string(p.next(end))
}

// word reads None, True, False, or an object.
func (p *python) word(level int) bool {
	switch name := p.name(); {
	case name == "":
		return false
	case name == "None":
		p.out = append(p.out, "null"...)
	case name == "True":
		p.out = append(p.out, "true"...)
	case name == "False":
		p.out = append(p.out, "false"...)
	case len(p.in) > 0 && p.in[0] == '(':
		return p.list(')', '{', level, p.member)
	default:
		p.out = jsonscan.AppendString(p.out, name)
	}

	return true
}

// string reads a string in either kind of quotes.
func (p *python) string() bool {
	quote := p.in[0]
	end := 1
	for end < len(p.in) && p.in[end] != quote {
		if p.in[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(p.in) {
		return false
	}

	var text []byte
	rest := string(p.next(end + 1)[1:end])
	for i := strings.IndexByte(rest, '\\'); i >= 0; i = strings.IndexByte(rest, '\\') {
		text, rest = append(text, rest[:i]...), rest[i:]
		r, _, after, err := strconv.UnquoteChar(rest, quote)
		if err != nil {
			// The backslash of any other escape goes.
			text, rest = append(text, rest[1]), rest[2:]
			continue
		}
		text, rest = utf8.AppendRune(text, r), after
	}
	p.out = jsonscan.AppendString(p.out, string(append(text, rest...)))

	return true
}
