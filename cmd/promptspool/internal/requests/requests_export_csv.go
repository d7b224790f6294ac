package requests

import (
	"encoding/csv"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/print"
)

// exportCSV writes a line for each record that the search finds. What comes is held until a cursor follows or the answer is complete, so
// that no line is written twice when the server has to be asked again. The heading is left out when an export goes on.
func exportCSV(c *cli.Context, cl *client.Client, id wire.Identity, search wire.Search, out io.Writer) error {
	w := csv.NewWriter(out)
	lines, failures, live := 0, 0, print.IsTerminal(c.App.ErrWriter)
	var held [][]string
	headed := search.Cursor != ""
	flush := func() error {
		if err := w.WriteAll(held); err != nil {
			return err
		}
		lines += len(held)
		held = held[:0]
		if live {
			fmt.Fprintf(c.App.ErrWriter, "\r%s ", print.Quantity(lines, "record"))
		}
		return nil
	}
	for done := false; !done; {
		held = held[:0]
		heading := search.Cursor == ""
		err := cl.ExportCSV(c.Context, id, search, func(columns []string) error {
			cursor := columns[len(columns)-1]
			if columns = columns[:len(columns)-1]; heading {
				heading = false
				if headed {
					return nil
				}
				headed = true
				return w.Write(columns)
			}
			held = append(held, columns)
			if cursor == "" {
				return nil
			}
			search.Cursor, failures = cursor, 0
			return flush()
		})
		switch failures++; {
		case err == nil:
			done, err = true, flush()
		case failures <= 3 && retriesExport(c.Context, err):
			err = nil
		}
		if err != nil {
			w.Flush()
			if search.Cursor == "" {
				return err
			}
			return fmt.Errorf("the export broke off: %w\nGo on with the same command and --cursor %s", message(err), print.Printable(search.Cursor))
		}
	}
	if live {
		fmt.Fprint(c.App.ErrWriter, "\r")
	}
	fmt.Fprintf(c.App.ErrWriter, "%s exported.\n", print.Quantity(lines, "record"))
	return nil
}
