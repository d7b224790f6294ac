package wire

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// quickDepthMax is how deep quick follows; deeper nesting is rare.
const quickDepthMax = 32

// quick is judge in one pass, where that is easy: most bodies are objects that are in order, with a few members. It accepts nothing that
// judge would not; ok is false where it cannot tell, and then judge looks. It takes a tenth of the time that encoding/json needs to
// say that a body of 4 KB is valid.
func (o Object) quick(body []byte) (_ Object, ok bool) {
	if !utf8.Valid(body) {
		return nil, false
	}
	room := o[:cap(o)]
	o = o[:0]
	i := SkipSpace(body, 0)
	if i == len(body) || body[i] != '{' {
		return nil, false
	}
	if i = SkipSpace(body, i+1); i < len(body) && body[i] == '}' {
		return slices.Grow(o, 1), SkipSpace(body, i+1) == len(body)
	}
	for i < len(body) && body[i] == '"' && len(o) < listedMax-1 {
		m := Member{start: i}
		var plain bool
		if i, plain = quickString(body, i+1); i < 0 || !plain {
			return nil, false
		}
		quoted := body[m.start+1 : i-1]
		if n := len(o); n < len(room) && room[n].Name == string(quoted) {
			m.Name = room[n].Name
		} else {
			m.Name = string(quoted)
		}
		if o.Has(m.Name) {
			return nil, false
		}
		if i = SkipSpace(body, i); i == len(body) || body[i] != ':' {
			return nil, false
		}
		value := SkipSpace(body, i+1)
		if i = quickValue(body, value, 1); i < 0 {
			return nil, false
		}
		m.Value, m.end = body[value:i:i], i
		if o == nil {
			o = make(Object, 0, 8)
		}
		o = append(o, m)
		if i = SkipSpace(body, i); i == len(body) {
			return nil, false
		}
		if body[i] == '}' {
			return o, SkipSpace(body, i+1) == len(body)
		}
		if body[i] != ',' {
			return nil, false
		}
		i = SkipSpace(body, i+1)
	}
	return nil, false
}

// quickValue returns the index behind the JSON value that begins at b[i], at a depth of so many brackets; -1 if there is none, or one
// that is nested too deep.
func quickValue(b []byte, i, depth int) int {
	if i >= len(b) {
		return -1
	}
	switch c := b[i]; {
	case c == '"':
		i, _ = quickString(b, i+1)
		return i
	case c == '{' || c == '[':
		return quickNested(b, i, depth+1)
	case c == '-' || c >= '0' && c <= '9':
		return quickNumber(b, i)
	case c == 't':
		return quickWord(b, i, "true")
	case c == 'f':
		return quickWord(b, i, "false")
	case c == 'n':
		return quickWord(b, i, "null")
	}
	return -1
}

func quickWord(b []byte, i int, word string) int {
	if end := i + len(word); end <= len(b) && string(b[i:end]) == word {
		return end
	}
	return -1
}

// quickNested is quickValue for an object or an array.
func quickNested(b []byte, i, depth int) int {
	if depth > quickDepthMax {
		return -1
	}
	object := b[i] == '{'
	end := b[i] + 2 // ] and } come two behind [ and {
	if i = SkipSpace(b, i+1); i < len(b) && b[i] == end {
		return i + 1
	}
	for i < len(b) {
		if object {
			if b[i] != '"' {
				return -1
			}
			if i, _ = quickString(b, i+1); i < 0 {
				return -1
			}
			if i = SkipSpace(b, i); i == len(b) || b[i] != ':' {
				return -1
			}
			i = SkipSpace(b, i+1)
		}
		if i = quickValue(b, i, depth); i < 0 {
			return -1
		}
		i = SkipSpace(b, i)
		switch {
		case i == len(b):
			return -1
		case b[i] == end:
			return i + 1
		case b[i] != ',':
			return -1
		}
		i = SkipSpace(b, i+1)
	}
	return -1
}

// quickNumber is quickValue for a number.
func quickNumber(b []byte, i int) int {
	digits := func() bool {
		begin := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > begin
	}
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		if i++; !digits() {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return -1
		}
	}
	return i
}

// quickString returns the index behind the string whose text begins at b[i], behind its quote; -1 if it is none. It is plain without
// escapes.
func quickString(b []byte, i int) (end int, plain bool) {
	plain = true
	for {
		if i = leap(b, i); i >= len(b) {
			return -1, false
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, plain
		case c == '\\':
			if i = quickEscape(b, i+1); i < 0 {
				return -1, false
			}
			plain = false
		case c < ' ':
			return -1, false
		default:
			i++
		}
	}
}

// leap skips bytes that stand for themselves in a string, eight at a time: up to where a quote, a backslash or a control character is
// among the next eight.
func leap(b []byte, i int) int {
	const each, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, backslash := w^each*'"', w^each*'\\'
		// The lowest bit that is set tells the first byte that is 0 of the first two, or below a blank.
		if found := ((quote-each)&^quote | (backslash-each)&^backslash | (w-each*' ')&^w) & high; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	return i
}

// quickEscape returns the index behind an escape whose backslash came before b[i]; -1 if it is none.
func quickEscape(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		if i+5 > len(b) {
			return -1
		}
		for _, c := range b[i+1 : i+5] {
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return -1
			}
		}
		return i + 5
	}
	return -1
}
