package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/closest"
	"promptspool/api/dashboard/docs"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// docsColumnsMax bounds how long a line of a page is on a wide terminal.
const docsColumnsMax = 100

func docsCommand() *cli.Command {
	return &cli.Command{
		Name:      "docs",
		Usage:     "print a page of the documentation, or the list of pages",
		ArgsUsage: "[PAGE]",
		Action:    printDocs,
	}
}

func printDocs(c *cli.Context) error {
	columns := print.TerminalWidth(c.App.Writer)
	if columns == 0 || columns > docsColumnsMax {
		columns = docsColumnsMax
	}
	if c.NArg() > 1 {
		return config.Usagef(c, "unexpected argument %q: one page at a time", c.Args().Get(1))
	}
	if c.NArg() == 0 {
		listDocs(c)
		return nil
	}

	name := strings.TrimSuffix(c.Args().First(), ".md")
	page := docs.Find(name)
	if page == nil {
		hint := "`promptspool docs` lists the pages."
		if close := closest.Among(name, docs.Names()); len(close) > 0 {
			hint = "Did you mean " + strings.Join(close, " or ") + "? " + hint
		}
		return config.Usagef(c, "there is no page %q. %s", name, hint)
	}
	_, err := fmt.Fprint(c.App.Writer, page.Text(columns))

	return err
}

func listDocs(c *cli.Context) {
	fmt.Fprintln(c.App.Writer,
		"Print a page with `promptspool docs PAGE`. A running server shows the same pages at /docs.")
	for _, section := range docs.Sections() {
		fmt.Fprintf(c.App.Writer, "\n%s\n", section.Title)
		for _, page := range section.Pages {
			fmt.Fprintf(c.App.Writer, "  %-16s  %s\n", page.Name, page.Title)
		}
	}
}
