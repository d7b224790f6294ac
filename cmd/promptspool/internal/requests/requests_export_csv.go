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

// csvExport writes a line for each record that a search finds.
//
// Records are held until a cursor follows or the answer is complete, so that no line is written
// twice when the server has to be asked again.
type csvExport struct {
	search   wire.Search // its cursor is where the next request begins
	out      *csv.Writer
	progress *print.Progress
	headed   bool // the heading is written, by this export or by the one that it resumes
	held     [][]string
	lines    int
}

func exportCSV(c *cli.Context, cl *client.Client, id wire.Identity, search wire.Search, out io.Writer) error {
	x := csvExport{
		search:   search,
		out:      csv.NewWriter(out),
		progress: print.NewProgress(c, "Exporting", "records", 0),
		headed:   search.Cursor != "",
	}
	err := inRequests(c.Context, &x.search.Cursor, func() (done bool, err error) {
		if err := x.call(c, cl, id); err != nil {
			return false, err
		}
		return true, x.flush()
	})
	x.progress.End()
	if x.out.Flush(); err != nil {
		return err
	}

	fmt.Fprintf(c.App.ErrWriter, "%s exported.\n", print.Quantity(x.lines, "record"))
	return nil
}

// call asks the server once, and writes what comes up to the last cursor.
func (x *csvExport) call(c *cli.Context, cl *client.Client, id wire.Identity) error {
	x.held = x.held[:0]
	expectHeading := x.search.Cursor == ""

	return cl.ExportCSV(c.Context, id, x.search, func(columns []string) error {
		last := len(columns) - 1
		// The last column is ours, and names a place to continue at, if there is one.
		columns, cursor := columns[:last], columns[last]
		if expectHeading {
			expectHeading = false
			if x.headed {
				return nil
			}
			x.headed = true
			return x.out.Write(columns)
		}

		x.held = append(x.held, columns)
		if cursor == "" {
			return nil
		}
		x.search.Cursor = cursor
		return x.flush()
	})
}

// flush writes the records that are held.
func (x *csvExport) flush() error {
	if err := x.out.WriteAll(x.held); err != nil {
		return err
	}
	x.lines += len(x.held)
	x.held = x.held[:0]

	x.progress.Set("", int64(x.lines))
	return nil
}
