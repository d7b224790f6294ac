// Package jinja parses and renders a subset of Jinja's template language. Templates and
// variables come from callers, so steps, memory, output and nesting are bounded; every
// bound is in this file. Within the package failures travel as panics, which never leave
// it: see language.Recover.
package jinja

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"promptspool/registry/render/language"
)

// token is one token of a text.
//
// Its kind is data, {{ and }} for an output, {% and %} for a tag, name, string, int,
// float or, for an operator, the operator itself. The last token is eof.
type token struct {
	kind string
	text string
	at   int // the byte where it begins, with line breaks as \n
}

// tokenForm matches the token at the beginning of a text: a number and what follows it without
// a blank, a name, a string, or an operator. "in" and "not" are names as well.
var tokenForm = regexp.MustCompile(`^(?:(\d+(?:\.\d+)?)([\pL_][\pL\p{Nd}\pM_]*)?|([\pL_][\pL\p{Nd}\pM_]*)|` +
	`((?s:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))|(\*\*|//|==|!=|>=|<=|[-+*/%~()\[\]{}=<>.,:|;]))`)

// lexer cuts a text into tokens.
type lexer struct {
	source string
	at     int
	tokens []token
	trim   bool // the tag before ended with -
}

func lex(source string) []token {
	// Jinja drops the last line break, unless keep_trailing_newline is on.
	l := &lexer{source: strings.TrimSuffix(language.UnixLines(source), "\n")}
	for l.at < len(l.source) {
		rest := l.source[l.at:]
		start := findTag(rest)
		if start < 0 {
			l.data(rest, false)
			break
		}

		// A sign after the opening brace: - removes the whitespace before it, + keeps it.
		strip := strings.HasPrefix(rest[start+2:], "-")
		l.data(rest[:start], strip)
		began := l.at
		l.at += 2
		if strip || strings.HasPrefix(l.source[l.at:], "+") {
			l.at++
		}

		switch opener := rest[start : start+2]; {
		case opener == "{#":
			l.comment(began)
		case opener == "{{":
			l.expression(began, "{{", "}}")
		case !l.raw(began):
			l.expression(began, "{%", "%}")
		}
	}

	return append(l.tokens, token{"eof", "", len(l.source)})
}

// findTag returns where the next {{, {% or {# begins; -1 if there is none.
func findTag(s string) int {
	for i := 0; ; i++ {
		n := strings.IndexByte(s[i:], '{')
		if n < 0 || i+n+1 >= len(s) {
			return -1
		}
		i += n
		// A brace alone is text: prompts are full of JSON.
		if strings.IndexByte("{%#", s[i+1]) >= 0 {
			return i
		}
	}
}

// add adds a token that begins at the current byte.
func (l *lexer) add(kind, text string) {
	l.tokens = append(l.tokens, token{kind, text, l.at})
}

// data adds a text outside of tags, and moves past it.
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

// closeTag moves past the end of a tag, which is n bytes ahead.
func (l *lexer) closeTag(n int, closer string) {
	l.trim = n > 0 && l.source[l.at+n-1] == '-'
	l.at += n + len(closer)
}

// comment moves past a comment that began at a byte.
func (l *lexer) comment(began int) {
	n := strings.Index(l.source[l.at:], "#}")
	if n < 0 {
		failAt(began, "has a comment that is not closed with #}")
	}

	l.closeTag(n, "#}")
}

// The tags around a raw block. A sign - removes the whitespace on its side; a + keeps it.
var (
	rawBegins = regexp.MustCompile(`^\s*raw\s*([-+]?)%\}`)
	rawEnds   = regexp.MustCompile(`\{%([-+]?)\s*endraw\s*([-+]?)%\}`)
)

// raw reads {% raw %} up to {% endraw %}. It returns false if the tag is another one.
func (l *lexer) raw(began int) bool {
	rest := l.source[l.at:]
	begins := rawBegins.FindStringSubmatch(rest)
	if begins == nil {
		return false
	}
	body := rest[len(begins[0]):]
	ends := rawEnds.FindStringSubmatchIndex(body)
	if ends == nil {
		failAt(began, "has a raw block that is not closed with {%% endraw %%}")
	}

	// Anything in between that looks like another tag is text.
	l.at += len(begins[0])
	l.trim = begins[1] == "-"
	l.data(body[:ends[0]], body[ends[2]:ends[3]] == "-")
	l.trim = body[ends[4]:ends[5]] == "-"
	l.at += ends[1] - ends[0]

	return true
}

// expression reads the tokens between opener, which began at a byte, and closer.
func (l *lexer) expression(began int, opener, closer string) {
	l.tokens = append(l.tokens, token{opener, "", began})
	brackets := 0
	for {
		l.space()
		rest := l.source[l.at:]
		if rest == "" {
			failAt(began, "has a %s that is not closed with %s", opener, closer)
		}

		// Within brackets a }} closes two of them.
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

// token reads the token at the beginning of the rest.
func (l *lexer) token(rest string, brackets *int) {
	m := tokenForm.FindStringSubmatch(rest)
	if m == nil {
		r, _ := utf8.DecodeRuneInString(rest)
		if r == '\'' || r == '"' {
			failAt(l.at, "has a string that is not closed")
		}
		failAt(l.at, "has a %q that is not part of an expression", r)
	}

	switch number, suffix, name, quoted, op := m[1], m[2], m[3], m[4], m[5]; {
	case suffix != "":
		failAt(l.at, "has the number %s, which is not supported; write it without e and _", language.Shorten(m[0]))
	case strings.Contains(number, "."):
		l.add("float", number)
	case number != "":
		l.add("int", number)
	case name != "":
		l.add("name", name)
	case quoted != "":
		l.add("string", unquoted(quoted))
	default:
		switch op {
		case "(", "[", "{":
			*brackets++
		case ")", "]", "}":
			if *brackets--; *brackets < 0 {
				failAt(l.at, "has a %s that nothing opens", op)
			}
		}
		l.add(op, op)
	}
	l.at += len(m[0])
}

// unquoted returns the text of a string, whose escapes are Python's.
func unquoted(quoted string) string {
	var b strings.Builder
	for i := 1; i < len(quoted)-1; i++ {
		if quoted[i] != '\\' {
			b.WriteByte(quoted[i])
			continue
		}
		i++
		i += unescape(&b, quoted[i:len(quoted)-1])
	}
	return b.String()
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

// Template is a text in a subset of Jinja's template language. The language is the one of
// "Template Designer Documentation",
// https://jinja.palletsprojects.com/en/stable/templates/, with the defaults of Jinja's
// environment: no autoescape, keep_trailing_newline and trim_blocks off.
//
// It never changes and is safe for concurrent use. It sees its variables and nothing
// else.
//
// Supported are the tags if, elif, else, for (with else, a condition, and loop), set (of
// one name, of several, of a namespace's attribute, of a block), raw and macro
// (with defaults); comments; whitespace control; expressions with decimal numbers; slices
// from and to, and [::-1]; the functions range, dict and namespace; and these filters,
// tests and methods:
//
//	filters  abs capitalize count d default dictsort first float format indent int items
//	         join last length list lower map max min reject rejectattr replace reverse
//	         round safe select selectattr sort string title tojson trim truncate unique
//	         upper
//	tests    boolean defined eq equalto false float ge gt in integer iterable le lt mapping
//	         ne none number sequence string true undefined == != < <= > >=
//	methods  of strings: upper lower title capitalize strip lstrip rstrip split splitlines
//	         replace startswith endswith find rfind index join;
//	         of mappings: get items keys values; of lists: index
//
// That is what public prompts use. The rest of Jinja is reported by name when a template is
// published: includes, inheritance, with, call, filter, do, break and recursive loops; other filters,
// tests, methods, functions and members of loop; the operator **, % of a text, and chains of
// comparisons; %x and the like in a format; arguments given as * and **.
//
// Four things differ from Jinja. A macro has no varargs and kwargs, nor members such as
// name. A member of an undefined value is undefined too, and an undefined value is an empty
// string wherever a string is expected. A member named like a method, without a call, is
// the member. Integers beyond 64 bits can be written but not calculated with.
type Template struct {
	body      []node
	variables []string
}

// Parse reads a text. Its error names the fault and its place.
func Parse(source string) (*Template, error) {
	t, err := parse(source)

	return t, language.Locate(err, language.UnixLines(source))
}

func parse(source string) (t *Template, err error) {
	if len(source) > sourceBytesMax {
		message := fmt.Sprintf("is longer than %d KiB of jinja2", sourceBytesMax>>10)
		return nil, &language.Error{Message: message}
	}
	defer language.Recover(&err)

	p := &parser{bound: []map[string]bool{{}}}
	p.tokens = lex(source)
	p.macros = macroNames(p.tokens)
	body := p.body("", token{})

	return &Template{body: body, variables: p.used.List}, nil
}

// Variables lists the variables that the text uses but does not set, each once, in order
// of appearance.
func (t *Template) Variables() []string { return slices.Clone(t.variables) }

// AppendTo appends the rendered text to b. It notes as missing the variables that it would
// have written or iterated over.
//
// With an error there is no text: the values do not fit what the text does with them, or
// a bound was exceeded.
func (t *Template) AppendTo(b []byte, r *language.Rendering) (out []byte, err error) {
	defer language.Recover(&err)

	x := &run{r: r, out: b, scope: &scope{}}
	x.runBody(t.body)
	return x.out, nil
}

// The bounds of a template and of its rendering. Those of a rendering hold for all texts
// of a blueprint together.
const (
	sourceBytesMax = 256 << 10 // bytes of one text
	depthMax       = 100       // nesting of blocks and of expressions
	chainMax       = 1000      // parts of an expression in a row: a + b + c

	stepsMax      = 1_000_000 // steps of one rendering
	stepsPerCheck = 1000      // steps between checks whether the caller still waits
	bytesPerStep  = 256       // bytes of a string that can be read in one step
	valueBytesMax = 32 << 20  // bytes of all values that one rendering makes
	valueDepthMax = 600       // nesting of values
	callsMax      = 200       // macros that call each other or themselves
	rangeMax      = 100_000   // elements of range(), the same as in Jinja's own sandbox
)

// Within a parse and a rendering, errors travel as panics, as in text/template: nearly
// every step can fail, and none handles the failure of another. Every panic of the
// package starts in fail or failAt and ends in language.Recover.

// fail ends the rendering.
func fail(format string, args ...any) { failAt(0, format, args...) }

// failAt ends the parse because of what is at a byte of the text.
func failAt(at int, format string, args ...any) {
	panic(&language.Error{Message: fmt.Sprintf(format, args...), At: at})
}
