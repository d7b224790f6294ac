package main

import (
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
)

const (
	tailEvery   = time.Second // how often the server is asked
	tailPage    = 200         // records of one question; more in a second are fetched by further ones
	tailPageMax = 20          // questions before it goes on with the newest
	tailKnown   = tailPage * tailPageMax
)

func tailCommand() *cli.Command {
	return &cli.Command{
		Name: "tail", Usage: "follow what is logged, oldest above, until Ctrl-C",
		Flags: append(own("requests tail", append(filterFlags(),
			stringFlag("limit", "10", "the `number` of records to begin with, at most 1000"))...), remoteFlags()...),
		Action: tailRequests,
	}
}

// tail knows what was shown.
type tail struct {
	search wire.Search
	since  time.Time // what is older was there before the first record shown
	known  map[string]bool
	order  []string // of known, the oldest first
}

func tailRequests(c *cli.Context) error {
	cl, id, err := remote(c)
	if err != nil {
		return err
	}
	defer cl.Close()
	where, words, err := filter(c)
	if err != nil {
		return err
	}
	limit, err := count(c, "limit", wire.PageItemsMax)
	if err != nil {
		return err
	}
	if form := text(c, "output"); form != "table" && form != "json" {
		return output(c, nil, nil)
	}
	t := &tail{search: wire.Search{FilterGroup: where, Q: words, PerPage: limit}, known: make(map[string]bool)}
	g := rowGrid(newPainter(c))
	tick := time.NewTicker(tailEvery)
	defer tick.Stop()
	for first := true; ; first = false {
		rows, err := t.fresh(c, cl, id, first)
		if err != nil && c.Context.Err() == nil {
			return err
		}
		for _, row := range rows {
			if text(c, "output") == "json" {
				if err := printJSONLine(c.App.Writer, row); err != nil {
					return err
				}
				continue
			}
			listRow(g, row)
		}
		if err := g.flush(); err != nil {
			return err
		}
		t.search.PerPage = tailPage
		select {
		case <-c.Context.Done():
			return nil
		case <-tick.C:
		}
	}
}

// fresh are the records that were not shown, oldest first. A record that comes later than tailKnown others which are newer by their
// order time is not seen: that is for a search.
func (t *tail) fresh(c *cli.Context, cl *client.Client, id wire.Identity, first bool) ([]wire.Row, error) {
	var rows []wire.Row
	search := t.search
	for range tailPageMax {
		page, err := cl.Search(c.Context, id, search)
		if err != nil {
			return nil, err
		}
		seen := false
		for _, row := range page.Items {
			if t.known[row.RequestID] || row.AcceptedAt.Before(t.since) {
				seen = true
				continue
			}
			t.remember(row.RequestID)
			rows = append(rows, row)
		}
		if first || seen || page.NextCursor == nil || len(t.order) == len(rows) {
			break
		}
		search.Cursor = *page.NextCursor
	}
	if first && len(rows) == search.PerPage {
		t.since = rows[len(rows)-1].AcceptedAt
	}
	slices.Reverse(rows)
	return rows, nil
}

func (t *tail) remember(id string) {
	t.known[id] = true
	t.order = append(t.order, id)
	if len(t.order) > 2*tailKnown {
		for _, old := range t.order[:tailKnown] {
			delete(t.known, old)
		}
		t.order = slices.Clone(t.order[tailKnown:])
	}
}
