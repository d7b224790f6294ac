package markup

import (
	"html/template"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"promptspool/metrics/cputime"
)

// hostile are texts that the parser of Markdown takes the square of their length for, or that
// become much longer as HTML.
var hostile = map[string]func(n int) string{
	"quotes":            func(n int) string { return strings.Repeat(">", n) },
	"quotes and tabs":   func(n int) string { return strings.Repeat(">\t", n/2) },
	"lists":             func(n int) string { return strings.Repeat("- ", n/2) + "a" },
	"numbers":           func(n int) string { return strings.Repeat("1. ", n/3) + "a" },
	"quotes with lists": func(n int) string { return strings.Repeat("> - ", n/4) + "a" },
	"deeper lists":      func(n int) string { return deeper(n, "- a\n") },
	"more quotes":       func(n int) string { return strings.Repeat(strings.Repeat(">", 19)+"a\n", n/21) },
	"brackets":          func(n int) string { return strings.Repeat("[a](", n/4) },
	"empty links":       func(n int) string { return strings.Repeat("[](", n/3) },
	"destinations":      func(n int) string { return strings.Repeat("[a](<b", n/6) },
	"paragraphs of links": func(n int) string {
		return strings.Repeat(strings.Repeat("[](", 330)+"\n\n", n/992)
	},
	"items of links": func(n int) string {
		return strings.Repeat("- "+strings.Repeat("[](", 330)+"\n", n/993)
	},
	"stars": func(n int) string { return strings.Repeat("*a_", n/3) },
	"paragraphs of stars": func(n int) string {
		return strings.Repeat(strings.Repeat("*a_", 450)+"\n\n", n/1352)
	},
	"quotes of stars": func(n int) string {
		return strings.Repeat("> "+strings.Repeat("*a_", 450)+"\n", n/1353)
	},
	"quotes of links": func(n int) string {
		return strings.Repeat("> "+strings.Repeat("[](", 330)+"\n", n/993)
	},
	"second items": func(n int) string {
		return "a\n" + strings.Repeat("2. "+strings.Repeat("*a_", 450)+"\n", n/1354)
	},
	"indented items": func(n int) string {
		return "a\n" + strings.Repeat("    - "+strings.Repeat("*a_", 450)+"\n", n/1357)
	},
	"empty items": func(n int) string {
		return "a\n" + strings.Repeat(strings.Repeat("[](", 330)+"\n2.\n", n/994)
	},
	"short rows of dashes": func(n int) string {
		return strings.Repeat("|a", n/6) + "\n" + strings.Repeat("|-", n/6) + "\n" +
			strings.Repeat("|-\n", n/9)
	},
	"short rows and empty items": func(n int) string {
		return strings.Repeat("|a", n/6) + "\n" + strings.Repeat("|-", n/6) + "\n" +
			strings.Repeat("2.\n", n/9)
	},
	"cells": func(n int) string {
		return strings.Repeat("|a", n/6) + "\n" + strings.Repeat("|-", n/6) + "\n" +
			strings.Repeat("a\n", n/6)
	},
	"cells in a quote": func(n int) string {
		return "> " + strings.Repeat("|a", n/6) + "\n> " +
			strings.Repeat("|-", n/6) + "\n" +
			strings.Repeat("> a\n", n/12)
	},
	"full rows": func(n int) string {
		return strings.Repeat("|a", 99) + "\n" + strings.Repeat("|-", 99) + "\n" +
			strings.Repeat(strings.Repeat("|a", 99)+"\n", n/199)
	},
	"ticks":                 func(n int) string { return strings.Repeat("`a``b", n/5) },
	"a line of one letter":  func(n int) string { return strings.Repeat("a\n", n/2) },
	"items":                 func(n int) string { return strings.Repeat("- a\n", n/4) },
	"lines between items":   func(n int) string { return strings.Repeat("- a\n\n", n/5) },
	"rulers":                func(n int) string { return strings.Repeat("* * * a\n", n/8) },
	"quotation marks":       func(n int) string { return strings.Repeat(`"`, n) },
	"code of brackets":      func(n int) string { return "```js\n" + strings.Repeat("1,", n/2) },
	"strings without ends":  func(n int) string { return "```py\n" + strings.Repeat(`'''"`, n/4) },
	"comments without ends": func(n int) string { return "```js\n" + strings.Repeat("/* ", n/3) },
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
		took := cputime.Of(func() { out, ok = Markdown(source, nil) })
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
