package print

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
)

// cellRunesMax is how much of a cell is shown; JSON has the whole.
const cellRunesMax = 80

// Output prints v for a program or, for people, as the table that fill makes, by --output.
func Output(c *cli.Context, v any, fill func(*Table)) error {
	if config.Read(c).AsData() {
		return Data(c, v)
	}
	t := newTable(c.App.Writer, config.Read(c).Zone())
	t.c = c
	fill(t)
	return t.Flush()
}

// Table is a table for people, of columns without styles.
type Table struct {
	w    *tabwriter.Writer
	zone *time.Location
	c    *cli.Context // whose --columns counts; nil for all columns

	headed int   // how many columns a list has; 0 if there is none
	head   []any // the headings, until the first row
	picked []int // of the list's columns; nil for all
	err    error
}

// newTable begins a table whose times are in a zone.
func newTable(w io.Writer, zone *time.Location) *Table {
	return &Table{w: tabwriter.NewWriter(w, 0, 8, 2, ' ', 0), zone: zone}
}

// Flush writes the rows so far. The columns of later ones are apart from theirs.
func (t *Table) Flush() error {
	if t.err != nil {
		return t.err
	}
	if t.head != nil {
		t.Line("None.")
	}
	t.head = nil
	return t.w.Flush()
}

// Head begins a list with the headings of its columns. Without a row, the list is "None."
func (t *Table) Head(headings ...any) {
	if t.c != nil && t.err == nil {
		t.picked, t.err = pick(t.c, texts(headings))
	}
	t.headed, t.head = len(headings), headings
}

func texts(cells []any) (all []string) {
	for _, cell := range cells {
		all = append(all, fmt.Sprint(cell))
	}
	return all
}

// Line adds a line without columns, whole, however long it is.
func (t *Table) Line(text string) { _, _ = fmt.Fprintln(t.w, Printable(text)) }

// Row adds a line of columns.
func (t *Table) Row(cells ...any) {
	if t.err != nil {
		return
	}
	if head := t.head; head != nil {
		t.head = nil
		t.Row(head...)
	}
	if len(cells) == t.headed {
		cells = at(cells, t.picked)
	}
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(t.w, "\t")
		}
		fmt.Fprint(t.w, shorten(fmt.Sprint(cell)))
	}
	fmt.Fprintln(t.w)
}

// Known adds a line of a name and its value, if it has one.
func (t *Table) Known(name, value string) {
	if value != "" {
		t.Row(name, value)
	}
}

// shorten cuts a text to what a cell shows, without what drives the terminal.
func shorten(text string) string { return Cut(Printable(text), cellRunesMax) }

// Printable replaces what drives the terminal by blanks: what is printed may come from anybody.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		// One blank for each, so that columns stay in line.
		if DrivesTerminal(r) {
			return ' '
		}
		return r
	}, s)
}

// DrivesTerminal reports whether a terminal may take a character as a command, or turn the direction of what follows.
func DrivesTerminal(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

// JSON prints v over several lines. Characters that could drive the terminal are escaped,
// which changes no value.
func JSON(w io.Writer, v any) error { return encodeJSON(w, v, "  ") }

// JSONLine is printJSON in one line, for programs that read many.
func JSONLine(w io.Writer, v any) error { return encodeJSON(w, v, "") }

// encodeJSON prints v, with escapes in the place of what could drive the terminal.
func encodeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}

	var out []byte
	for _, r := range b.String() {
		if r < ' ' || !DrivesTerminal(r) { // below a blank are only the encoder's own line breaks
			out = append(out, string(r)...)
			continue
		}
		// JSON escapes what is beyond 16 bits as two units.
		for _, unit := range utf16.Encode([]rune{r}) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}

	_, err := w.Write(out)
	return err
}

// Quantity is a number of things in words: "1 event", "1,024 events".
func Quantity[N int | int64 | uint64](n N, noun string) string {
	return humanize.Comma(int64(n)) + " " + english.PluralWord(int(n), noun, "")
}

// DeadLetters is a number of dead letters in words: "12", or "12 (3 dropped)" where some
// had no space.
func DeadLetters(dead, dropped int64) string {
	if dropped == 0 {
		return humanize.Comma(dead)
	}
	return fmt.Sprintf("%s (%s dropped)", humanize.Comma(dead), humanize.Comma(dropped))
}

// momentLayout names the zone: what is printed is read elsewhere, too.
const momentLayout = "2006-01-02 15:04:05 MST"

// Moment is a time for people, in the table's zone.
func (t *Table) Moment(at time.Time) string { return at.In(t.zone).Format(momentLayout) }

// MomentOrNone is Moment, or a dash.
func (t *Table) MomentOrNone(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return t.Moment(*at)
}

// Age is a span of time in its two largest units.
func Age(d time.Duration) string {
	switch d = max(0, d); {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd %dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm %ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// Scores are the scores of a record in one line.
func Scores(list []wire.Score) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = s.String()
	}
	return strings.Join(texts, " ")
}
