// Package print writes what commands show: tables, trends and JSON.
//
// The shown text may come from anybody, so nothing in it reaches a terminal that could
// drive it.
package print

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/aymanbagabas/go-udiff"
	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"promptspool/cmd/promptspool/internal/config"
)

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
		// Below a blank are only the encoder's own line breaks.
		if r < ' ' || !DrivesTerminal(r) {
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

// Explained is a number of things, and why they are there if they are.
func Explained[N int | int64 | uint64](n N, noun, why string) string {
	if n == 0 {
		return "0"
	}
	return Quantity(n, noun) + ", " + why
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

// LineDiff returns the lines that differ, as diff -u does but without file names.
func LineDiff(before, after string) string {
	_, diff, _ := strings.Cut(udiff.Unified("", "", before, after), "+++ \n")
	return diff
}

// Diff prints changed lines, as diff -u does.
func (p Painter) Diff(lines string) {
	styles := map[byte]Style{'+': Green, '-': Red, '@': Cyan}
	for line := range strings.SplitSeq(strings.TrimSuffix(lines, "\n"), "\n") {
		fmt.Fprintln(p.Out, p.Paint(styles[cmp.Or(line, " ")[0]], Printable(line)))
	}
}

// Progress is a line on stderr that says every second how far a command is. It shows nothing where stderr is not a
// terminal. Writing to it counts bytes.
type Progress struct {
	out   io.Writer
	noun  string // what is counted; "" for bytes
	begun time.Time
	timer *time.Timer

	mutex       sync.Mutex
	stage       string // what is being done
	done, total int64  // a total of 0 is not known
}

// NewProgress begins the progress of a command through a number of things; 0 if it is not known.
func NewProgress(c *cli.Context, stage, noun string, total int64) *Progress {
	p := &Progress{out: c.App.ErrWriter, noun: noun, begun: time.Now(), stage: stage, total: total}
	if IsTerminal(p.out) {
		p.timer = time.AfterFunc(time.Second, p.show)
	}
	return p
}

// Write counts bytes.
func (p *Progress) Write(b []byte) (int, error) {
	p.Add(int64(len(b)))
	return len(b), nil
}

// Add counts more things that are done.
func (p *Progress) Add(n int64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.done += n
}

// Set notes how many things are done, and what is being done; "" if that has not changed.
func (p *Progress) Set(stage string, done int64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.stage, p.done = cmp.Or(stage, p.stage), done
}

// End takes the line away.
func (p *Progress) End() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
		fmt.Fprintf(p.out, "\r%78s\r", "")
	}
}

func (p *Progress) show() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.timer == nil {
		return
	}
	fmt.Fprintf(p.out, "\r%-78s", p.text(time.Since(p.begun)))
	p.timer.Reset(time.Second)
}

// text returns how far a command is after a time, with its rate and the time left.
func (p *Progress) text(after time.Duration) string {
	count, noun := humanize.Comma, " "+p.noun
	if p.noun == "" {
		count, noun = func(n int64) string { return humanize.IBytes(uint64(n)) }, ""
	}

	text, rest := p.stage+": ", after.Round(time.Second).String()
	if p.done > 0 {
		text += count(p.done)
		if p.total > 0 {
			text += " of " + count(p.total)
		}
		perSecond := float64(p.done) / after.Seconds()
		text += noun + ", " + count(int64(perSecond)) + noun + "/s, "
		if left := float64(p.total - p.done); left > 0 {
			rest = time.Duration(left/perSecond*1e9).Round(time.Second).String() + " left"
		}
	}
	return text + rest
}
