package docs

import (
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extension "github.com/yuin/goldmark/extension/ast"
)

// Text returns the page for a terminal of some columns. Paragraphs are wrapped, and tables become
// lists.
func (p *Page) Text(columns int) string {
	source := []byte(p.Source)
	t := &terminal{source: source, columns: columns}
	for block := parse(source).FirstChild(); block != nil; block = block.NextSibling() {
		t.block(block, "")
	}

	return t.out.String()
}

// terminal renders blocks as text.
type terminal struct {
	source  []byte
	columns int
	out     strings.Builder
}

// block writes a block and an empty line.
func (t *terminal) block(n ast.Node, indent string) {
	switch n := n.(type) {
	// The marks around what is generated: comments, which are not for readers.
	case *ast.HTMLBlock:
		return
	case *ast.Heading:
		title := strings.ToUpper(plain(n, t.source))
		if n.Level > 1 {
			title = strings.Repeat("#", n.Level) + " " + plain(n, t.source)
		}
		t.out.WriteString(indent + title + "\n")
	case *ast.FencedCodeBlock:
		for line := range strings.Lines(string(n.Lines().Value(t.source))) {
			t.out.WriteString(indent + "    " + line)
		}
	case *ast.List:
		t.list(n, indent)
	case *extension.Table:
		t.table(n, indent)
	case *ast.Blockquote:
		for child := n.FirstChild(); child != nil; child = child.NextSibling() {
			t.block(child, indent+"  ")
		}
		return
	default:
		t.wrapped(plain(n, t.source), indent, indent)
	}

	t.out.WriteString("\n")
}

// list writes a list's items, each with its blocks below its mark.
func (t *terminal) list(n *ast.List, indent string) {
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		first := indent + "- "
		for child := item.FirstChild(); child != nil; child = child.NextSibling() {
			if inner, ok := child.(*ast.List); ok {
				t.list(inner, indent+"  ")
				continue
			}
			// As it is: a wrapped command could not be pasted.
			if _, ok := child.(*ast.FencedCodeBlock); ok {
				t.block(child, indent+"  ")
				continue
			}
			t.wrapped(plain(child, t.source), first, indent+"  ")
			first = indent + "  "
		}
	}
}

// table writes each row as its first cell with the others below: in columns most tables are too wide.
func (t *terminal) table(n *extension.Table, indent string) {
	var headings []string
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, plain(cell, t.source))
		}
		if headings == nil {
			headings = cells
			continue
		}

		// The first cell is what a reader looks for; the headings name the others.
		t.wrapped(cells[0], indent, indent)
		for i, cell := range cells[1:] {
			if cell != "" {
				t.wrapped(headings[i+1]+": "+cell, indent+"    ", indent+"      ")
			}
		}
	}
}

// wrapped writes words in lines that fit the terminal, with a separate start for the
// first.
func (t *terminal) wrapped(words, first, rest string) {
	t.out.WriteString(Wrap(words, first, rest, t.columns))
}

// Wrap returns words in lines of so many columns. The first line begins with one text, the others with another.
func Wrap(words, first, rest string, columns int) string {
	var out strings.Builder
	line, empty := first, true
	for word := range strings.FieldsSeq(words) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns {
			out.WriteString(line + "\n")
			line, empty = rest, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	return out.String() + line + "\n"
}

// plain is a node's text without markup; code keeps its backticks.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.CodeSpan:
			b.WriteByte('`')
		case *ast.Image:
			b.WriteString(map[bool]string{true: "(Picture: ", false: ")"}[entering])
		case *ast.AutoLink:
			if entering {
				b.Write(n.URL(source))
			}
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		}
		return ast.WalkContinue, nil
	})

	return b.String()
}

// opening is a page's title and its first paragraph.
func opening(source []byte) (title, summary string) {
	for block := parse(source).FirstChild(); block != nil; block = block.NextSibling() {
		switch block := block.(type) {
		case *ast.Heading:
			if title == "" {
				title = strings.ReplaceAll(plain(block, source), "`", "")
			}
		case *ast.Paragraph:
			return title, strings.ReplaceAll(plain(block, source), "`", "")
		}
	}

	return title, ""
}
