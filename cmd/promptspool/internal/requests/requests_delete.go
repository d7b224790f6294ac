package requests

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

func deleteRequests(c *cli.Context) error {
	var d wire.Deletion
	var where *wire.Filter
	switch pair := config.Read(c).Text("metadata"); {
	case (pair == "") == (c.NArg() == 0) || c.NArg() > 1:
		return config.Usagef(c, "give one request id, or --metadata key=value")
	case pair == "":
		d.RequestID = c.Args().First()
	default:
		var ok bool
		d.Key, d.Value, ok = strings.Cut(pair, "=")
		if !ok || d.Key == "" || d.Value == "" {
			return config.WrongValue(c, "metadata", pair, "is not key=value")
		}
		selected, err := filterline.Where("metadata", d.Key, d.Value).Compile(filterline.Clock{})
		if err != nil {
			return err
		}
		where = selected
	}

	cl, id, err := config.Read(c).Remote()
	if err != nil {
		return err
	}

	if where == nil {
		d.RequestID, err = requestID(c, cl, id, d.RequestID)
		if err != nil {
			return err
		}
	}
	if !c.Bool("yes") {
		what := "the record " + d.RequestID
		if where != nil {
			// By the same condition as the deletion, so that the number is what would go.
			page, err := cl.Search(c.Context, id, wire.Search{FilterGroup: where, PerPage: 1})
			if err != nil {
				return err
			}
			what = print.Quantity(page.Total, "record")
			if page.TotalIsLowerBound {
				what = "more than " + what
			}
		}
		return config.Usagef(c, "this would delete %s permanently; give --yes to do it", what)
	}

	progress := print.NewProgress(c, "Deleting", "", 0)
	deleted, err := cl.Delete(c.Context, id, d)
	if progress.End(); err != nil {
		return err
	}
	return print.Output(c, deleted, func(t *print.Table) {
		t.Row("records", deleted.Records)
		t.Row("events", deleted.Events)
		// PostgreSQL gives its space back when it likes, and no moment can be told.
		if !deleted.GoneBy.IsZero() {
			t.Row("off the disk", "by "+t.Moment(deleted.GoneBy))
		}
	})
}

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
