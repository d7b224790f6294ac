package markup

import (
	"bytes"
	"html"
	"html/template"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extended "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	markhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// MarkdownBytesMax bounds a text that is read as Markdown.
const MarkdownBytesMax = 64 << 10

// Markdown returns a Markdown text as HTML. It reports false for one that is better shown as it
// is, because it is long, or would cost too much.
func Markdown(source string, marks []Mark) (template.HTML, bool) {
	if len(source) > MarkdownBytesMax || !tame(source) {
		return "", false
	}

	// A renderer belongs to one text, because what it writes depends on the marks.
	var b bytes.Buffer
	w := &writer{nil, source, marks}
	r := renderer.NewRenderer(renderer.WithNodeRenderers(
		util.Prioritized(markhtml.NewRenderer(), 1000),
		util.Prioritized(extension.NewTableHTMLRenderer(alignment), 500),
		util.Prioritized(&blocks{writer: w}, 100),
	))
	document := reader.Parser().Parse(text.NewReader([]byte(source)))
	if err := r.Render(&b, []byte(source), document); err != nil {
		return "", false
	}

	return template.HTML(b.String()), true
}

// reader parses Markdown without HTML: a prompt's tags are read as text. It is safe for
// concurrent use.
var reader = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(without(parser.DefaultBlockParsers(), parser.NewHTMLBlockParser())...),
		parser.WithInlineParsers(without(parser.DefaultInlineParsers(), parser.NewRawHTMLParser())...),
	)),
	goldmark.WithExtensions(extension.Table),
)

// without returns parsers without those of a type.
func without(parsers []util.PrioritizedValue, left any) []util.PrioritizedValue {
	return slices.DeleteFunc(parsers, func(p util.PrioritizedValue) bool {
		return reflect.TypeOf(p.Value) == reflect.TypeOf(left)
	})
}

// alignment of cells is an attribute: our pages allow no inline styles.
var alignment = extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)

// blocks renders what differs from plain Markdown: marks, code in colours, safe links.
type blocks struct {
	*writer
	link ast.Node // whose text is being written; an image in it is not a separate link
	over []int    // the levels of the headings that what is being written is under
}

// RegisterFuncs is goldmark's way to ask who renders what.
func (b *blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindText, b.inline)
	r.Register(ast.KindCodeSpan, b.codeSpan)
	r.Register(ast.KindCodeBlock, b.code)
	r.Register(ast.KindFencedCodeBlock, b.code)
	r.Register(ast.KindHeading, b.heading)
	r.Register(ast.KindLink, b.linked)
	r.Register(ast.KindImage, b.linked)
	r.Register(ast.KindAutoLink, b.autoLink)
	r.Register(extended.KindTable, b.table)
}

// resolved writes a piece of Markdown without its backslashes, and with the letters that its
// entities name.
func resolved(w io.Writer, piece string) {
	markhtml.DefaultWriter.Write(w.(util.BufWriter), []byte(piece))
}

func (b *blocks) inline(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}

	t := n.(*ast.Text)
	b.out = w
	b.write(t.Segment.Start, t.Segment.Stop, resolved)
	// Lines are kept, which writers of prompts mean as they write them.
	if t.SoftLineBreak() || t.HardLineBreak() {
		_, _ = w.WriteString("<br>\n")
	}

	return ast.WalkContinue, nil
}

func (b *blocks) codeSpan(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}

	b.out = w
	_, _ = w.WriteString("<code>")
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.write(t.Segment.Start, t.Segment.Stop, escape)
		}
	}
	_, _ = w.WriteString("</code>")

	return ast.WalkSkipChildren, nil
}

// code renders a block of code, in colours if its language is known.
func (b *blocks) code(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}

	name := ""
	if fenced, ok := n.(*ast.FencedCodeBlock); ok {
		name = strings.ToLower(string(fenced.Language(source)))
	}
	b.out = w
	_, _ = w.WriteString(`<pre tabindex="0" dir="ltr">`)
	if known := languages[name]; known != nil {
		b.coloured(known, n.Lines())
	} else {
		for i := range n.Lines().Len() {
			line := n.Lines().At(i)
			_, _ = w.WriteString(padding(line))
			b.write(line.Start, line.Stop, escape)
		}
	}
	_, _ = w.WriteString("</pre>\n")

	return ast.WalkSkipChildren, nil
}

// padding returns the blanks in front of a line that its container has taken a part of.
func padding(line text.Segment) string { return strings.Repeat(" ", line.Padding) }

// coloured writes lines of code in colours. A token may reach over several lines, and
// each line has its own place in the text.
func (b *blocks) coloured(l *language, lines *text.Segments) {
	var code strings.Builder
	for i := range lines.Len() {
		line := lines.At(i)
		code.WriteString(padding(line) + b.text[line.Start:line.Stop])
	}

	// A line, and where it begins in code.
	i, begin := 0, 0
	l.scan(code.String(), func(kind string, from, to int) {
		for from < to {
			line := lines.At(i)
			// Where it begins in the text, too.
			first := begin + line.Padding
			last := first + line.Stop - line.Start
			end := min(to, last)

			_, _ = io.WriteString(b.out, strings.Repeat(" ", max(min(end, first)-from, 0)))
			if end > first {
				b.token(kind, line.Start+max(from, first)-first, line.Start+end-first)
			}

			from = end
			if end == last {
				i, begin = i+1, last
			}
		}
	})
}

// headingsAbove is how many levels of headings the page has above a text.
const headingsAbove = 2

// heading renders a heading below those of the page. No level is left out, as writers do who begin
// with ##: people who go by headings would look for the one between.
func (b *blocks) heading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		written := n.(*ast.Heading).Level
		for len(b.over) > 0 && b.over[len(b.over)-1] >= written {
			b.over = b.over[:len(b.over)-1]
		}
		b.over = append(b.over, written)
	}

	level := string(rune('0' + min(len(b.over)+headingsAbove, 6)))
	if entering {
		_, _ = w.WriteString("<h" + level + ">")
	} else {
		_, _ = w.WriteString("</h" + level + ">\n")
	}

	return ast.WalkContinue, nil
}

// table lets a wide table scroll by itself, also by keyboard.
func (b *blocks) table(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString(`<div class="scroll" tabindex="0" role="group" aria-label="A table"><table>` + "\n")
	} else {
		_, _ = w.WriteString("</table></div>\n")
	}

	return ast.WalkContinue, nil
}

// linked renders a link or an image as a link. Where the page does not lead, it is text.
func (b *blocks) linked(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		if b.link == n {
			b.link = nil
			_, _ = w.WriteString("</a>")
		}
		return ast.WalkContinue, nil
	}

	var to []byte
	switch n := n.(type) {
	case *ast.Link:
		to = n.Destination
	case *ast.Image:
		to = n.Destination
	}
	address := string(util.URLEscape(to, true))
	if b.link != nil || !leadsOut(address) {
		return ast.WalkContinue, nil
	}

	b.link = n
	openLink(w, address)
	// A link without a text needs something to press.
	if n.FirstChild() == nil {
		escape(w, address)
	}

	return ast.WalkContinue, nil
}

func (b *blocks) autoLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}

	link := n.(*ast.AutoLink)
	label, address := string(link.Label(source)), string(link.URL(source))
	if link.AutoLinkType == ast.AutoLinkEmail {
		address = "mailto:" + label
	}
	if b.link != nil || !leadsOut(address) {
		escape(w, "<"+label+">")
		return ast.WalkContinue, nil
	}
	openLink(w, address)
	escape(w, label)
	_, _ = w.WriteString("</a>")

	return ast.WalkContinue, nil
}

// leadsOut reports whether an address is one of another site, or of mail. A link to a page of
// ours could be mistaken for one that we made.
func leadsOut(address string) bool {
	address = strings.ToLower(address)

	return strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://") ||
		strings.HasPrefix(address, "mailto:")
}

func openLink(w io.Writer, address string) {
	_, _ = io.WriteString(w, `<a href="`+html.EscapeString(address)+`" rel="noopener noreferrer" target="_blank">`)
}

const (
	nestedMax = 20   // quotes and lists that a line opens
	signsMax  = 1000 // what may begin emphasis, a link or code: the sum of its squares by paragraph, per byte
)

// tame reports whether a Markdown text costs no more than in proportion to its bytes: the parser
// takes the square of what is nested in one line, of the signs in one paragraph, and of the cells
// that short rows do not have.
func tame(text string) bool {
	signs, spent, block, columns, rows := 0, 0, 0, 0, 0
	for line := range strings.Lines(text) {
		opened, content := containers(line)
		if opened > nestedMax {
			return false
		}

		// Only an empty line surely ends a paragraph: a quote or an item may as well
		// continue with it.
		if strings.TrimLeft(line, " \t\r\n") == "" {
			spent += signs * signs
			signs, block, columns, rows = 0, 0, 0, 0
		}

		block += len(line)
		if n := delimited(content); n > columns {
			columns, rows, block = n, 0, len(line)
		}
		rows++
		for i := range len(content) {
			if strings.IndexByte("*_[]!<`~", content[i]) >= 0 {
				signs++
			}
		}

		// A row has at least as many bytes as cells, unless they are missing.
		if columns*rows > block+columns {
			return false
		}
	}

	return spent+signs*signs <= signsMax*len(text)
}

// containers returns how many quotes and bulleted or numbered items a line opens, and what
// they hold.
func containers(line string) (opened int, content string) {
	rest := strings.TrimLeft(line, " \t\r\n")
	for rest != "" {
		sign := 1
		if digits := len(rest) - len(strings.TrimLeft(rest, "0123456789")); digits > 0 {
			sign = digits + 1
			if digits > 9 || len(rest) <= digits || rest[digits] != '.' && rest[digits] != ')' {
				return opened, rest
			}
		} else if strings.IndexByte(">-*+", rest[0]) < 0 {
			return opened, rest
		}

		// Anything but a quote needs a blank.
		isItem := len(rest) > sign && strings.IndexByte(" \t\r\n", rest[sign]) >= 0
		if rest[0] != '>' && !isItem {
			return opened, rest
		}
		opened++
		rest = strings.TrimLeft(rest[sign:], " \t\r\n")
	}

	return opened, ""
}

// delimited returns how many columns a line makes of the one above it, if it is all dashes and
// bars.
func delimited(line string) int {
	bars := 0
	for i := range len(line) {
		switch line[i] {
		case '|':
			bars++
		case '-', ':', ' ', '\t', '\r', '\n':
		default:
			return 0
		}
	}
	if !strings.Contains(line, "-") {
		return 0
	}

	return bars + 1
}
