package markup

import (
	"html/template"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"promptspool/metrics/cputimetest"
)

// hostile are texts that the parser of Markdown takes the square of their length for, or that
// become much longer as HTML: a head, and a piece again and again.
var hostile = map[string]func(n int) string{
	"quotes":              many("", ">"),
	"quotes and tabs":     many("", ">\t"),
	"lists":               func(n int) string { return strings.Repeat("- ", n/2) + "a" },
	"numbers":             func(n int) string { return strings.Repeat("1. ", n/3) + "a" },
	"quotes with lists":   func(n int) string { return strings.Repeat("> - ", n/4) + "a" },
	"deeper lists":        func(n int) string { return deeper(n, "- a\n") },
	"more quotes":         many("", strings.Repeat(">", 19)+"a\n"),
	"brackets":            many("", "[a]("),
	"empty links":         many("", links[:3]),
	"destinations":        many("", "[a](<b"),
	"paragraphs of links": many("", links+"\n\n"),
	"items of links":      many("", "- "+links+"\n"),
	"quotes of links":     many("", "> "+links+"\n"),
	"stars":               many("", stars[:3]),
	"paragraphs of stars": many("", stars+"\n\n"),
	"quotes of stars":     many("", "> "+stars+"\n"),
	"second items":        many("a\n", "2. "+stars+"\n"),
	"indented items":      many("a\n", "    - "+stars+"\n"),
	"empty items":         many("a\n", links+"\n2.\n"),

	"short rows of dashes":       func(n int) string { return many(table(n/6), "|-\n")(n / 3) },
	"short rows and empty items": func(n int) string { return many(table(n/6), "2.\n")(n / 3) },
	"cells":                      func(n int) string { return many(table(n/6), "a\n")(n / 3) },
	"cells in a quote": func(n int) string {
		return many("> "+strings.Repeat("|a", n/6)+"\n> "+strings.Repeat("|-", n/6)+"\n", "> a\n")(n / 3)
	},
	"full rows": many(table(99), strings.Repeat("|a", 99)+"\n"),

	"ticks":                 many("", "`a``b"),
	"a line of one letter":  many("", "a\n"),
	"items":                 many("", "- a\n"),
	"lines between items":   many("", "- a\n\n"),
	"rulers":                many("", "* * * a\n"),
	"quotation marks":       many("", `"`),
	"code of brackets":      many("```js\n", "1,"),
	"strings without ends":  many("```py\n", `'''"`),
	"comments without ends": many("```js\n", "/* "),
}

var links, stars = strings.Repeat("[](", 330), strings.Repeat("*a_", 450)

// many returns texts of a head and n bytes of a piece.
func many(head, piece string) func(n int) string {
	return func(n int) string { return head + strings.Repeat(piece, n/len(piece)) }
}

// table returns the two first rows of a table.
func table(columns int) string {
	return strings.Repeat("|a", columns) + "\n" + strings.Repeat("|-", columns) + "\n"
}

// deeper returns n bytes of lines, each further to the right than the one above it.
func deeper(n int, line string) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString(strings.Repeat(" ", 2*i) + line)
	}

	return b.String()
}

// The longest text that is read as Markdown costs little, so many of them cost in proportion.
func TestMarkdownCostsInProportionToItsBytes(t *testing.T) {
	read := 0
	for name, text := range hostile {
		source := text(MarkdownBytesMax)
		source = source[:min(len(source), MarkdownBytesMax)]

		var out template.HTML
		var ok bool
		took := cputimetest.Of(func() { out, ok = Markdown(source, nil) })
		if !ok {
			continue
		}
		read++

		// The parser alone takes 2 to 5 s for some of the others.
		if took > time.Second || len(out) > 24*len(source) {
			t.Errorf("%s: %d bytes become %d, in %v of processor time", name, len(source), len(out), took)
		}
	}
	if read < 10 || read == len(hostile) {
		t.Errorf("%d of %d are read as Markdown", read, len(hostile))
	}
}

// allowed are the elements that Markdown may become, with their attributes.
var allowed = map[string]string{
	"p": "", "br": "", "em": "", "strong": "", "code": "", "blockquote": "", "hr": "", "ul": "",
	"ol": "start", "li": "", "h3": "", "h4": "", "h5": "", "h6": "", "thead": "", "tbody": "", "tr": "", "table": "",
	"th": "align", "td": "align", "div": "class tabindex role aria-label", "pre": "tabindex dir",
	"span": "class", "mark": "class", "a": "href rel target",
}

func TestMarkdownHasNoHTMLOfItsOwn(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"<script>", "<img src=x onerror=a>", "<!--", "-->", "<https://", ">", "javascript:", "data:text/html,",
		"https://a.b", "/keys", "[", "](", ")", "![", "*", "**", "_", "`", "\"", "'", "&lt;", "\\",
		" ", "\n", "\n\n", "\t", "    ", "> ", "- ", "1. ", "# ", "===", "---", "|", "\n|-|-|\n",
		"```", "```js\n", "\n```js\nvar a = '", "\n~~~json\n", "a", "B", "0", "日本", "ש", "\x00", "\xff",
	})
	rapid.Check(t, func(t *rapid.T) {
		source := strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "source"), "")
		from := rapid.IntRange(0, len(source)).Draw(t, "from")
		marks := []Mark{{From: from, To: rapid.IntRange(from, len(source)).Draw(t, "to")}}

		out, ok := Markdown(source, marks)
		if !ok {
			t.Fatalf("%q is not read", source)
		}
		tokens := html.NewTokenizer(strings.NewReader(string(out)))
		for tokens.Next() != html.ErrorToken {
			token := tokens.Token()
			attributes, known := allowed[token.Data]
			if token.Type == html.TextToken {
				continue
			}
			if !known {
				t.Fatalf("%q becomes %s", source, out)
			}
			for _, a := range token.Attr {
				safe := a.Key != "href" || leadsOut(a.Val)
				if !safe || !strings.Contains(" "+attributes+" ", " "+a.Key+" ") {
					t.Fatalf("%q becomes %s", source, out)
				}
			}
		}
	})
}

func TestLongListsAreReadAsMarkdown(t *testing.T) {
	for name, line := range map[string]string{
		"bullets": "- **A name**: what it is for, with `code` and [a link](https://a.example)\n",
		"numbers": "2. **A name**: what it is for, with `code` and *emphasis*, in a sentence\n",
		"nested":  "- **A group** of them\n    - `one` of it, with what is said of it\n",
		"quotes":  "> **A name**: what it is for, with `code`, as somebody wrote it\n",
	} {
		if _, ok := Markdown(strings.Repeat(line, MarkdownBytesMax/len(line)), nil); !ok {
			t.Errorf("%s are shown as they are", name)
		}
	}
}
