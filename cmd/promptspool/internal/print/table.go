package print

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
)

// CellRunesMax is how much of a cell is shown; JSON has the whole.
const CellRunesMax = 80

// Output prints v for a program or, for people, as the table that fill makes, by --output.
func Output(c *cli.Context, v any, fill func(*Table)) error {
	if config.Read(c).AsData() {
		return Data(c, v)
	}
	t := NewTable(c)
	fill(t)
	t.Head()
	return t.err
}

// Outcome prints v for a program or, for people, a sentence, by --output.
func Outcome(c *cli.Context, v any, format string, args ...any) error {
	return Output(c, v, func(t *Table) { t.Row(fmt.Sprintf(format, args...)) })
}

// Table prints rows for people: lists below headings, names with their values, and sentences.
//
// Control characters are taken out of every cell. The lines of a list end at the terminal's edge: wrapped ones
// cannot be read as a table.
type Table struct {
	Painter
	c        *cli.Context // whose --columns counts; nil for all columns
	headings int          // of a list; 0 while rows are names with their values
	picked   []int        // of the list's columns; nil for all
	columns  []column
	spare    []string       // see Spare
	rows     [][]Cell       // that are not printed
	under    map[int][]Cell // lines below rows
	headed   bool           // the headings are printed
	named    string         // the zone that the headings of times name, with a blank before it
	err      error
}

// column is how a column is shown, by the mark of its heading.
type column struct {
	name, mark string
	hidden     bool
	width      int // the largest so far
}

// narrow reports whether the column may be cut.
func (c *column) narrow() bool { return c.mark == "~" || c.mark == "…" }

// Cell is a text with its style.
type Cell struct {
	text  string
	Style Style
}

// Styled returns a cell with a style.
func Styled(text string, s Style) Cell { return Cell{text, s} }

// NewTable begins the output of a command.
func NewTable(c *cli.Context) *Table { return &Table{Painter: NewPainter(c), c: c} }

// Head ends what was begun, and begins a list if there are headings. A list without rows is "None."
//
// A heading that begins with > is of a column aligned to the right, with @ of times, with ~ of names that are cut on
// a narrow terminal, with … of texts of two halves that are cut there, each at its end.
func (t *Table) Head(headings ...string) *Table {
	if t.headings > 0 && !t.headed && len(t.rows) == 1 {
		t.rows[0] = []Cell{{text: "None."}}
	}
	// The table keeps the error.
	_ = t.Flush()
	t.headings, t.columns, t.picked, t.spare, t.headed, t.named = len(headings), nil, nil, nil, false, ""
	if t.headings == 0 {
		return t
	}

	var names []string
	var head []Cell
	for _, h := range headings {
		name := strings.TrimLeft(h, ">@~…")
		mark := strings.TrimSuffix(h, name)
		t.columns = append(t.columns, column{name: name, mark: mark})
		names, head = append(names, name), append(head, Cell{name, Bold})
	}
	if t.c != nil && t.err == nil {
		t.picked, t.err = pick(t.c, names)
	}
	t.columns, t.rows = at(t.columns, t.picked), [][]Cell{at(head, t.picked)}
	return t
}

// Spare names the columns that a narrow terminal leaves out, as many as it must, the first one first.
func (t *Table) Spare(names ...string) *Table {
	// If a person chose columns, all of them are shown.
	if t.picked == nil {
		t.spare = names
	}
	return t
}

// AtLeast sets the minimum widths of the columns.
func (t *Table) AtLeast(widths ...int) {
	for i, width := range at(widths, t.picked) {
		t.columns[i].width = width
	}
}

// Moment is a time. In a list on a terminal, the heading names its zone, if it was not printed before.
func (t *Table) Moment(at time.Time) string {
	text := t.Painter.Moment(at)
	if t.Width > 0 && t.headings > 0 && t.named == "" && !t.headed {
		t.named = text[len(time.DateTime):]
	}
	return strings.TrimSuffix(text, t.named)
}

// MomentOrNone is Moment, or a dash.
func (t *Table) MomentOrNone(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return t.Moment(*at)
}

// Known adds a name and its value, if it has one.
func (t *Table) Known(name, value string) {
	if value != "" {
		t.Row(name, value)
	}
}

// Row adds a line of cells, each a text, a count or a cell with its style. A single one is a sentence, and shown whole.
func (t *Table) Row(cells ...any) {
	if len(cells) != t.headings && (t.headings > 0 || len(cells) < 2) {
		t.Head()
	}
	line, most := []Cell{}, CellRunesMax
	if len(cells) == 1 {
		most = math.MaxInt
	}
	for _, c := range at(cells, t.picked) {
		shown := Cell{}
		switch c := c.(type) {
		case Cell:
			shown = c
		case int:
			shown.text = humanize.Comma(int64(c))
		case int64:
			shown.text = humanize.Comma(c)
		default:
			shown.text = fmt.Sprint(c)
		}

		shown.text = Cut(Printable(shown.text), most)
		line = append(line, shown)
	}
	t.rows = append(t.rows, line)
	if t.headings == 0 && len(cells) < 2 {
		t.Head()
	}
}

// Under puts a line of texts below the row that was added last. It has no columns, and must fit the
// terminal.
func (t *Table) Under(texts ...Cell) {
	if t.under == nil {
		t.under = make(map[int][]Cell)
	}
	t.under[len(t.rows)-1] = texts
}

// Flush prints the rows added since the last call, with columns at least as wide as before.
func (t *Table) Flush() error {
	for i, c := range t.columns {
		if c.mark == "@" && !t.headed && t.named != "" {
			t.rows[0][i].text += t.named
		}
	}
	t.headed = true

	// Columns only grow, because a tail continues below what it has printed.
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(t.columns) {
				t.columns = append(t.columns, column{})
			}
			t.columns[i].width = max(t.columns[i].width, utf8.RuneCountInString(c.text))
		}
	}
	t.fit()

	var out strings.Builder
	for i, row := range t.rows {
		out.WriteString(strings.TrimRight(t.line(row), " ") + "\n")
		if under := t.under[i]; under != nil {
			out.WriteString("  ")
			for _, c := range under {
				out.WriteString(t.Paint(c.Style, Printable(c.text)))
			}
			out.WriteString("\n")
		}
	}
	t.rows, t.under = nil, nil
	if t.err == nil {
		_, t.err = fmt.Fprint(t.Out, out.String())
	}
	return t.err
}

// edge is where the lines of a list end; 0 if nowhere.
func (t *Table) edge() int {
	if t.headings == 0 {
		return 0
	}
	return t.Width
}

// How much of a column that may be cut is left: before others are left out for it, and at least.
const (
	comfortable = 24
	narrowest   = 5
)

// fit leaves out columns and cuts those that may be cut, until lines fit the terminal.
func (t *Table) fit() {
	over := func(kept int) int {
		sum := -2
		for _, c := range t.columns {
			switch {
			case c.hidden:
			case c.narrow():
				sum += min(c.width, kept) + 2
			default:
				sum += c.width + 2
			}
		}
		return sum - t.edge()
	}
	for t.edge() > 0 && len(t.spare) > 0 && over(comfortable) > 0 {
		for i := range t.columns {
			t.columns[i].hidden = t.columns[i].hidden || t.columns[i].name == t.spare[0]
		}
		t.spare = t.spare[1:]
	}
	// Later rows have these columns.
	t.spare = nil

	for t.edge() > 0 && over(math.MaxInt) > 0 {
		widest := &column{width: narrowest}
		for i := range t.columns {
			if c := &t.columns[i]; c.narrow() && !c.hidden && c.width > widest.width {
				widest = c
			}
		}
		if !widest.narrow() {
			// At the edge, line cuts what is left.
			return
		}
		widest.width--
	}
}

// between are the two halves of a text, such as what a call was asked and what it answered.
const between = " → "

// Halves returns a text of two halves, of at most so many characters. The second may be missing.
func Halves(first, second string, most int) string {
	if second == "" {
		return Cut(first, most)
	}
	room := most - utf8.RuneCountInString(between)
	first = Cut(first, max((room+1)/2, room-utf8.RuneCountInString(second)))
	return Cut(first+between+second, most)
}

// line formats a row, cut at the terminal's edge.
func (t *Table) line(row []Cell) string {
	var b strings.Builder
	left := t.edge()
	put := func(s Style, text string) {
		// Cut before it gets its style, whose bytes take no columns.
		if n := utf8.RuneCountInString(text); t.edge() > 0 && n > left {
			if s == blank {
				text = text[:left]
			}
			text, left = Cut(text, left), 0
		} else {
			left -= n
		}
		b.WriteString(t.Paint(s, text))
	}

	for i, c := range row {
		column := &t.columns[i]
		if column.hidden {
			continue
		}
		// The end of a name tells versions apart; that of a heading does not.
		end := ""
		n := utf8.RuneCountInString(c.text)
		if first, second, _ := strings.Cut(c.text, between); column.mark == "…" && n > column.width {
			c.text = Halves(first, second, column.width)
		} else if n > column.width && c.Style != Bold {
			end = string([]rune(c.text)[n-column.width/3:])
		}
		c.text = Cut(c.text, column.width-utf8.RuneCountInString(end)) + end
		gap := strings.Repeat(" ", column.width-utf8.RuneCountInString(c.text))
		if column.mark == ">" {
			put(blank, gap)
		}
		put(c.Style, c.text)
		if column.mark != ">" {
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
