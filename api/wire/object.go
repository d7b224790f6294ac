package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Member is one member of a JSON object. Value aliases the object's bytes.
type Member struct {
	Name  string // unescaped
	Value json.RawMessage
	start int // where the member's name begins
	end   int // just behind its value
}

// Object is the members of a JSON object in the order they came.
type Object []Member

// ParseObject checks that body is one strict JSON object (RFC 8259: valid UTF-8, no trailing bytes, nested
// at most JSONDepthMax deep, no member twice at the top) and lists its members. They alias body. Its errors are 400
// or, for a repeated member, 422.
func ParseObject(body []byte) (Object, error) { return Object(nil).Parse(body) }

// Parse is ParseObject with the members in the place of o's, which are gone. A name that stood there before, and is the same again,
// is not copied anew.
func (o Object) Parse(body []byte) (Object, error) {
	if object, ok := o.quick(body); ok {
		return object, nil
	}
	return o.judge(body)
}

// judge is Parse, with a reason where there is no object.
func (o Object) judge(body []byte) (Object, error) {
	if !utf8.Valid(body) {
		return nil, Errorf(CodeBadJSON, "The body is not valid UTF-8. Send JSON in UTF-8.")
	}
	if d := depth(body); d > JSONDepthMax {
		return nil, Errorf(CodeBadJSON, "The body is nested %d deep or more; at most %d is accepted.", d, JSONDepthMax)
	}
	if !json.Valid(body) {
		return nil, Errorf(CodeBadJSON, "The body is not JSON. Send one JSON object with Content-Type: application/json.")
	}
	if c := bytes.TrimLeft(body, " \t\r\n"); c[0] != '{' {
		return nil, Errorf(CodeBadJSON, "The body is JSON, but not an object. Send one JSON object.")
	}
	object, fault := list(o[:0], body)
	if fault != nil {
		return nil, Invalid(*fault)
	}
	return object, nil
}

// listedMax is up to how many members are compared one by one.
const listedMax = 24

// list appends the members of a JSON object that json.Valid has accepted to object, which is empty, or says what is wrong with one of
// them.
func list(object Object, body []byte) (Object, *FieldError) {
	object = slices.Grow(object, 8)
	var seen map[string]struct{} // once there are so many that to look at each would take long
	for m := range members(body) {
		if len(object) == ObjectMembersMax {
			return nil, &FieldError{m.Name, fmt.Sprintf("is one field too many; at most %d are accepted", ObjectMembersMax)}
		}
		twice := false
		if seen != nil {
			_, twice = seen[m.Name]
			seen[m.Name] = struct{}{}
		} else {
			twice = object.Has(m.Name)
		}
		if twice {
			return nil, &FieldError{m.Name, "is given twice"}
		}
		if object = append(object, m); seen == nil && len(object) == listedMax {
			seen = make(map[string]struct{}, 2*listedMax)
			for _, o := range object {
				seen[o.Name] = struct{}{}
			}
		}
	}
	return object, nil
}

// ParseOptional is Parse for a body that may be left out: an empty one, a blank one and null are no object and no
// error.
func (o Object) ParseOptional(body []byte) (Object, error) {
	if b := bytes.TrimSpace(body); len(b) == 0 || string(b) == "null" {
		return nil, nil
	}
	return o.Parse(body)
}

// Get returns the value of the member called name, and whether it is there and not null: null means absent.
func (o Object) Get(name string) (json.RawMessage, bool) {
	for i := range o {
		if o[i].Name == name {
			return o[i].Value, string(o[i].Value) != "null"
		}
	}
	return nil, false
}

// Has says whether the member called name is there, null or not.
func (o Object) Has(name string) bool {
	for i := range o {
		if o[i].Name == name {
			return true
		}
	}
	return false
}

// depth is the deepest nesting of brackets outside strings; it stops counting just above JSONDepthMax. body may be
// anything.
func depth(body []byte) int {
	deepest, now := 0, 0
	for i := 0; i < len(body) && deepest <= JSONDepthMax; i++ {
		switch body[i] {
		case '"':
			i = SkipString(body, i) - 1
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
	}
	return deepest
}

// members walks the members of a JSON object that json.Valid has accepted.
func members(body []byte) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		for name, m := range rawMembers(body) {
			m.Name = unquote(name)
			if !yield(m) {
				return
			}
		}
	}
}

// rawMembers is members with the names as they are written, in quotes, and not in the Member.
func rawMembers(body []byte) iter.Seq2[[]byte, Member] {
	return func(yield func([]byte, Member) bool) {
		i := SkipSpace(body, 0) + 1
		for {
			i = SkipSpace(body, i)
			if body[i] == '}' {
				return
			}
			start := i
			i = SkipValue(body, i)
			name := body[start:i]
			i = SkipSpace(body, i) + 1 // the colon
			i = SkipSpace(body, i)
			value := i
			i = SkipValue(body, i)
			if !yield(name, Member{Value: body[value:i:i], start: start, end: i}) {
				return
			}
			if i = SkipSpace(body, i); body[i] == ',' {
				i++
			}
		}
	}
}

// elements walks the elements of a JSON array that json.Valid has accepted.
func elements(array []byte) iter.Seq2[int, json.RawMessage] {
	return func(yield func(int, json.RawMessage) bool) {
		i := SkipSpace(array, 0) + 1
		for n := 0; ; n++ {
			i = SkipSpace(array, i)
			if array[i] == ']' {
				return
			}
			start := i
			i = SkipValue(array, i)
			if !yield(n, array[start:i:i]) {
				return
			}
			if i = SkipSpace(array, i); array[i] == ',' {
				i++
			}
		}
	}
}

// unquote returns the text of a valid JSON string.
func unquote(quoted []byte) string {
	if inner := quoted[1 : len(quoted)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	return unescape(quoted[1 : len(quoted)-1])
}

// escaped is what stands for a byte behind a backslash, beside itself and u.
var escaped = [256]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape is encoding/json's reading of what stands between the quotes of a valid string. It leaps from escape to escape: a text
// of a prompt has some in every line.
func unescape(inner []byte) string {
	var b strings.Builder
	b.Grow(len(inner))
	for {
		leap := bytes.IndexByte(inner, '\\')
		if leap < 0 {
			b.Write(inner)
			return b.String()
		}
		b.Write(inner[:leap])
		c := inner[leap+1]
		if inner = inner[leap+2:]; c != 'u' {
			if escaped[c] != 0 {
				c = escaped[c]
			}
			b.WriteByte(c)
			continue
		}
		r := hexRune(inner)
		inner = inner[4:]
		if utf16.IsSurrogate(r) {
			pair := unicode.ReplacementChar // as of one without the other
			if len(inner) >= 6 && inner[0] == '\\' && inner[1] == 'u' {
				pair = utf16.DecodeRune(r, hexRune(inner[2:]))
			}
			if r = pair; r != unicode.ReplacementChar {
				inner = inner[6:]
			}
		}
		b.WriteRune(r)
	}
}

// hexRune reads four hexadecimal digits.
func hexRune(digits []byte) (r rune) {
	for _, c := range digits[:4] {
		switch {
		case c <= '9':
			c -= '0'
		default:
			c = c&^0x20 - 'A' + 10
		}
		r = r<<4 | rune(c)
	}
	return r
}

// plain are the bytes that stand for themselves in a JSON string.
var plain = func() (table [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

// AppendString appends s as a JSON string, as encoding/json writes it, but with < > & as they are. What is not valid UTF-8
// becomes U+FFFD.
func AppendString(b []byte, s string) []byte {
	b = append(slices.Grow(b, len(s)+len(s)/16+2), '"')
	return append(AppendEscaped(b, s), '"')
}

// AppendEscaped appends what AppendString writes between the quotes.
func AppendEscaped(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	done := 0 // s up to here is written
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if (r != utf8.RuneError || size > 1) && r != '\u2028' && r != '\u2029' {
				i += size
				continue
			}
			b = append(append(b, s[done:i]...), '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
			i += size
			done = i
			continue
		}
		b = append(append(b, s[done:i]...), '\\')
		switch c {
		case '"', '\\':
			b = append(b, c)
		case '\b':
			b = append(b, 'b')
		case '\f':
			b = append(b, 'f')
		case '\n':
			b = append(b, 'n')
		case '\r':
			b = append(b, 'r')
		case '\t':
			b = append(b, 't')
		default:
			b = append(b, 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		done = i
	}
	return append(b, s[done:]...)
}
