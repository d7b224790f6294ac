package otel

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"promptspool/api/wire/jsonscan"
)

// pythonLevelsMax bounds the nesting of a text in Python's notation.
const pythonLevelsMax = 100

// python turns the repr of a Python value into JSON, in one pass.
type python struct {
	in  []byte
	at  int
	out []byte
}

// fromPython reads dicts, lists, tuples, strings, numbers and None, and objects in the
// usual notation Name(member=value), which become dicts. It reports whether the text is
// nothing else.
func fromPython(text []byte) (value, bool) {
	p := python{in: text, out: make([]byte, 0, len(text))}
	if !p.value(0) {
		return nil, false
	}
	p.space()
	if p.at != len(text) || !jsonscan.Valid(p.out) {
		return nil, false
	}

	return p.out, true
}

// space skips blanks.
func (p *python) space() {
	for p.at < len(p.in) && (p.in[p.at] == ' ' || p.in[p.at] == '\n') {
		p.at++
	}
}

// peek returns the next byte that is not a blank; 0 at the end.
func (p *python) peek() byte {
	p.space()
	if p.at == len(p.in) {
		return 0
	}

	return p.in[p.at]
}

// value reads one value.
func (p *python) value(level int) bool {
	if level > pythonLevelsMax {
		return false
	}

	switch c := p.peek(); {
	case c == '{':
		// The first item tells a dict from a set, so only it is ever read twice.
		at, written := p.at, len(p.out)
		if p.list('}', '{', level, p.dictItem) {
			return true
		}
		p.at, p.out = at, p.out[:written]
		return p.list('}', '[', level, p.value)
	case c == '[':
		return p.list(']', '[', level, p.value)
	case c == '(':
		return p.list(')', '[', level, p.value)
	case c == '\'' || c == '"':
		return p.string()
	case c == '<':
		return p.opaque()
	case c == '-' || c >= '0' && c <= '9':
		end := p.at + 1
		for end < len(p.in) && strings.IndexByte("0123456789.eE+-", p.in[end]) >= 0 {
			end++
		}
		p.out = append(p.out, p.in[p.at:end]...)
		p.at = end
		return true
	}

	return p.word(level)
}

// list reads what is between brackets, and writes it between open and its counterpart.
func (p *python) list(end, open byte, level int, item func(int) bool) bool {
	p.at++
	p.out = append(p.out, open)
	for first := true; ; first = false {
		if p.peek() == end {
			break
		}
		if !first {
			p.out = append(p.out, ',')
		}
		if !item(level + 1) {
			return false
		}
		if c := p.peek(); c == ',' {
			p.at++
		} else if c != end {
			return false
		}
	}
	p.at++
	p.out = append(p.out, open+2) // in ASCII ] and } come two after [ and {

	return true
}

// dictItem reads key: value. A key that is not a string is not read.
func (p *python) dictItem(level int) bool {
	if c := p.peek(); c != '\'' && c != '"' || !p.string() || p.peek() != ':' {
		return false
	}
	p.at++
	p.out = append(p.out, ':')

	return p.value(level)
}

// member reads name=value of an object.
func (p *python) member(level int) bool {
	p.space()
	name := p.name()
	if name == "" || p.peek() != '=' {
		return false
	}
	p.at++
	p.out = append(jsonscan.AppendString(p.out, name), ':')

	return p.value(level)
}

// name reads an identifier, perhaps with dots.
func (p *python) name() string {
	start := p.at
	for p.at < len(p.in) {
		c := p.in[p.at]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= utf8.RuneSelf
		if !letter && (p.at == start || c != '.' && (c < '0' || c > '9')) {
			break
		}
		p.at++
	}

	return string(p.in[start:p.at])
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
	case p.at < len(p.in) && p.in[p.at] == '(':
		return p.list(')', '{', level, p.member)
	default:
		p.out = jsonscan.AppendString(p.out, name)
	}

	return true
}

// opaque reads <an object at 0x...> as a text.
func (p *python) opaque() bool {
	length := bytes.IndexByte(p.in[p.at:], '>')
	if length < 0 {
		return false
	}
	p.out = jsonscan.AppendString(p.out, string(p.in[p.at:p.at+length+1]))
	p.at += length + 1

	return true
}

// string reads a string in either kind of quotes.
func (p *python) string() bool {
	quote := p.in[p.at]
	var text []byte
	for i := p.at + 1; i < len(p.in); i++ {
		switch c := p.in[i]; {
		case c == quote:
			p.out = jsonscan.AppendString(p.out, string(text))
			p.at = i + 1
			return true
		case c == '\\' && i+1 < len(p.in):
			i++
			text = p.escape(text, &i)
		default:
			text = append(text, c)
		}
	}

	return false
}

// hexDigits is how many digits follow the letter of an escape.
var hexDigits = map[byte]int{'x': 2, 'u': 4, 'U': 8}

// escape appends what the escape at in[*i] stands for, and moves *i to its last byte.
func (p *python) escape(text []byte, i *int) []byte {
	c := p.in[*i]
	if at := strings.IndexByte("ntr0", c); at >= 0 {
		return append(text, "\n\t\r\x00"[at])
	}

	digits := hexDigits[c]
	if digits == 0 || *i+digits >= len(p.in) {
		return append(text, c)
	}
	r := rune(0)
	for _, d := range p.in[*i+1 : *i+1+digits] {
		n := strings.IndexByte("0123456789abcdef", d|0x20)
		if n < 0 {
			return append(text, c)
		}
		r = r<<4 | rune(n)
	}
	*i += digits

	return utf8.AppendRune(text, r)
}
