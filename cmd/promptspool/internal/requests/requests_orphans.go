package requests

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

func listOrphans(c *cli.Context) error {
	v := config.Read(c)
	limit, number := v.Count("limit", wire.PageItemsMax), v.Count("page", wire.PageOffsetMax)
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}

	page, err := pageOf(number, v.Text("cursor"), func(cursor string) (wire.OrphanPage, *string, error) {
		page, err := cl.Orphans(c.Context, id, wire.OrphanQuery{PerPage: limit, Cursor: cursor})
		return page, page.NextCursor, err
	})
	if err != nil {
		return err
	}
	return print.Output(c, page, func(t *print.Table) {
		if page.Total == 0 {
			t.Row("No events wait for a request.")
			return
		}

		t.Head("REQUEST ID", ">EVENTS", "@SINCE", "@LAST", "KINDS", "ACCEPTED BY")
		for _, o := range page.Items {
			t.Row(o.RequestID, o.Events, t.Moment(o.FirstArrivedAt), t.Moment(o.LastArrivedAt),
				strings.Trim(fmt.Sprint(o.Kinds), "[]"), strings.Join(o.Sidecars, " "))
		}
		t.Row()
		t.Row(fmt.Sprintf("Missing: %s, awaited by %s.",
			print.Quantity(page.Total, "request"), print.Quantity(page.Events, "event")))
		if page.NextCursor != nil {
			t.Row("More: --cursor " + *page.NextCursor)
		}
	})
}
