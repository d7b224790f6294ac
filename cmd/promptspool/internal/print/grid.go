package print

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Grid is a table whose cells have styles, and whose columns of numbers are aligned to the right.
//
// Control characters are taken out of every cell. Lines end at the terminal's edge: wrapped
// ones cannot be read as a table.
type Grid struct {
	Painter
	picked []int  // of the columns; nil for all
	err    error  // of --columns
	right  []bool // by column
	widths []int  // the largest so far
	rows   [][]Cell
}

// Cell is a text with its style.
type Cell struct {
	text  string
	Style Style
}

// Styled returns a cell with a style.
func Styled(text string, s Style) Cell { return Cell{text, s} }

// NewGrid begins a table. The column of a heading that begins with > is aligned to the right.
func NewGrid(p Painter, headings ...string) *Grid {
	g := &Grid{Painter: p}
	var names []string
	var head []Cell
	for _, h := range headings {
		name, right := strings.CutPrefix(h, ">")
		g.right = append(g.right, right)
		names = append(names, name)
		head = append(head, Cell{name, Bold})
	}
	if p.c != nil {
		g.picked, g.err = pick(p.c, names)
	}
	g.right = at(g.right, g.picked)
	g.rows = [][]Cell{at(head, g.picked)}
	return g
}

// WithoutHeadings removes the headings. Call it before the first row.
func (g *Grid) WithoutHeadings() { g.rows = nil }

// AtLeast sets the minimum widths of the columns.
func (g *Grid) AtLeast(widths ...int) { g.widths = at(widths, g.picked) }

// Row adds a line. A cell is a text, or a cell with its style.
func (g *Grid) Row(cells ...any) {
	var line []Cell
	for _, c := range at(cells, g.picked) {
		shown, ok := c.(Cell)
		if !ok {
			shown = Cell{text: fmt.Sprint(c)}
		}
		shown.text = shorten(shown.text)
		line = append(line, shown)
	}
	g.rows = append(g.rows, line)
}

// Flush writes the rows added since the last call, with columns at least as wide as before.
func (g *Grid) Flush() error {
	if g.err != nil {
		return g.err
	}
	if g.widths == nil {
		g.widths = make([]int, len(g.right))
	}
	// Columns only grow, because a tail continues below what it has printed.
	for _, row := range g.rows {
		for i, c := range row {
			g.widths[i] = max(g.widths[i], utf8.RuneCountInString(c.text))
		}
	}

	var out strings.Builder
	for _, row := range g.rows {
		out.WriteString(strings.TrimRight(g.line(row), " ") + "\n")
	}
	g.rows = nil

	_, err := io.WriteString(g.Out, out.String())
	return err
}

// line formats a row, cut at the terminal's edge.
func (g *Grid) line(row []Cell) string {
	var b strings.Builder
	left := g.Width
	put := func(s Style, text string) {
		// Cut before it gets its style, whose bytes take no columns.
		if n := utf8.RuneCountInString(text); g.Width > 0 && n > left {
			text = string([]rune(text)[:left])
			if left > 0 && s != blank {
				text = string([]rune(text)[:left-1]) + "…"
			}
			left = 0
		} else {
			left -= n
		}
		b.WriteString(g.Paint(s, text))
	}

	for i, c := range row {
		gap := strings.Repeat(" ", g.widths[i]-utf8.RuneCountInString(c.text))
		if g.right[i] {
			put(blank, gap)
		}
		put(c.Style, c.text)
		if !g.right[i] {
			put(blank, gap)
		}
		put(blank, "  ")
	}
	return b.String()
}
