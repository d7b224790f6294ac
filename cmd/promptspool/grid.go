package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

// style is how a terminal shows a text.
type style string

const (
	unstyled style = ""
	blank    style = " " // of gaps
	bold     style = "1"
	faint    style = "2"
	red      style = "31"
	green    style = "32"
	yellow   style = "33"
	cyan     style = "36"
)

// colours says whether w shows styles: only a terminal does, and not if NO_COLOR is set (https://no-color.org).
func colours(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// painter writes texts with styles, or without where nothing shows them.
type painter struct {
	w     io.Writer
	on    bool
	width int // columns of the terminal; 0: it is none, and lines are as long as they are
}

func newPainter(c *cli.Context) painter {
	return painter{c.App.Writer, colours(c.App.Writer), terminalWidth(c.App.Writer)}
}

// terminalWidth is how many columns a terminal has; 0 if w is none.
func terminalWidth(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

func (p painter) paint(s style, text string) string {
	if !p.on || s == unstyled || s == blank || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// grid is a table whose cells have styles and whose columns of numbers stand to the right. What drives the terminal is taken
// out of every cell. Lines end at the terminal's edge: broken ones cannot be read as a table.
type grid struct {
	painter
	right  []bool // by column
	widths []int  // the largest so far
	rows   [][]cell
}

type cell struct {
	text  string
	style style
}

// newGrid begins a table. A heading that begins with > is of a column that stands to the right.
func newGrid(p painter, headings ...string) *grid {
	g := &grid{painter: p}
	var head []cell
	for _, h := range headings {
		name, right := strings.CutPrefix(h, ">")
		g.right = append(g.right, right)
		head = append(head, cell{name, bold})
	}
	g.rows = [][]cell{head}
	return g
}

// row adds a line; a cell is a text, or a cell with its style.
func (g *grid) row(cells ...any) {
	var line []cell
	for _, c := range cells {
		styled, ok := c.(cell)
		if !ok {
			styled = cell{text: fmt.Sprint(c)}
		}
		runes := []rune(printable(styled.text))
		if len(runes) > cellRunesMax {
			runes = append(runes[:cellRunesMax-1], '…')
		}
		styled.text = string(runes)
		line = append(line, styled)
	}
	g.rows = append(g.rows, line)
}

// flush writes what was added since the last time, never narrower than before.
func (g *grid) flush() error {
	if g.widths == nil {
		g.widths = make([]int, len(g.right))
	}
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
	_, err := io.WriteString(g.w, out.String())
	return err
}

func (g *grid) line(row []cell) string {
	var b strings.Builder
	left := g.width
	put := func(s style, text string) {
		if n := utf8.RuneCountInString(text); g.width > 0 && n > left {
			text = string([]rune(text)[:left])
			if left > 0 && s != blank {
				text = string([]rune(text)[:left-1]) + "…"
			}
			left = 0
		} else {
			left -= n
		}
		b.WriteString(g.paint(s, text))
	}
	for i, c := range row {
		gap := strings.Repeat(" ", g.widths[i]-utf8.RuneCountInString(c.text))
		if g.right[i] {
			put(blank, gap)
		}
		put(c.style, c.text)
		if !g.right[i] {
			put(blank, gap)
		}
		put(blank, "  ")
	}
	return b.String()
}

// sparks draws numbers as bars of one line, the largest as high as a line is. Nothing stands for 0.
func sparks(numbers []float64) string {
	const bars = "▁▂▃▄▅▆▇█"
	most := 0.0
	for _, n := range numbers {
		most = max(most, n)
	}
	var b strings.Builder
	for _, n := range numbers {
		if n <= 0 {
			b.WriteByte(' ')
			continue
		}
		i := min(int(n/most*8), 7)
		b.WriteRune([]rune(bars)[i])
	}
	return b.String()
}
