package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/urfave/cli/v2"
)

func outputFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "table", Usage: "table or json", EnvVars: env("output")}
}

// table is columns for people. Cells come from anybody's data: control characters are taken out of them, so that none can
// drive the terminal.
type table struct{ w *tabwriter.Writer }

func (t *table) row(cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(t.w, "\t")
		}
		fmt.Fprint(t.w, printable(fmt.Sprint(cell)))
	}
	fmt.Fprintln(t.w)
}

// printable replaces what a terminal could take as a command, and cuts a long cell.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > 80 {
		return string(runes[:79]) + "…"
	}
	return s
}

// output prints v as JSON or as the table that fill makes, by --output.
func output(c *cli.Context, v any, fill func(*table)) error {
	switch text(c, "output") {
	case "json":
		return printJSON(c.App.Writer, v)
	case "table":
		t := &table{tabwriter.NewWriter(c.App.Writer, 0, 8, 2, ' ', 0)}
		fill(t)
		return t.w.Flush()
	}
	return usagef(c, "--output: %q is not one of table, json", c.String("output"))
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
