package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
)

func orphansCommand() *cli.Command {
	return &cli.Command{
		Name: "orphans", Usage: "list requests that have not come, though scores, metadata or links of theirs have",
		Flags: append(own("requests orphans",
			stringFlag("limit", "100", "the `number` of lines, at most 1000"),
			stringFlag("cursor", "", "go on where an earlier list ended, at the `cursor` that it told"),
		), remoteFlags()...),
		Action: listOrphans,
	}
}

func listOrphans(c *cli.Context) error {
	v := values{c: c}
	limit := v.count("limit", wire.PageItemsMax)
	cl, id := v.remote()
	if err := v.err(); err != nil {
		return err
	}
	defer cl.Close()

	page, err := cl.Orphans(c.Context, id, wire.OrphanQuery{PerPage: limit, Cursor: text(c, "cursor")})
	if err != nil {
		return err
	}
	return output(c, page, func(t *table) {
		if page.Total == 0 {
			t.row("No events wait for a request.")
			return
		}
		t.row("REQUEST_ID", "EVENTS", "SINCE", "LAST", "KINDS", "ACCEPTED BY")
		for _, o := range page.Items {
			kinds := make([]string, len(o.Kinds))
			for i, k := range o.Kinds {
				kinds[i] = string(k)
			}
			t.row(o.RequestID, o.Events, moment(o.FirstArrivedAt), moment(o.LastArrivedAt), strings.Join(kinds, " "), strings.Join(o.Sidecars, " "))
		}
		t.w.Flush()
		fmt.Fprintf(c.App.Writer, "\nMissing: %s, awaited by %s.\n", quantity(page.Total, "request"), quantity(page.Events, "event"))
		if page.NextCursor != nil {
			fmt.Fprintf(c.App.Writer, "More: --cursor %s\n", printable(*page.NextCursor))
		}
	})
}
