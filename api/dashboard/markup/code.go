package markup

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The kinds of tokens, which are also the classes of their elements.
const (
	kindKeyword = "k"
	kindString  = "s"
	kindNumber  = "n"
	kindComment = "c"
	kindMember  = "m" // the name of a member of an object
)

// language is what is known of a language: enough for colours, and for a scan that reads every
// byte once.
type language struct {
	line     []string // that begin a comment up to the end of its line
	block    [2]string
	quotes   string // each ends a string that it begins
	longs    string // of quotes: strings that may have several lines
	triple   bool   // three quotes make a string of several lines
	members  bool   // a string in front of a colon is a name
	keywords map[string]bool
	anyCase  bool // of keywords
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
	inC = &language{line: []string{"//"}, block: [2]string{"/*", "*/"}, quotes: "\"'`", longs: "`",
		keywords: words("abstract as async await bool boolean break byte case catch chan char class const " +
			"continue def default defer delete do double else enum export extends false final finally float fn " +
			"for from func function go goto if impl implements import in instanceof int interface let long map " +
			"match mod mut namespace new nil null of override package private protected pub public range return " +
			"select self short static string struct super switch this throw throws true try type typeof undefined " +
			"union unsafe use using val var void when where while with yield"),
	}
	inPython = &language{line: []string{"#"}, quotes: `"'`, triple: true,
		keywords: words("False None True and as assert async await break case class continue def del elif else " +
			"except finally for from global if import in is lambda match nonlocal not or pass raise return self try " +
			"while with yield begin do end module nil require then true false unless until")}
	inShell = &language{line: []string{"#"}, quotes: `"'`, longs: `"'`,
		keywords: words("case do done elif else esac export false fi for function if in local null return set " +
			"source then true until while yes no on off")}
	inSQL = &language{line: []string{"--"}, block: [2]string{"/*", "*/"}, quotes: `"'`, anyCase: true,
		keywords: words("all alter and as asc between by case create cross delete desc distinct drop else end " +
			"exists false from full group having if in index inner insert into is join key left like limit not null " +
			"offset on or order outer over partition primary references returning right select set table then true " +
			"union unique update using values view when where with")}
	inMarkup = &language{block: [2]string{"<!--", "-->"}, quotes: `"'`}
	inJSON   = &language{quotes: `"`, members: true, keywords: words("false null true")}
)

// languages are those that fences name.
var languages = func() map[string]*language {
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
	token := func(kind string, from, to int) {
		if from > plain {
			visit("", plain, from)
		}
		visit(kind, from, to)
		plain = to
	}

	for at := 0; at < len(code); {
		kind, end := l.next(code, at)
		if kind != "" {
			token(kind, at, end)
		}
		at = end
	}
	if plain < len(code) {
		visit("", plain, len(code))
	}
}

// next returns the token at a place and its end.
func (l *language) next(code string, at int) (kind string, end int) {
	rest := code[at:]
	for _, mark := range l.line {
		if strings.HasPrefix(rest, mark) {
			return kindComment, at + untilLine(rest)
		}
	}
	if l.block[0] != "" && strings.HasPrefix(rest, l.block[0]) {
		return kindComment, at + untilText(rest, l.block[1], len(l.block[0]))
	}

	c := code[at]
	if strings.IndexByte(l.quotes, c) >= 0 {
		return l.str(code, at)
	}
	if c >= '0' && c <= '9' || c == '-' && l.members {
		return kindNumber, at + span(rest, func(r rune) bool { return isWord(r) || strings.ContainsRune(".+-", r) })
	}

	if r, size := utf8.DecodeRuneInString(rest); !isWord(r) {
		return "", at + size
	}
	end = at + span(rest, isWord)
	word := code[at:end]
	// No keyword is long, so that a text of one word is not copied.
	if l.anyCase && len(word) <= 20 {
		word = strings.ToLower(word)
	}
	if l.keywords[word] {
		return kindKeyword, end
	}

	return "", end
}

// str returns a string that begins at a place.
func (l *language) str(code string, at int) (kind string, end int) {
	quote := code[at]
	three := strings.Repeat(string(quote), 3)
	switch {
	case l.triple && strings.HasPrefix(code[at:], three):
		return kindString, at + untilText(code[at:], three, 3)
	case strings.IndexByte(l.longs, quote) >= 0:
		return kindString, at + untilText(code[at:], string(quote), 1)
	}

	end = endOfString(code, at)
	after := strings.TrimLeft(code[end:min(end+8, len(code))], " ")
	if l.members && strings.HasPrefix(after, ":") {
		return kindMember, end
	}

	return kindString, end
}

// endOfString returns the end of a string of one line that begins at a place.
func endOfString(code string, at int) int {
	quote := code[at]
	for i := at + 1; i < len(code); i++ {
		switch code[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		case '\n':
			return i
		}
	}

	return len(code)
}

// isWord reports whether a letter belongs to a word.
func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// span returns how many bytes a text begins with, of the letters that belong.
func span(text string, belongs func(rune) bool) int {
	if n := strings.IndexFunc(text, func(r rune) bool { return !belongs(r) }); n >= 0 {
		return max(n, 1)
	}

	return len(text)
}

// untilLine returns how many bytes the first line of a text has.
func untilLine(text string) int {
	if n := strings.IndexByte(text, '\n'); n >= 0 {
		return n
	}

	return len(text)
}

// untilText returns how many bytes a text has up to the end of another one, which it is searched
// for from a place on.
func untilText(text, end string, from int) int {
	if n := strings.Index(text[min(from, len(text)):], end); n >= 0 {
		return from + n + len(end)
	}

	return len(text)
}
