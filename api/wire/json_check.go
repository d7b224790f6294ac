package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// nestedMax is how deep IsJSON follows, as encoding/json does.
const nestedMax = 10000

// IsJSON reports whether b is one JSON value, as json.Valid does, in a tenth of its time.
func IsJSON(b []byte) bool {
	i := checkValue(b, SkipSpace(b, 0), nestedMax)
	return i >= 0 && SkipSpace(b, i) == len(b)
}

// checkValue returns the index behind the JSON value that begins at b[i], with at most so many levels of brackets; -1 if
// there is none. Whether strings are valid UTF-8 is not looked at.
func checkValue(b []byte, i, levels int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return checkString(b, i)
	case '{', '[':
		if levels == 0 {
			return -1
		}
		c := Enter(b, i)
		for c.Next() {
			c.At = checkValue(b, c.At, levels-1)
		}
		return c.At
	case 't':
		return checkWord(b, i, "true")
	case 'f':
		return checkWord(b, i, "false")
	case 'n':
		return checkWord(b, i, "null")
	}
	return checkNumber(b, i)
}

func checkWord(b []byte, i int, word string) int {
	if bytes.HasPrefix(b[i:], []byte(word)) {
		return i + len(word)
	}
	return -1
}

// checkNumber is checkValue for a number.
func checkNumber(b []byte, i int) int {
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

// checkString is checkValue for a string; -1 if b[i] is no quote, or there is none.
func checkString(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	for i = leap(b, i+1); i < len(b); i = leap(b, i) {
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return -1
		case c != '\\':
			i++
		default:
			if i = checkEscape(b, i+1); i < 0 {
				return -1
			}
		}
	}
	return -1
}

// checkEscape returns the index behind the escape whose backslash is in front of b[i]; -1 if there is none.
func checkEscape(b []byte, i int) int {
	if i == len(b) {
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
