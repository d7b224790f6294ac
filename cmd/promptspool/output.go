package main

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
)

// cellRunesMax is how much of a cell is shown; JSON has the whole.
const cellRunesMax = 80

func outputFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "table", DefaultText: "table", Usage: "the `form` of what is printed: table or json", EnvVars: env("output")}
}

// output prints v as JSON or as the table that fill makes, by --output.
func output(c *cli.Context, v any, fill func(*table)) error {
	switch form := text(c, "output"); form {
	case "json":
		return printJSON(c.App.Writer, v)
	case "table":
		t := newTable(c.App.Writer)
		fill(t)
		return t.w.Flush()
	default:
		return wrong(c, "output", form, "is not one of table, json")
	}
}

// table is columns for people.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer) *table { return &table{tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)} }

func (t *table) row(cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(t.w, "\t")
		}
		text := []rune(printable(fmt.Sprint(cell)))
		if len(text) > cellRunesMax {
			text = append(text[:cellRunesMax-1], '…')
		}
		fmt.Fprint(t.w, string(text))
	}
	fmt.Fprintln(t.w)
}

// printable puts a blank for what drives the terminal. What is printed comes from anybody's data.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if drivesTerminal(r) {
			return ' '
		}
		return r
	}, s)
}

// drivesTerminal says whether a terminal may take a character as a command, or turn the direction of what follows.
func drivesTerminal(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

// printJSON prints v over several lines. What could drive the terminal is escaped, which changes no value.
func printJSON(w io.Writer, v any) error { return encodeJSON(w, v, "  ") }

// printJSONLine is printJSON in one line, for programs that read many.
func printJSONLine(w io.Writer, v any) error { return encodeJSON(w, v, "") }

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
		if r < ' ' || !drivesTerminal(r) { // below a blank are only the encoder's own line breaks
			out = append(out, string(r)...)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	_, err := w.Write(out)
	return err
}

// quantity is a number of things in words: "1 event", "1,024 events".
func quantity[N int | int64 | uint64](n N, noun string) string {
	return humanize.Comma(int64(n)) + " " + english.PluralWord(int(n), noun, "")
}

// moment is a time for people, in their zone.
func moment(t time.Time) string { return t.Local().Format(time.DateTime) }

// momentOrNone is moment, or a dash.
func momentOrNone(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return moment(*t)
}
