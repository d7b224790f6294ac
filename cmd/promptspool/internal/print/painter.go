package print

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"promptspool/cmd/promptspool/internal/config"
)

// Style is how a terminal shows a text.
type Style string

// The styles in use, as the codes of a terminal.
const (
	Unstyled Style = ""
	blank    Style = " " // of gaps
	Bold     Style = "1"
	Faint    Style = "2"
	Red      Style = "31"
	Green    Style = "32"
	Yellow   Style = "33"
	Cyan     Style = "36"
)

// IsTerminal reports whether w is a terminal, and a person reads it.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// showsStyles reports whether w shows styles: only a terminal does, and not if NO_COLOR is set (https://no-color.org).
func showsStyles(w io.Writer) bool {
	return IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// TerminalWidth returns how many columns a terminal has; 0 if w is none.
func TerminalWidth(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// Painter writes texts with styles, or without where nothing shows them.
type Painter struct {
	Out   io.Writer
	Width int // columns of the terminal; 0 means it is none, and lines are as long as they are

	styles bool           // are shown
	zone   *time.Location // of times; nil is the machine's
}

// Moment is a time for people.
func (p Painter) Moment(at time.Time) string {
	return at.In(cmp.Or(p.zone, time.Local)).Format(momentLayout)
}

// NewPainter returns a painter of a command's output.
func NewPainter(c *cli.Context) Painter {
	w := c.App.Writer
	return Painter{Out: w, Width: TerminalWidth(w), styles: showsStyles(w), zone: config.Read(c).Zone()}
}

// Paint returns a text with its style.
func (p Painter) Paint(s Style, text string) string {
	if !p.styles || s == Unstyled || s == blank || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// shownRunesMax is how much of one text is shown; JSON has the whole.
const shownRunesMax = 20_000

// Lines prints a text line by line, without what drives a terminal.
func (p Painter) Lines(s Style, text string) {
	// By characters: a cut within one would print as rubbish.
	runes := []rune(text)
	cut := len(runes) > shownRunesMax
	if cut {
		runes = runes[:shownRunesMax]
	}

	for line := range strings.Lines(string(runes)) {
		line = strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")
		fmt.Fprintln(p.Out, strings.TrimRight("  "+p.Paint(s, Printable(line)), " "))
	}
	if cut {
		fmt.Fprintln(p.Out, p.Paint(Faint, "  … the rest: -o json"))
	}
}
