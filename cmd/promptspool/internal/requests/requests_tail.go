package requests

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/filter"
	"promptspool/cmd/promptspool/internal/print"
)

const (
	tailEvery = time.Second // how often the server is asked

	// A record that arrives after newer ones is still shown if it was accepted within tailBehind
	// and is among the newest tailKnown.
	tailBehind = time.Minute
	tailKnown  = 2 * wire.PageItemsMax
)

func tailRequests(c *cli.Context) error {
	v := config.Read(c)
	limit, asData := v.Count("limit", wire.PageItemsMax), v.AsData()
	if v.Form() == config.FormCSV {
		v.Reject("output", "needs all records for its columns, and a tail has no end; give ndjson")
	}
	line, selected := filter.Read(v)
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}

	// The first page may be empty, but the rows that come later have ids and times.
	table := rowTable(print.NewTable(c))
	ids := listedIDs(table.Painter, []wire.Row{{RequestID: wire.NewID()}}, idOfRow)
	table.AtLeast(len(ids[0]), len("SUCCESS"), len(table.Moment(time.Now())), 12, 24, len("9.99 s"), len("$0.00042"),
		12, 0, 0, 0)

	t := &tail{where: selected, inTexts: len(line.Sought()) > 0, known: make(map[string]place)}
	t.find = func(s wire.Search) (wire.SearchPage, error) { return cl.Search(c.Context, id, s) }
	t.show = func(rows []wire.Row) error {
		if !asData {
			listRows(table, rows)
			return table.Flush()
		}
		for _, r := range rows {
			if err := print.Line(c, r); err != nil {
				return err
			}
		}
		return nil
	}
	away := false
	if err := t.begin(limit); err != nil {
		return err
	}
	tick := time.NewTicker(tailEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.Context.Done():
			return nil
		case <-tick.C:
		}
		switch err := t.follow(c.Context); {
		case c.Context.Err() != nil:
			return nil
		case err == nil:
			away = false
		case !wire.IsCode(err, wire.CodeUnavailable):
			return err
		// Once, not every second for as long as it lasts.
		case !away:
			away = true
			fmt.Fprintf(c.App.ErrWriter, "%v\nIt continues when the server can be reached.\n",
				print.Printable(message(err).Error()))
		}
	}
}

// tail shows each record once.
//
// Its memory is bounded: a page of rows, and the records it knows.
type tail struct {
	where   *wire.Filter
	inTexts bool // it looks into prompts or responses
	find    func(wire.Search) (wire.SearchPage, error)
	show    func(rows []wire.Row) error // oldest first

	known map[string]place // of records shown above the edge
	edge  place            // a record at it or below was there before, or is too late
}

// byArrival orders records as they came. Lists go by the time at which calls started, so a
// long call appears in their middle when it ends.
const byArrival = "accepted_at"

// place is a record's position in the order of arrival.
type place struct {
	at time.Time
	id string
}

func (p place) compare(q place) int { return cmp.Or(p.at.Compare(q.at), cmp.Compare(p.id, q.id)) }

func placeOf(r *wire.Row) place { return place{r.AcceptedAt, r.RequestID} }

// begin shows the newest records that are there already.
func (t *tail) begin(limit int) error {
	s := wire.Search{FilterGroup: t.where, SortBy: byArrival, PerPage: limit}
	if t.inTexts {
		// By arrival, all texts would have to be looked into.
		s.SortBy = ""
	}
	page, err := t.find(s)
	if err != nil {
		return err
	}
	switch {
	case page.NextCursor == nil: // all there is
	case len(page.Items) > 0 && s.SortBy == byArrival:
		t.edge = placeOf(&page.Items[len(page.Items)-1])
	default: // looking into texts took too long
		t.edge.at = time.Now().Add(-tailBehind)
	}
	// Oldest first, because a terminal grows downwards.
	slices.Reverse(page.Items)
	return t.tell(page.Items)
}

// follow shows what has come since, page by page.
func (t *tail) follow(ctx context.Context) error {
	s := wire.Search{
		FilterGroup: t.above(),
		SortBy:      byArrival,
		SortOrder:   "asc",
		PerPage:     wire.PageItemsMax,
	}
	for more := true; more && ctx.Err() == nil; {
		page, err := t.find(s)
		if err == nil {
			err = t.tell(page.Items)
		}
		if err != nil {
			return err
		}

		more = page.NextCursor != nil
		if more {
			s.Cursor = *page.NextCursor
		}
	}
	t.forget()
	return nil
}

// above narrows the filter to records above the edge.
func (t *tail) above() *wire.Filter {
	if t.edge.at.IsZero() {
		return t.where
	}
	// From the edge on, with it: others may have the same time, and tell knows what was
	// shown.
	from := filterline.Where("received", "", t.edge.at.Format(time.RFC3339Nano)).With(filterline.AtLeast)
	// A time as the server gave it.
	selected, _ := from.Compile(filterline.Clock{})
	return filterline.Both(selected, t.where)
}

// tell shows the rows that were not shown.
func (t *tail) tell(rows []wire.Row) error {
	var fresh []wire.Row
	for i := range rows {
		r := &rows[i]
		if _, shown := t.known[r.RequestID]; shown || placeOf(r).compare(t.edge) < 0 {
			continue
		}
		t.known[r.RequestID] = placeOf(r)
		fresh = append(fresh, *r)
	}
	return t.show(fresh)
}

// forget lifts the edge, so that what is known and asked for again each time stays small.
func (t *tail) forget() {
	order := slices.SortedFunc(maps.Values(t.known), place.compare)
	if len(order) == 0 {
		return
	}
	since := order[len(order)-1].at.Add(-tailBehind)
	drop, _ := slices.BinarySearchFunc(order, place{at: since}, place.compare)
	// The older bound counts in quiet times, this one in busy ones.
	drop = max(drop, len(order)-tailKnown)
	for _, p := range order[:drop] {
		delete(t.known, p.id)
	}
	if drop > 0 {
		// It is known, so that it is not shown again.
		t.edge = order[drop]
	}
}
