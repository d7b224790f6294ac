package templates

import (
	"cmp"
	"fmt"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/api/words"
)

// printUnmatched says that no templates are as asked, and what is close to it.
func printUnmatched(c *cli.Context, cl *client.Client, id wire.Identity, q wire.TemplateListQuery) error {
	all, err := cl.List(c.Context, id, wire.TemplateListQuery{Page: 1, PerPage: wire.PageItemsMax})
	if err != nil {
		return err
	}
	known := wire.LabelNames(all.Items)
	if q.Name != "" {
		known = nil
		for _, t := range all.Items {
			known = append(known, t.Name)
		}
	}

	near := words.DidYouMean(cmp.Or(q.Name, q.Label), known)
	_, err = fmt.Fprintln(c.App.Writer, "No templates match"+cmp.Or(near, "."))
	return err
}
