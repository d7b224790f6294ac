package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/dashboard/docs"
	"promptspool/api/words"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// docsColumnsMax bounds how long a line of a page is on a wide terminal.
const docsColumnsMax = 100

func docsCommand() *cli.Command {
	return config.Command("docs [PAGE]", "print a page of the documentation, or the list of pages", printDocs)
}

func printDocs(c *cli.Context) error {
	columns := min(cmp.Or(print.TerminalWidth(c.App.Writer), docsColumnsMax), docsColumnsMax)
	if c.NArg() > 1 {
		return config.Usagef(c, "unexpected argument %q: one page at a time", c.Args().Get(1))
	}
	if c.NArg() == 0 {
		listDocs(help{c.App.Writer, columns})
		return nil
	}

	name := strings.TrimSuffix(c.Args().First(), ".md")
	page := docs.Find(name)
	if page == nil {
		hint := cmp.Or(words.DidYouMean(name, docs.Names()), "; `promptspool docs` lists the pages")
		return config.Usagef(c, "there is no page %q%s", name, hint)
	}
	_, err := fmt.Fprint(c.App.Writer, page.Text(columns))

	return err
}

func listDocs(h help) {
	h.text("Print a page with `promptspool docs PAGE`. A running server shows the same pages at /docs.")
	for _, section := range docs.Sections() {
		var rows [][2]string
		for _, page := range section.Pages {
			rows = append(rows, [2]string{page.Name, page.Title})
		}
		h.entries(section.Title, rows)
	}
}
