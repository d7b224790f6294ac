// Package markup turns logged texts into HTML: Markdown, JSON, code and plain text, with
// marks in them.
//
// Nothing in a text becomes HTML by itself. A Markdown text may contain no HTML, its
// links lead only to other sites or mail addresses, and its images are links.
//
// A text costs time and memory in proportion to its bytes. The parser of Markdown does not
// promise that, so texts that would be dear are recognised first, and stay plain.
package markup

import (
	"bytes"
	"cmp"
	"encoding/json"
	"html"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strings"

	"promptspool/api/wire/jsonscan"
)

// Mark is a range of a text that is marked. The marks of a text are in order, and do not
// overlap.
type Mark struct {
	From, To int    // in bytes
	Variable string // whose value it is; "" for what a search found
}

// Plain returns a text as it is.
func Plain(text string, marks []Mark) template.HTML {
	var b strings.Builder
	w := writer{&b, text, marks}
	w.write(0, len(text), escape)

	return template.HTML(b.String())
}

// escape writes a piece of text as HTML.
func escape(w io.Writer, text string) { _, _ = io.WriteString(w, html.EscapeString(text)) }

// writer writes pieces of a text with its marks.
type writer struct {
	out   io.Writer
	text  string
	marks []Mark
}

// write writes text[from:to], each piece between the ends of marks by itself.
func (w *writer) write(from, to int, piece func(io.Writer, string)) {
	first, _ := slices.BinarySearchFunc(w.marks, from, func(m Mark, from int) int {
		if m.To <= from {
			return -1
		}
		return 1
	})

	for _, m := range w.marks[first:] {
		if m.From >= to {
			break
		}
		begin, end := max(m.From, from), min(m.To, to)
		piece(w.out, w.text[from:begin])
		w.open(m, begin > m.From)
		piece(w.out, w.text[begin:end])
		_, _ = io.WriteString(w.out, "</mark>")
		from = end
	}
	piece(w.out, w.text[from:to])
}

// open opens a piece of a mark. Pieces after the first are not counted as hits.
func (w *writer) open(m Mark, rest bool) {
	tag := `<mark class="hit">`
	switch {
	case rest && m.Variable == "":
		tag = `<mark class="hit rest">`
	case m.Variable != "":
		tag = `<mark title="` + html.EscapeString(m.Variable) + `">`
	}
	_, _ = io.WriteString(w.out, tag)
}

// LayOut is Indent but for what would become much longer by it: what is nested deeply is mostly
// indentation.
func LayOut(text string) (string, bool) {
	if laidOutBytes([]byte(text)) > 8*len(text)+4096 {
		return "", false
	}
	laid := Indent(text)

	return laid, laid != ""
}

// Pretty returns JSON for people: indented, if it is an object or an array.
func Pretty(raw json.RawMessage) string { return cmp.Or(Indent(string(raw)), string(raw)) }

// Indent indents a JSON object or array. It returns "" for anything else.
func Indent(text string) string {
	var b bytes.Buffer
	text = strings.TrimSpace(text)
	if text == "" || text[0] != '{' && text[0] != '[' || json.Indent(&b, []byte(text), "", "  ") != nil {
		return ""
	}

	return b.String()
}

// laidOutBytes returns about how many bytes a JSON text has with its indentation.
func laidOutBytes(text []byte) int {
	size, depth := len(text), 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = jsonscan.SkipString(text, i) - 1
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
		default:
			continue
		}
		size += 1 + 2*max(depth, 0)
	}

	return size
}

// JSON returns a JSON text in colours.
func JSON(text string, marks []Mark) template.HTML {
	var b strings.Builder
	w := writer{&b, text, marks}
	languages["json"].scan(text, func(kind string, from, to int) { w.token(kind, from, to) })

	return template.HTML(b.String())
}

// token writes a piece of code of a kind.
func (w *writer) token(kind string, from, to int) {
	if kind == "" {
		w.write(from, to, escape)
		return
	}

	// The kinds are our own words.
	_, _ = w.out.Write([]byte(`<span class="` + kind + `">`))
	w.write(from, to, escape)
	_, _ = w.out.Write([]byte(`</span>`))
}

// The kinds of tokens, which are also the classes of their elements.
const (
	kindKeyword = "k"
	kindString  = "s"
	kindNumber  = "n"
	kindComment = "c"
	kindMember  = "m" // the name of a member of an object
)

// language is what is known of a language: enough for colours.
type language struct {
	tokens   *regexp.Regexp // comments, strings, numbers and words
	keywords map[string]bool
	anyCase  bool // of keywords
	members  bool // a string in front of a colon is a name
}

// Comments and strings of several languages. One that is never closed ends with the code or, in single
// quotes and double quotes, with its line.
const (
	blockComment = `(?s:/\*.*?(?:\*/|\z))`
	inQuotes     = `"(?:[^"\\\n]|\\(?s:.))*"?|'(?:[^'\\\n]|\\(?s:.))*'?`
	inThree      = `(?s:""".*?(?:"""|\z)|'''.*?(?:'''|\z))`
)

// newLanguage returns a language with its comments and strings, and its keywords with blanks between them.
func newLanguage(comment, str, keywords string) *language {
	tokens := comment + `|` + str + `|-?[0-9][\w.+-]*|[A-Za-z_\x{80}-\x{10FFFF}][\w\x{80}-\x{10FFFF}]*`

	return &language{tokens: regexp.MustCompile(tokens), keywords: words(keywords)}
}

// words makes a set.
func words(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}

	return set
}

var (
	inC = newLanguage(`//[^\n]*|`+blockComment, inQuotes+"|`[^`]*`?",
		"abstract as async await bool boolean break byte case catch chan char class const "+
			"continue def default defer delete do double else enum export extends false final finally float fn "+
			"for from func function go goto if impl implements import in instanceof int interface let long map "+
			"match mod mut namespace new nil null of override package private protected pub public range return "+
			"select self short static string struct super switch this throw throws true try type typeof undefined "+
			"union unsafe use using val var void when where while with yield")
	inPython = newLanguage(`#[^\n]*`, inThree+`|`+inQuotes,
		"False None True and as assert async await break case class continue def del elif else "+
			"except finally for from global if import in is lambda match nonlocal not or pass raise return self try "+
			"while with yield begin do end module nil require then true false unless until")
	inShell = newLanguage(`#[^\n]*`, `"[^"]*"?|'[^']*'?`,
		"case do done elif else esac export false fi for function if in local null return set "+
			"source then true until while yes no on off")
	inSQL = newLanguage(`--[^\n]*|`+blockComment, inQuotes,
		"all alter and as asc between by case create cross delete desc distinct drop else end "+
			"exists false from full group having if in index inner insert into is join key left like limit not null "+
			"offset on or order outer over partition primary references returning right select set table then true "+
			"union unique update using values view when where with")
	inMarkup = newLanguage(`(?s:<!--.*?(?:-->|\z))`, inQuotes, "")
	inJSON   = newLanguage(`\z.`, `"(?:[^"\\\n]|\\(?s:.))*"?`, "false null true") // it has no comments
)

// languages are those that fences name.
var languages = func() map[string]*language {
	inSQL.anyCase, inJSON.members = true, true
	all := map[string]*language{}
	for names, l := range map[string]*language{
		"c c++ cpp cs csharp css dart go golang graphql groovy java javascript js jsx kotlin kt php proto rs " +
			"rust scala scss solidity swift ts tsx typescript zig": inC,
		"elixir py python python3 r rb ruby julia": inPython,
		"bash conf console dockerfile env fish ini make makefile powershell sh shell terraform toml " +
			"yaml yml zsh": inShell,
		"mysql plsql postgres postgresql psql sql sqlite": inSQL,
		"html svg vue xml":       inMarkup,
		"json json5 jsonc jsonl": inJSON,
	} {
		for name := range words(names) {
			all[name] = l
		}
	}

	return all
}()

// scan visits the tokens of a code in order. Together they are all of it.
func (l *language) scan(code string, visit func(kind string, from, to int)) {
	// Where what has no kind begins.
	plain := 0
	for _, token := range l.tokens.FindAllStringIndex(code, -1) {
		from, to := token[0], token[1]
		kind := l.kind(code[from:to], code[to:])
		if kind == "" {
			continue
		}

		if from > plain {
			visit("", plain, from)
		}
		visit(kind, from, to)
		plain = to
	}
	if plain < len(code) {
		visit("", plain, len(code))
	}
}

// kind returns the kind of a token by how it begins, and by what is after it; "" is plain.
func (l *language) kind(token, after string) string {
	switch c := token[0]; {
	case c >= '0' && c <= '9', c == '-' && token[1] != '-':
		return kindNumber
	case strings.IndexByte("/#-<", c) >= 0:
		return kindComment
	case strings.IndexByte("\"'`", c) >= 0:
		if l.members && strings.HasPrefix(strings.TrimLeft(after[:min(8, len(after))], " "), ":") {
			return kindMember
		}
		return kindString
	}

	// No keyword is long, so that a text of one word is not copied.
	if l.anyCase && len(token) <= 20 {
		token = strings.ToLower(token)
	}
	if l.keywords[token] {
		return kindKeyword
	}

	return ""
}
