package jinja

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"promptspool/registry/render/language"
)

// token is one token of a text. Its kind is data, begin and end of an output ({{ and }}), begin and end of a tag ({% and
// %}), name, string, int, float or, for an operator, the operator itself; eof is the last.
type token struct {
	kind string
	text string
	at   int // the byte where it begins, with line breaks as \n
}

// operators, longest first.
var operators = strings.Fields("** // == != >= <= + - * / % ~ ( ) [ ] { } = < > . , : | ;")

// lexer cuts a text into tokens.
type lexer struct {
	source string
	at     int
	tokens []token
	trim   bool // the tag before ended with -
}

func lex(source string) []token {
	l := &lexer{source: strings.TrimSuffix(language.UnixLines(source), "\n")}
	for l.at < len(l.source) {
		rest := l.source[l.at:]
		start := findTag(rest)
		if start < 0 {
			l.data(rest, false)
			break
		}
		strip := strings.HasPrefix(rest[start+2:], "-")
		l.data(rest[:start], strip)
		opener := rest[start : start+2]
		began := l.at
		l.at += 2
		if strip || strings.HasPrefix(l.source[l.at:], "+") {
			l.at++
		}
		switch opener {
		case "{#":
			l.comment(began)
		case "{{":
			l.expression(began, "{{", "}}")
		default:
			if !l.raw(began) {
				l.expression(began, "{%", "%}")
			}
		}
	}
	return append(l.tokens, token{"eof", "", len(l.source)})
}

// findTag is where the next {{, {% or {# stands; -1 if nowhere.
func findTag(s string) int {
	for i := 0; ; i += 2 {
		n := strings.IndexByte(s[i:], '{')
		if n < 0 || i+n+1 >= len(s) {
			return -1
		}
		if i += n; strings.IndexByte("{%#", s[i+1]) >= 0 {
			return i
		}
		i--
	}
}

// add adds the token that begins at the byte at hand.
func (l *lexer) add(kind, text string) {
	l.tokens = append(l.tokens, token{kind, text, l.at})
}

// data adds a text outside of tags.
func (l *lexer) data(text string, strip bool) {
	length := len(text)
	if l.trim {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		l.trim = false
	}
	if strip {
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	}
	if text != "" {
		l.add("data", text)
	}
	l.at += length
}

// closeTag moves behind the end of a tag that was found at l.at+n.
func (l *lexer) closeTag(n int, closer string) {
	l.trim = n > 0 && l.source[l.at+n-1] == '-'
	l.at += n + len(closer)
}

// comment moves behind a comment, which began at a byte.
func (l *lexer) comment(began int) {
	n := strings.Index(l.source[l.at:], "#}")
	if n < 0 {
		failAt(began, "has a comment that is not closed with #}")
	}
	l.closeTag(n, "#}")
}

// raw reads {% raw %} up to {% endraw %}, if there is one.
func (l *lexer) raw(began int) bool {
	head := strings.TrimLeftFunc(l.source[l.at:], unicode.IsSpace)
	inner, ok := strings.CutPrefix(head, "raw")
	if !ok {
		return false
	}
	inner = strings.TrimLeftFunc(inner, unicode.IsSpace)
	sign := strings.HasPrefix(inner, "-") || strings.HasPrefix(inner, "+")
	trimFirst := strings.HasPrefix(inner, "-")
	if sign {
		inner = inner[1:]
	}
	body, ok := strings.CutPrefix(inner, "%}")
	if !ok {
		return false
	}
	for at := 0; ; {
		n := strings.Index(body[at:], "{%")
		if n < 0 {
			failAt(began, "has a raw block that is not closed with {%% endraw %%}")
		}
		at += n
		end := strings.TrimPrefix(body[at+2:], "+")
		strip := strings.HasPrefix(end, "-")
		end = strings.TrimLeftFunc(strings.TrimPrefix(end, "-"), unicode.IsSpace)
		if end, ok = strings.CutPrefix(end, "endraw"); ok {
			end = strings.TrimLeftFunc(end, unicode.IsSpace)
			trim := strings.HasPrefix(end, "-")
			if rest, ok := strings.CutPrefix(strings.TrimLeft(end, "-+"), "%}"); ok {
				text := body[:at]
				behind := len(l.source) - len(rest)
				l.at, l.trim = behind, trim
				if trimFirst {
					text = strings.TrimLeftFunc(text, unicode.IsSpace)
				}
				if strip {
					text = strings.TrimRightFunc(text, unicode.IsSpace)
				}
				if text != "" {
					l.add("data", text)
				}
				return true
			}
		}
		at += 2
	}
}

// expression cuts what stands between opener, which began at a byte, and closer.
func (l *lexer) expression(began int, opener, closer string) {
	l.tokens = append(l.tokens, token{opener, "", began})
	brackets := 0
	for {
		l.space()
		rest := l.source[l.at:]
		if rest == "" {
			failAt(began, "has a %s that is not closed with %s", opener, closer)
		}
		if brackets == 0 {
			sign := 0
			if rest[0] == '-' || rest[0] == '+' {
				sign = 1
			}
			if strings.HasPrefix(rest[sign:], closer) {
				l.add(closer, "")
				l.closeTag(sign, closer)
				return
			}
		}
		l.token(rest, &brackets)
	}
}

func (l *lexer) space() {
	for l.at < len(l.source) {
		r, size := utf8.DecodeRuneInString(l.source[l.at:])
		if !unicode.IsSpace(r) {
			return
		}
		l.at += size
	}
}

func (l *lexer) token(rest string, brackets *int) {
	switch c := rest[0]; {
	case c == '\'' || c == '"':
		l.quoted(rest)
		return
	case c >= '0' && c <= '9':
		l.number(rest)
		return
	}
	end := 0
	for i, r := range rest {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r) && !unicode.IsMark(r)) {
			break
		}
		end = i + utf8.RuneLen(r)
	}
	if end > 0 {
		l.add("name", rest[:end])
		l.at += end
		return
	}
	for _, op := range operators {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		switch op {
		case "(", "[", "{":
			*brackets++
		case ")", "]", "}":
			if *brackets--; *brackets < 0 {
				failAt(l.at, "has a %s that nothing opens", op)
			}
		}
		l.add(op, op)
		l.at += len(op)
		return
	}
	r, _ := utf8.DecodeRuneInString(rest)
	failAt(l.at, "has a %q that is not part of an expression", r)
}

// number reads an int or a float, with _ between digits.
func (l *lexer) number(rest string) {
	end := 0
	digits := func() {
		for end < len(rest) && (rest[end] >= '0' && rest[end] <= '9' || rest[end] == '_' && end > 0) {
			end++
		}
	}
	kind := "int"
	if len(rest) > 1 && rest[0] == '0' && strings.ContainsRune("xXoObB", rune(rest[1])) {
		for end = 2; end < len(rest) && (rest[end] == '_' || strings.IndexByte("0123456789abcdefABCDEF", rest[end]) >= 0); end++ {
		}
	} else {
		digits()
		if end+1 < len(rest) && rest[end] == '.' && rest[end+1] >= '0' && rest[end+1] <= '9' {
			kind = "float"
			end++
			digits()
		}
		if end < len(rest) && (rest[end] == 'e' || rest[end] == 'E') {
			mark := end
			if end++; end < len(rest) && (rest[end] == '+' || rest[end] == '-') {
				end++
			}
			before := end
			if digits(); end == before {
				end = mark
			} else {
				kind = "float"
			}
		}
	}
	l.add(kind, strings.ReplaceAll(rest[:end], "_", ""))
	l.at += end
}

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

// unescape writes what stands behind a backslash, and returns how many bytes beyond the first it took.
func unescape(b *strings.Builder, s string) int {
	if i := strings.IndexByte("\\'\"abfnrtv", s[0]); i >= 0 {
		b.WriteByte("\\'\"\a\b\f\n\r\t\v"[i])
		return 0
	}
	for _, e := range []struct {
		letter byte
		digits int
	}{{'x', 2}, {'u', 4}, {'U', 8}} {
		if s[0] == e.letter && len(s) > e.digits {
			if n, err := strconv.ParseUint(s[1:1+e.digits], 16, 32); err == nil && n <= unicode.MaxRune {
				b.WriteRune(rune(n))
				return e.digits
			}
		}
	}
	if s[0] != '\n' { // a line break is joined
		b.WriteByte('\\')
		b.WriteByte(s[0])
	}
	return 0
}
