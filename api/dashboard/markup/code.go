package markup

import (
	"regexp"
	"strings"
)

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
	plain := 0 // where what has no kind begins
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
