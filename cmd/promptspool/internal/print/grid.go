package print

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Grid is a table whose cells have styles, and whose columns of numbers are aligned to the right.
//
// Control characters are taken out of every cell. Lines end at the terminal's edge: wrapped
// ones cannot be read as a table.
type Grid struct {
	Painter
	picked  []int // of the columns; nil for all
	err     error // of --columns
	columns []column
	spare   []string // see Spare
	rows    [][]Cell
	under   map[int][]Cell // lines below rows
	named   string         // the zone that the headings of times name, with a blank before it
	headed  bool           // the headings are printed
}

// column is how a column is shown, by the mark of its heading.
type column struct {
	name          string
	right, narrow bool // aligned to the right; may be cut
	times, hidden bool
	width         int // the largest so far
}

// Cell is a text with its style.
type Cell struct {
	text  string
	Style Style
}

// Styled returns a cell with a style.
func Styled(text string, s Style) Cell { return Cell{text, s} }

// NewGrid begins a table. A heading that begins with > is of a column aligned to the right, with @ of times,
// with ~ of texts that are cut on a narrow terminal.
func NewGrid(p Painter, headings ...string) *Grid {
	g := &Grid{Painter: p}
	var names []string
	var head []Cell
	for _, h := range headings {
		name := strings.TrimLeft(h, ">@~")
		mark := strings.TrimSuffix(h, name)
		g.columns = append(g.columns, column{name: name, right: mark == ">", narrow: mark == "~", times: mark == "@"})
		names = append(names, name)
		head = append(head, Cell{name, Bold})
	}
	if p.c != nil {
		g.picked, g.err = pick(p.c, names)
	}
	g.columns = at(g.columns, g.picked)
	g.rows = [][]Cell{at(head, g.picked)}
	return g
}

// Spare names the columns that a narrow terminal leaves out, as many as it must, the first one first.
func (g *Grid) Spare(names ...string) *Grid {
	if g.picked == nil { // else a person chose them
		g.spare = names
	}
	return g
}

// Left returns the names of the columns that the terminal had no room for. Call it after Flush.
func (g *Grid) Left() (names []string) {
	for _, c := range g.columns {
		if c.hidden && !slices.Contains(names, c.name) {
			names = append(names, c.name)
		}
	}
	return names
}

// Moment is a time in a column of times. On a terminal the heading names its zone, if it was not printed before.
func (g *Grid) Moment(at time.Time) string {
	text := g.Painter.Moment(at)
	if g.Width > 0 && g.named == "" && !g.headed {
		g.named = text[len(time.DateTime):]
	}
	return strings.TrimSuffix(text, g.named)
}

// AtLeast sets the minimum widths of the columns.
func (g *Grid) AtLeast(widths ...int) {
	for i, width := range at(widths, g.picked) {
		g.columns[i].width = width
	}
}

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

// Under puts a line of texts below the row that was added last. It has no columns, and must fit the
// terminal.
func (g *Grid) Under(texts ...Cell) {
	if g.under == nil {
		g.under = make(map[int][]Cell)
	}
	g.under[len(g.rows)-1] = texts
}

// Flush writes the rows added since the last call, with columns at least as wide as before.
func (g *Grid) Flush() error {
	if g.err != nil {
		return g.err
	}
	for i, c := range g.columns {
		if c.times && !g.headed {
			g.rows[0][i].text += g.named
		}
	}
	g.headed = true

	// Columns only grow, because a tail continues below what it has printed.
	for _, row := range g.rows {
		for i, c := range row {
			g.columns[i].width = max(g.columns[i].width, utf8.RuneCountInString(c.text))
		}
	}
	g.fit()

	var out strings.Builder
	for i, row := range g.rows {
		out.WriteString(strings.TrimRight(g.line(row), " ") + "\n")
		if under := g.under[i]; under != nil {
			out.WriteString("  ")
			for _, c := range under {
				out.WriteString(g.Paint(c.Style, Printable(c.text)))
			}
			out.WriteString("\n")
		}
	}
	g.rows, g.under = nil, nil

	_, err := io.WriteString(g.Out, out.String())
	return err
}

// How much of a column that may be cut is left: before others are left out for it, and at least.
const (
	comfortable = 24
	narrowest   = 5
)

// fit leaves out columns and cuts those that may be cut, until lines fit the terminal.
func (g *Grid) fit() {
	over := func(kept int) int {
		sum := -2
		for _, c := range g.columns {
			switch {
			case c.hidden:
			case c.narrow:
				sum += min(c.width, kept) + 2
			default:
				sum += c.width + 2
			}
		}
		return sum - g.Width
	}
	for g.Width > 0 && len(g.spare) > 0 && over(comfortable) > 0 {
		for i := range g.columns {
			g.columns[i].hidden = g.columns[i].hidden || g.columns[i].name == g.spare[0]
		}
		g.spare = g.spare[1:]
	}
	g.spare = nil // what is printed from here on has these columns

	for i := range g.columns {
		if c := &g.columns[i]; c.narrow && g.Width > 0 {
			c.width = max(c.width-max(over(math.MaxInt), 0), min(c.width, narrowest))
		}
	}
}

// line formats a row, cut at the terminal's edge.
func (g *Grid) line(row []Cell) string {
	var b strings.Builder
	left := g.Width
	put := func(s Style, text string) {
		// Cut before it gets its style, whose bytes take no columns.
		if n := utf8.RuneCountInString(text); g.Width > 0 && n > left {
			if s == blank {
				text = text[:left]
			}
			text, left = Cut(text, left), 0
		} else {
			left -= n
		}
		b.WriteString(g.Paint(s, text))
	}

	for i, c := range row {
		column := &g.columns[i]
		if column.hidden {
			continue
		}
		// The end of a name tells versions apart; that of a heading does not.
		end := ""
		if n := utf8.RuneCountInString(c.text); n > column.width && c.Style != Bold {
			end = string([]rune(c.text)[n-column.width/3:])
		}
		c.text = Cut(c.text, column.width-utf8.RuneCountInString(end)) + end
		gap := strings.Repeat(" ", column.width-utf8.RuneCountInString(c.text))
		if column.right {
			put(blank, gap)
		}
		put(c.Style, c.text)
		if !column.right {
			put(blank, gap)
		}
		put(blank, "  ")
	}
	return b.String()
}

// Cut cuts a text to so many characters.
func Cut(text string, most int) string {
	runes := []rune(text)
	switch {
	case len(runes) <= most:
		return text
	case most <= 0:
		return ""
	}
	return string(runes[:most-1]) + "…"
}
