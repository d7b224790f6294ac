package jsonscan

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// levelsMax is how deep Valid follows brackets, as encoding/json does.
const levelsMax = 10000

// Valid reports whether b is one JSON value, as json.Valid does, in a tenth of its time.
func Valid(b []byte) bool {
	i := CheckValue(b, SkipSpace(b, 0), levelsMax)
	return i >= 0 && SkipSpace(b, i) == len(b)
}

// CheckValue returns the index after the value that begins at b[i], or -1 if this is not
// JSON. Brackets may nest at most levels deep. It does not check that strings are valid
// UTF-8.
func CheckValue(b []byte, i, levels int) int {
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
			c.At = CheckValue(b, c.At, levels-1)
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

// checkWord is CheckValue for true, false and null.
func checkWord(b []byte, i int, word string) int {
	if bytes.HasPrefix(b[i:], []byte(word)) {
		return i + len(word)
	}
	return -1
}

// checkNumber is CheckValue for a number.
func checkNumber(b []byte, i int) int {
	digits := func() bool {
		begin := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > begin
	}

	// The integer: a leading zero stands alone.
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return -1
	}

	// The fraction.
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return -1
		}
	}

	// The exponent.
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return -1
		}
	}

	return i
}

// checkString is CheckValue for a string; -1 also if b[i] is not a quote.
func checkString(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}

	for i = skipPlain(b, i+1); i < len(b); i = skipPlain(b, i) {
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return -1
		case c != '\\':
			i++
		default:
			i = checkEscape(b, i+1)
			if i < 0 {
				return -1
			}
		}
	}

	return -1
}

// checkEscape returns the index after the escape whose backslash is right before b[i],
// or -1 if it is not valid.
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

// skipPlain skips bytes of a string that stand for themselves. It stops at a quote, a
// backslash or a control character, or where fewer than eight bytes are left.
func skipPlain(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		found := stops(binary.LittleEndian.Uint64(b[i:])) & highBits
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}

	return i
}

// Eight bytes are judged in one step, as one word, with a high bit for each byte's
// answer.
const (
	everyByte = 0x0101010101010101
	highBits  = 0x80 * everyByte
)

// stops sets the high bit of each byte that is a quote, a backslash or a control
// character. It may also set bits of bytes above the first one, and lower bits.
func stops(word uint64) uint64 {
	// With this bit flipped, a quote is a blank, and the bytes below a quote that may stand
	// for themselves are above a blank. Subtracting from each byte borrows into its high
	// bit, and may borrow from the bytes above.
	quote, backslash := word^everyByte*('"'^' '), word^everyByte*'\\'
	return (quote-everyByte*(' '+1))&^quote | (backslash-everyByte)&^backslash
}

// Magnitude returns the smallest n for which a JSON number is closer to zero than 10^n. Of
// zero it is math.MinInt. It costs a look at each byte: strconv takes some 20 us for
// a number like 5e-324, whose 6 bytes a caller may repeat.
func Magnitude[T ~string | ~[]byte](number T) int {
	i, magnitude, significant, behind := 0, 0, false, false
	for ; i < len(number) && number[i] != 'e' && number[i] != 'E'; i++ {
		switch c := number[i]; {
		case c == '.':
			behind = true
		// It is a sign.
		case c < '0' || c > '9':
		case !significant && c == '0':
			if behind {
				magnitude--
			}
		default:
			significant = true
			if !behind {
				magnitude++
			}
		}
	}
	if !significant {
		return math.MinInt
	}

	return magnitude + exponent(string(number[i:]))
}

// exponent returns the exponent of a number, which begins with an e, or 0. Of one that no number
// of a body makes up for, it returns so large a one.
func exponent(text string) int {
	if len(text) < 2 {
		return 0
	}
	n, err := strconv.Atoi(text[1:])
	if err != nil || n > math.MaxInt32 || n < -math.MaxInt32 {
		n = math.MaxInt32
		if text[1] == '-' {
			n = -n
		}
	}

	return n
}

// magnitudeLeast is that of a double with all of its digits.
const magnitudeLeast = -306

// Count returns a JSON number that is whole, not negative and at most 2^53. ok is false for any
// other.
func Count[T ~string | ~[]byte](number T) (n int64, ok bool) {
	const most, digits = 1 << 53, 16
	if len(number) <= digits {
		if n, err := strconv.ParseInt(string(number), 10, 64); err == nil {
			return n, 0 <= n && n <= most
		}
	}
	x, err := Float(string(number))

	return int64(x), err == nil && 0 <= x && x <= most && x == math.Trunc(x)
}

// Float is strconv.ParseFloat of a JSON number. One that is closer to zero than 1e-306 is zero, because
// strconv would take long for it.
func Float(number string) (float64, error) {
	if Magnitude(number) < magnitudeLeast {
		return 0, nil
	}

	return strconv.ParseFloat(number, 64)
}

// Unquote returns the text of a valid JSON string, as encoding/json reads it. quoted must
// not have white space around it.
func Unquote(quoted json.RawMessage) string { return string(UnquoteBytes(quoted)) }

// UnquoteBytes is Unquote without the copy: the text aliases quoted unless it has
// escapes.
func UnquoteBytes(quoted []byte) (text []byte) {
	inner := quoted[1 : len(quoted)-1]
	for {
		plain, char, rest := CutEscape(inner)
		switch {
		case char >= 0:
			// There is an escape: the text has to be copied.
		case text == nil:
			return plain
		default:
			return append(text, plain...)
		}

		text = slices.Grow(text, len(inner))
		text = utf8.AppendRune(append(text, plain...), char)
		inner = rest
	}
}

// escaped maps the letter of an escape to its character. Zero: the letter is u, or stands
// for itself.
var escaped = [256]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// CutEscape splits the inside of a valid JSON string at its first escape. It returns the text before
// it, the character that it stands for (-1 if there is no escape), and the text after it.
func CutEscape(inner []byte) (plain []byte, char rune, rest []byte) {
	// A leap, because a prompt has a few escapes in every line, and long runs between
	// them.
	leap := bytes.IndexByte(inner, '\\')
	if leap < 0 {
		return inner, -1, nil
	}

	plain, rest = inner[:leap], inner[leap+2:]
	switch c := inner[leap+1]; {
	case c == 'u':
		char, rest = hexRune(rest), rest[4:]
	case escaped[c] != 0:
		return plain, rune(escaped[c]), rest
	default:
		return plain, rune(c), rest
	}

	// Characters beyond U+FFFF are written as two escapes. Half a pair is not a
	// character: it becomes U+FFFD, and the escape after it is read on its own.
	if utf16.IsSurrogate(char) {
		pair := unicode.ReplacementChar
		if len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
			pair = utf16.DecodeRune(char, hexRune(rest[2:]))
		}
		char = pair
		if char != unicode.ReplacementChar {
			rest = rest[6:]
		}
	}

	return plain, char, rest
}

// hexRune reads four hexadecimal digits.
func hexRune(digits []byte) rune {
	r, _ := strconv.ParseUint(string(digits[:4]), 16, 16)
	return rune(r)
}

// Position returns the line and the column, in characters, of a byte of a text, both from 1.
func Position(text []byte, at int) (line, column int) {
	before := text[:at]
	inLine := before[bytes.LastIndexByte(before, '\n')+1:]

	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(inLine) + 1
}
