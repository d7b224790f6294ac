// Package print writes what commands show: tables, trends and JSON.
//
// The shown text may come from anybody, so nothing in it reaches a terminal that could
// drive it.
package print

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/aymanbagabas/go-udiff"
	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/itchyny/gojq"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/api/words"
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

// text returns how far a command is after a time.
func (p *Progress) text(after time.Duration) string {
	count, noun := humanize.Comma, " "+p.noun
	if p.noun == "" {
		count, noun = func(n int64) string { return humanize.IBytes(uint64(n)) }, ""
	}

	text := p.stage + ": "
	switch {
	case p.total > 0:
		text += count(p.done) + " of " + count(p.total) + noun + ", "
	case p.done > 0:
		text += count(p.done) + noun + ", "
	}
	return text + after.Round(time.Second).String()
}

// Data prints v for a program, in the form of --output. The items of a list are a line each in NDJSON and CSV.
func Data(c *cli.Context, v any) error { return dataAs(c, v, config.Read(c).Form()) }

// Line prints an item of a list without an end for a program, in a line of JSON.
func Line(c *cli.Context, v any) error { return dataAs(c, v, config.FormNDJSON) }

func dataAs(c *cli.Context, v any, form string) error {
	wanted := config.Read(c).Columns()
	if form == config.FormJSON && len(wanted) == 0 {
		return emit(c, v, JSON)
	}
	text, err := jsonscan.Marshal(v)
	if err != nil {
		return err
	}
	items, isList := itemsOf(text)
	columns, err := columnsOf(c, items, fieldsOf(reflect.TypeOf(v)))
	if err != nil {
		return err
	}

	// A script that reads a part of a list must notice it.
	if cursor, more := jsonscan.Lookup(text, "next_cursor"); more {
		fmt.Fprintf(c.App.ErrWriter, "More: --cursor %s\n", Printable(jsonscan.Unquote(cursor)))
	}
	if form == config.FormCSV {
		return writeCSV(c.App.Writer, items, columns)
	}
	for i := range items {
		if len(wanted) > 0 {
			some := map[string]json.RawMessage{}
			for j, name := range columns {
				some[wanted[j]], _ = jsonscan.Lookup(items[i], name)
			}
			// JSON stays JSON, which always encodes.
			items[i], _ = jsonscan.Marshal(some)
		}
		if form == config.FormNDJSON {
			err = errors.Join(err, emit(c, items[i], JSONLine))
		}
	}
	switch {
	case form != config.FormJSON:
		return err
	case isList:
		return emit(c, items, JSON)
	}
	return emit(c, items[0], JSON)
}

// emit writes v or, with --jq, each value that the expression makes of it: a line each, and texts as they are.
func emit(c *cli.Context, v any, write func(io.Writer, any) error) error {
	expression := config.Read(c).Expression()
	if expression == nil {
		return write(c.App.Writer, v)
	}
	text, err := jsonscan.Marshal(v)
	if err != nil {
		return err
	}
	var input any
	d := json.NewDecoder(bytes.NewReader(text))
	// No digit of a number is lost.
	d.UseNumber()
	if err := d.Decode(&input); err != nil {
		return err
	}

	values := expression.RunWithContext(c.Context, input)
	for value, more := values.Next(); more && err == nil; value, more = values.Next() {
		switch value := value.(type) {
		case error:
			return fmt.Errorf("--jq: %w", value)
		case string:
			if IsTerminal(c.App.Writer) {
				value = Printable(value)
			}
			_, err = fmt.Fprintln(c.App.Writer, value)
		default:
			text, err = gojq.Marshal(value)
			if err == nil {
				err = JSONLine(c.App.Writer, json.RawMessage(text))
			}
		}
	}
	return err
}

// fieldsOf returns the fields that a type has as JSON, or the items of a list of that type: of those
// that are left out when they are empty, a page may have none.
func fieldsOf(t reflect.Type) (names []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch name {
		case "items":
			return fieldsOf(field.Type)
		case "", "-":
		default:
			names = append(names, name)
		}
	}
	return names
}

// columnsOf returns the fields that items have or those of --columns, which may also be among others.
func columnsOf(c *cli.Context, items []json.RawMessage, others []string) (names []string, err error) {
	for _, item := range items {
		for m := range jsonscan.Members(item) {
			if !slices.Contains(names, m.Name) {
				names = append(names, m.Name)
			}
		}
	}
	wanted := config.Read(c).Columns()
	if wanted == nil {
		return names, nil
	}

	for _, name := range others {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if names == nil {
		// Nothing is known of them.
		return wanted, nil
	}
	picked, err := pick(c, names)
	return at(names, picked), err
}

// itemsOf returns the items of a list; anything else is one item.
func itemsOf(text json.RawMessage) (items []json.RawMessage, isList bool) {
	list, isPage := jsonscan.Lookup(text, "items")
	switch {
	case isPage:
	case text[0] == '[':
		list = text
	default:
		return []json.RawMessage{text}, false
	}

	// Not nil, so that a list without items is printed as [].
	items = []json.RawMessage{}
	for _, item := range jsonscan.Elements(list) {
		items = append(items, item)
	}
	return items, true
}

// writeCSV writes items as lines. Texts are without quotes, and what has members is JSON.
func writeCSV(w io.Writer, items []json.RawMessage, columns []string) error {
	var lines [][]string
	if columns != nil {
		heads := slices.Clone(columns)
		for i := range heads {
			heads[i] = columnName(heads[i])
		}
		lines = append(lines, heads)
	}

	for _, item := range items {
		line := make([]string, len(columns))
		for i, name := range columns {
			value, exists := jsonscan.Lookup(item, name)
			switch {
			case exists && value[0] == '"':
				line[i] = wire.CSVCell(jsonscan.Unquote(value))
			case exists:
				line[i] = string(value)
			}
			if IsTerminal(w) {
				line[i] = Printable(line[i])
			}
		}
		lines = append(lines, line)
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// columnName returns the name of a column by its heading or by its field in JSON.
func columnName(name string) string {
	return wire.ColumnName(strings.ToLower(strings.ReplaceAll(name, " ", "_")))
}

// pick returns where the columns of --columns are among those that exist; nil for all of them.
func pick(c *cli.Context, columns []string) ([]int, error) {
	plain := make([]string, len(columns))
	for i, name := range columns {
		plain[i] = columnName(name)
	}

	r, flag := config.Read(c), "columns"
	if c.String("json") != "" {
		flag = "json"
	}
	all := strings.Join(plain, ", ")
	var picked []int
	for _, name := range r.Columns() {
		i := slices.Index(plain, columnName(name))
		if i < 0 {
			hint := ""
			near := words.Closest(name, plain)
			if len(near) == 0 {
				near = words.Closest(name, columns)
			}
			if len(near) > 0 {
				hint = "; did you mean " + english.WordSeries(near, "or") + "?"
			}
			r.RejectValue(flag, name, "is not one of "+all+hint)
			// The list is long, and once is enough.
			all = "these"
			continue
		}
		picked = append(picked, i)
	}
	return picked, r.Err()
}

// at returns the values at some places, or all where there are none.
func at[T any](values []T, places []int) []T {
	if places == nil {
		return values
	}
	some := make([]T, len(places))
	for i, place := range places {
		some[i] = values[place]
	}
	return some
}
