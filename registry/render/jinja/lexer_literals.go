package jinja

import (
	"strconv"
	"strings"
	"unicode"
)

// number reads an int or a float, with _ between digits.
func (l *lexer) number(rest string) {
	kind, end := decimalEnd(rest)
	l.add(kind, strings.ReplaceAll(rest[:end], "_", ""))
	l.at += end
}

// decimalEnd returns the kind and the length of a number.
func decimalEnd(s string) (kind string, end int) {
	kind, end = "int", digitsEnd(s, 0)
	if end+1 < len(s) && s[end] == '.' && isDigit(s[end+1]) {
		kind, end = "float", digitsEnd(s, end+1)
	}

	// An e without digits after it is not part of the number.
	if end < len(s) && (s[end] == 'e' || s[end] == 'E') {
		first := end + 1
		if first < len(s) && (s[first] == '+' || s[first] == '-') {
			first++
		}
		if last := digitsEnd(s, first); last > first {
			kind, end = "float", last
		}
	}

	return kind, end
}

func digitsEnd(s string, at int) int {
	for at < len(s) && (isDigit(s[at]) || s[at] == '_' && at > 0) {
		at++
	}

	return at
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// quoted reads a string, whose escapes are Python's.
func (l *lexer) quoted(rest string) {
	var b strings.Builder
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == rest[0]:
			l.add("string", b.String())
			l.at += i + 1
			return
		case c == '\\' && i+1 < len(rest):
			i++
			i += unescape(&b, rest[i:])
		default:
			b.WriteByte(c)
		}
	}

	failAt(l.at, "has a string that is not closed")
}

// unescape writes the character that an escape means. s begins after the backslash. It
// returns how many bytes after the first it took.
func unescape(b *strings.Builder, s string) int {
	if i := strings.IndexByte("\\'\"abfnrtv", s[0]); i >= 0 {
		b.WriteByte("\\'\"\a\b\f\n\r\t\v"[i])
		return 0
	}

	if digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[0]]; digits > 0 && len(s) > digits {
		n, err := strconv.ParseUint(s[1:1+digits], 16, 32)
		if err == nil && n <= unicode.MaxRune {
			b.WriteRune(rune(n))
			return digits
		}
	}

	// Unknown escapes stay as they are; an escaped line break joins the lines.
	if s[0] != '\n' {
		b.WriteByte('\\')
		b.WriteByte(s[0])
	}

	return 0
}
