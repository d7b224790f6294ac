package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// What keeps the code readable. Tests may have dense tables, so they are held to the
// columns only.
const (
	lineMax      = 120 // columns; a tab is 4
	airlessMax   = 19  // lines of a function without a blank line
	sentenceMax  = 20  // words of the first sentence about what is exported
	readmeMax    = 180 // lines
	readmeWidest = 110 // columns; a table may be wider
)

// pageFaults returns where a file is hard to read, as "line: what".
func pageFaults(t *testing.T, name, source string) (faults []string) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	report := func(line int, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%d: %s", line, fmt.Sprintf(format, args...)))
	}

	faults = wideLines(source)
	lines := strings.Split(source, "\n")
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		from, to := fset.Position(f.Body.Lbrace).Line, fset.Position(f.Body.Rbrace).Line
		isBlank := func(line string) bool { return strings.TrimSpace(line) == "" }
		blank := slices.ContainsFunc(lines[from:max(from, to-1)], isBlank)
		if n := to - from - 1; n > airlessMax && !blank {
			report(from, "%s has %d lines and no blank one", f.Name.Name, n)
		}
	}

	for name, doc := range exported(file) {
		switch n := len(strings.Fields(firstSentence(doc.Text()))); {
		case n == 0:
			report(fset.Position(name.Pos()).Line, "%s has no comment", name.Name)
		case n > sentenceMax:
			report(fset.Position(name.Pos()).Line, "the first sentence about %s has %d words, at most %d",
				name.Name, n, sentenceMax)
		}
	}

	return faults
}

// wideLines returns the lines of a file that have too many columns, as "line: what".
func wideLines(source string) (faults []string) {
	for i, line := range strings.Split(source, "\n") {
		if n := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t"); n > lineMax {
			faults = append(faults, fmt.Sprintf("%d: %d columns, at most %d", i+1, n, lineMax))
		}
	}

	return faults
}

// exported returns the exported names of a file with their comments: a name in a group
// may share the group's.
func exported(file *ast.File) map[*ast.Ident]*ast.CommentGroup {
	names := make(map[*ast.Ident]*ast.CommentGroup)
	add := func(name *ast.Ident, docs ...*ast.CommentGroup) {
		if name.IsExported() {
			i := slices.IndexFunc(docs, func(doc *ast.CommentGroup) bool { return doc != nil })
			names[name] = nil
			if i >= 0 {
				names[name] = docs[i]
			}
		}
	}

	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || ast.IsExported(receiver(d)) {
				add(d.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					add(s.Name, s.Doc, d.Doc, s.Comment)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						add(name, s.Doc, s.Comment, d.Doc)
					}
				}
			}
		}
	}

	return names
}

// receiver returns the name of the type that a method belongs to.
func receiver(f *ast.FuncDecl) string {
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	name, _ := t.(*ast.Ident)

	return name.Name
}

// firstSentence ends at a full stop, at a colon before a list, or with its paragraph.
func firstSentence(doc string) string {
	doc, _, _ = strings.Cut(doc, "\n\n")
	for _, end := range []string{". ", ".\n", ":\n"} {
		doc, _, _ = strings.Cut(doc, end)
	}

	return doc
}

func TestTheCodeReadsWell(t *testing.T) {
	checkPages(t, func(s parsedFile) bool { return !s.test },
		func(path, text string) []string { return pageFaults(t, path, text) })
}

func TestThePageOfATestFitsTheColumns(t *testing.T) {
	checkPages(t, func(s parsedFile) bool { return s.test },
		func(_, text string) []string { return wideLines(text) })
}

// checkPages reports the faults of the chosen files.
func checkPages(t *testing.T, chosen func(parsedFile) bool, faults func(path, text string) []string) {
	t.Helper()
	top := os.DirFS("../..")
	for _, s := range sources(t) {
		if !chosen(s) {
			continue
		}
		text, err := fs.ReadFile(top, s.path)
		if err != nil {
			t.Fatal(err)
		}

		for _, fault := range faults(s.path, string(text)) {
			t.Errorf("%s:%s", s.path, fault)
		}
	}
}

func TestCodeThatReadsBadlyIsNoticed(t *testing.T) {
	long := "package x\n\nfunc f() {\n" + strings.Repeat("\tprintln()\n", airlessMax+1) + "}\n"
	for name, tt := range map[string]struct {
		source string
		want   int
	}{
		"a good file":              {"package x\n\n// F returns one.\nfunc F() int { return 1 }\n", 0},
		"a long line":              {"package x\n\n// " + strings.Repeat("x", lineMax) + "\n", 1},
		"a function without air":   {long, 1},
		"a function with air":      {strings.Replace(long, "println()\n", "println()\n\n", 1), 0},
		"a name without a comment": {"package x\n\ntype T struct{}\n\nfunc (*T) M() {}\n", 2},
		"a method of no name":      {"package x\n\ntype t[P any] struct{}\n\nfunc (*t[P]) M() {}\n", 0},
		"a long sentence":          {"package x\n\n// F " + strings.Repeat("x ", sentenceMax) + ".\nfunc F() {}\n", 1},
		"a group with one comment": {"package x\n\n// Numbers of things.\nconst (\n\tA = 1\n\tB = 2\n)\n", 0},
	} {
		if faults := pageFaults(t, "x.go", tt.source); len(faults) != tt.want {
			t.Errorf("%s: %d faults, want %d: %q", name, len(faults), tt.want, faults)
		}
	}
}

func TestAWideLineIsNoticed(t *testing.T) {
	for source, want := range map[string]int{
		strings.Repeat("x", lineMax):                               0,
		strings.Repeat("x", lineMax+1):                             1,
		strings.Repeat("é", lineMax):                               0,
		"short\n\t" + strings.Repeat("x", lineMax-4):               0,
		"short\n\t" + strings.Repeat("x", lineMax-3) + "\nshort\n": 1,
	} {
		if faults := wideLines(source); len(faults) != want {
			t.Errorf("%d faults, want %d: %q", len(faults), want, faults)
		}
	}
}

// readmeFaults returns why a README is not one screen after the other.
func readmeFaults(text string) (faults []string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > readmeMax {
		faults = append(faults, fmt.Sprintf("%d lines, at most %d", len(lines), readmeMax))
	}
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); n > readmeWidest && !strings.HasPrefix(line, "|") {
			faults = append(faults, fmt.Sprintf("line %d has %d columns, at most %d", i+1, n, readmeWidest))
		}
	}

	return faults
}

// Words that a native reader stumbles over. Usual ones are: again, its own, the caller, also,
// nevertheless, forever, must, reports whether, is in, before, continues. A call is one of
// a language model, and a room is memory that a request has claimed: see package admission.
var (
	unusual = regexp.MustCompile(`(?i)\b(?:anew|whoever|likewise|all the same|in whole|for ever|shall|` +
		`(?:is|are|was|were) to be|of (?:its|their|our) own|(?:says?|tells?) whether|(?:says?|tells) of|` +
		`that there (?:is|are)|(?:lies|lie) (?:in|on|at|behind|between|outside|beyond)|goes on|went on|` +
		`stands? (?:in|on|first|behind|beside|before|as)|` +
		`(?:HTTP|API) calls?|tak(?:es|ing) calls|mak(?:es?|ing) room)\b` +
		`|, for (?:it|they|there|this|these|we)\b|; (?:nil|none|0|""): `)

	// In comments also: people for callers, "behind" for after, and sentences that begin with What.
	unusualInComments = regexp.MustCompile(`\b(?:[Nn]obody|[Ss]omebody|behind|[Aa]ll that|who (?:waits|asks|looks)|` +
		`(?:is|are) no [a-z]+)\b|(?:^|[.:;)] )What\b`)

	// In pages: people know projects. What another product calls an account is one.
	unusualInPages = regexp.MustCompile(`(?i)\b(?:accounts?)\b`)
	accountOfOther = regexp.MustCompile("(?i)`[^`]*`|\\{\\{.*?\\}\\}|(?:ChatGPT|PromptLayer|service|storage) accounts?")

	// usual are phrases that contain one of these words and are good English.
	usual = regexp.MustCompile(`(?i)\b(?:there (?:is|are) no|(?:is|are) no (?:longer|more|other|such|use|way|need)|` +
		`nobody else|(?:wait|waits|queues?|left|leaves?|lags?|people|client|that is|is not) behind|` +
		`behind (?:a|the|any|trusted) (?:reverse )?(?:proxy|proxies|balancer))\b`)
)

// wordFaults returns the unusual words of a text.
func wordFaults(text string, lists ...*regexp.Regexp) (faults []string) {
	text = usual.ReplaceAllString(strings.Join(strings.Fields(text), " "), "-")
	for _, list := range lists {
		faults = append(faults, list.FindAllString(text, -1)...)
	}

	return faults
}

// commentFaults returns the unusual words of a Go file, as "line: words": those of its
// comments, a paragraph at a time, and those of its other lines, which have the messages.
func commentFaults(t *testing.T, name, source string) (faults []string) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}

	for _, group := range file.Comments {
		for paragraph := range strings.SplitSeq(group.Text(), "\n\n") {
			for _, words := range wordFaults(paragraph, unusual, unusualInComments) {
				faults = append(faults, fmt.Sprintf("%d: %q", fset.Position(group.Pos()).Line, words))
			}
		}
	}
	for i, line := range strings.Split(source, "\n") {
		code, _, _ := strings.Cut(line, " // ")
		if !strings.ContainsAny(code, "\"`") {
			continue
		}
		for _, words := range wordFaults(code, unusual) {
			faults = append(faults, fmt.Sprintf("%d: %q", i+1, words))
		}
	}

	return faults
}

// pageWordFaults returns the unusual words of a page, as "line: words". Blocks of code and
// quoted output are not looked at.
func pageWordFaults(source string) (faults []string) {
	inCode := false
	for i, line := range strings.Split(source, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inCode = !inCode
		}
		if inCode {
			continue
		}
		for _, words := range wordFaults(line, unusual) {
			faults = append(faults, fmt.Sprintf("%d: %q", i+1, words))
		}
		for _, words := range unusualInPages.FindAllString(accountOfOther.ReplaceAllString(line, ""), -1) {
			faults = append(faults, fmt.Sprintf("%d: %q, which is a project", i+1, words))
		}
	}

	return faults
}

func TestTheWordsOfTheCodeAreUsual(t *testing.T) {
	// What only tests use may say what a scene is about in its own words.
	forTests := regexp.MustCompile(`test/|/e2e/`)
	checkPages(t, func(s parsedFile) bool { return !s.test && !forTests.MatchString(s.path) },
		func(path, text string) []string { return commentFaults(t, path, text) })
}

func TestTheWordsOfPagesAreUsual(t *testing.T) {
	top := os.DirFS("../..")
	var pages []string
	for _, pattern := range []string{"README.md", "CHANGELOG.md", "api/dashboard/docs/*.md", "api/dashboard/*/*.html"} {
		found, err := fs.Glob(top, pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		pages = append(pages, found...)
	}

	for _, page := range pages {
		text, err := fs.ReadFile(top, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range pageWordFaults(string(text)) {
			t.Errorf("%s:%s", page, fault)
		}
	}
}

func TestUnusualWordsAreNoticed(t *testing.T) {
	for comment, want := range map[string]int{
		"f reports whether it is.":                        0,
		"f says whether it is.":                           1,
		"f has a lock of\n// its own.":                    1,
		"F waits, for it\n// is late, and nobody knows.":  2,
		"What is left stays. What\n// is not left goes.":  2,
		"x is in front of a, behind\n// b.":               1,
		"A server behind a proxy. There is no other one.": 0,
		"It is no error.":                                 1,
		"n is the number; nil: none.":                     1,
		"It takes calls, and makes\n// room for others.":  2,
	} {
		source := "package x\n\n// " + comment + "\nfunc f() {}\n"
		if faults := commentFaults(t, "x.go", source); len(faults) != want {
			t.Errorf("%q: %d faults, want %d: %q", comment, len(faults), want, faults)
		}
	}

	message := "package x\n\nconst m = \"it goes on\"\n"
	if faults := commentFaults(t, "x.go", message); len(faults) != 1 {
		t.Errorf("a message has the faults %q", faults)
	}
	for page, want := range map[string]int{
		"It is made anew.":                 1,
		"```sh\nit goes on\n```\nIt ends.": 0,
		"What to do, and for whom.":        0,
		"The account's keys. Accounts.":    2,
		"<p>{{.Account}}</p> `account`":    0,
		"Your ChatGPT account.":            0,
	} {
		if faults := pageWordFaults(page); len(faults) != want {
			t.Errorf("%q: %d faults, want %d: %q", page, len(faults), want, faults)
		}
	}
}
