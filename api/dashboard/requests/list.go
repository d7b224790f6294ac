// Package requests has the dashboard's pages of what was logged: the list of requests, one request with
// the others of its trace, and what is done with them: exporting, scoring, deleting.
//
// # Files
//
//	list.go, row.go   the list with the table of pages, its rows and texts, and a request's place in it
//	suggest.go        completing its filter
//	export.go         saving it as a file; deleting requests
//	record.go         one request, with others that failed like it, and programs that make the call again
//	trace.go          the spans of a trace
package requests

import (
	"context"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/conversation"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/number"
	"promptspool/api/dashboard/table"
	"promptspool/api/tracetree"
	"promptspool/api/wire"
)

const requestsPerPage = 50

// requestsView is what the list of requests shows.
type requestsView struct {
	filter.Form
	View     listView
	Keys     []string // of the rows' metadata that have no column
	Shown    []filter.Column
	Headings []table.Heading
	Page     wire.SearchPage
	Count    string // of all rows
	Rows     []requestRow
	ByDays   bool   // the list is in order of time, under headings of days
	Next     string // the address of the next page; "" on the last one
	First    string // the address of the first page; "" on that page
	Exports  []exportLink
}

func (p *pages) requestsPage(c *frame.Exchange) error {
	query := c.URL.Query()
	f := c.Filter(query)
	v := requestsView{Form: filter.NewForm("/requests", f), View: readView(c, f)}
	v.Exports = exportLinks(f, v.View.Columns)
	v.Shown = filter.ColumnsOf(v.View.Columns)
	c.Here = v.View.address(f)

	page, err := f.List(c.Context(), p.records, c.Identity(),
		wire.Search{PerPage: requestsPerPage, Cursor: query.Get("cursor")})
	// A filter that makes no sense is shown in its form, where it can be corrected.
	if e := wire.AsError(err); err != nil && e.Code == wire.CodeInvalid {
		v.Reject(e)
		return c.Show(e.Status(), "requests", f.Title("Requests"), "requests", v)
	}
	if err != nil {
		return err
	}

	var main string
	v.Page = page
	n := filter.ReadNumber(query)
	if !page.TotalIsLowerBound {
		n.Of = page.Total
	} else if n.At == 1 || n.Of == 0 { // else the first page knows better: it counted from there
		n.Of = -page.Total
	}
	v.Count = count(n)
	v.Rows, main = requestRows(f, page, n)
	v.Keys = keysWithoutColumn(page.Items, v.Shown)
	v.Shown = filled(v.Shown, f, v.Rows)
	v.ByDays = f.Order.Direction(filter.ByTime) != ""
	if v.ByDays {
		markDays(v.Rows, c.Now(), f.Zone())
	}
	v.Headings = headings(f, v.Shown, main)

	if page.NextCursor != nil {
		next := f.Values()
		next.Set("cursor", *page.NextCursor)
		n.Plus(len(page.Items)).Set(next)
		v.Next = address.Of(v.Path, next)
	}
	if query.Get("cursor") != "" {
		v.First = address.Of(v.Path, f.Values())
	}

	return c.Show(http.StatusOK, "requests", f.Title("Requests"), "requests", v)
}

// keysMax bounds the metadata keys that are offered as columns.
const keysMax = 100

// keysWithoutColumn returns the metadata keys of rows that no column is of.
func keysWithoutColumn(rows []wire.Row, columns []filter.Column) (keys []string) {
	for _, r := range rows {
		for _, m := range r.Metadata {
			keys = append(keys, m.Key)
		}
	}
	slices.Sort(keys)
	keys = slices.DeleteFunc(slices.Compact(keys), func(key string) bool {
		return slices.ContainsFunc(columns, func(c filter.Column) bool { return c.Key == key })
	})

	return keys[:min(len(keys), keysMax)]
}

// columnGroup is some of the columns that can be shown, for the form that chooses them.
type columnGroup struct {
	Title   string
	Columns []filter.Column
}

// Groups returns all columns, those of metadata keys only if they are shown.
func (v requestsView) Groups() []columnGroup {
	groups := []columnGroup{{Title: "The call"}, {Title: "Around it"}}
	keys := slices.DeleteFunc(filter.ColumnsOf(v.View.Columns), func(c filter.Column) bool { return c.Key == "" })
	for _, c := range slices.Concat(filter.Columns, keys) {
		at := 0
		if c.Around {
			at = 1
		}
		groups[at].Columns = append(groups[at].Columns, c)
	}

	return groups
}

// Excerpt returns an excerpt in which what the filter looks for is marked.
func (v requestsView) Excerpt(text string) template.HTML {
	return conversation.Excerpt(text, v.Filter.Sought())
}

// count returns how many requests there are, in words.
func count(n filter.Number) string {
	if n.Of < 0 {
		return "At least " + number.Quantity(-int64(n.Of), "request")
	}

	return number.Quantity(int64(n.Of), "request")
}

// Review returns the address where the list is scored, one request after another.
func (v requestsView) Review() string {
	q := v.Filter.Values()
	q.Del("col")

	return address.Of("/review", q)
}

// Erase returns the address of the question which requests to delete.
func (v requestsView) Erase() string { return eraseAddress(v.Filter, "", "") }

// recordAddress returns the address of a record at its place in the list of the filter, with a view of its
// texts; "" for none.
func recordAddress(f filter.Filter, p filter.Place, view string) string {
	if p.ID == "" {
		return ""
	}
	q := f.At(p)
	if view == sentView {
		q.Set("view", view)
	}

	return address.Of("/requests/"+p.ID, q)
}

// neighboursTimeMax bounds the search for neighbours: a page waits for it, and is complete
// without them.
const neighboursTimeMax = time.Second

// neighbours returns the addresses of the records before one and after it, in the list
// that its page was opened from; "" is none. They are not found for a record far from the cursor, or late.
func (p *pages) neighbours(
	c *frame.Exchange, f filter.Filter, at filter.Place,
) (previous, next string, err error) {
	if at.ID == "" {
		return "", "", nil
	}

	ctx, cancel := context.WithTimeout(c.Context(), neighboursTimeMax)
	defer cancel()
	page, err := f.List(ctx, p.records, c.Identity(), wire.Search{
		Cursor:  at.Cursor,
		PerPage: min(at.Row+2, wire.PageItemsMax),
		Quick:   true,
	})

	// The list explains what is wrong with its filter.
	late := errors.Is(err, context.DeadlineExceeded) && c.Context().Err() == nil
	if late || wire.IsCode(err, wire.CodeInvalid) {
		return "", "", nil
	}

	before, after := at.Neighbours(len(page.Items), func(i int) string { return page.Items[i].RequestID })
	view := c.URL.Query().Get("view")

	return recordAddress(f, before, view), recordAddress(f, after, view), err
}

// pages are the pages of requests.
type pages struct {
	records   wire.Archive
	recorder  wire.Recorder
	templates wire.Registry
	trees     tracetree.Shared
}

//go:embed *.html
var html embed.FS

// Pages returns the pages of requests.
func Pages(records wire.Archive, recorder wire.Recorder, templates wire.Registry) frame.Section {
	p := &pages{records: records, recorder: recorder, templates: templates}

	return frame.Section{
		HTML: html,
		Routes: []frame.Route{
			{Pattern: "GET /requests", Page: p.requestsPage},
			{Pattern: "POST /requests/view", Page: rememberView},
			{Pattern: "GET /suggestions", Page: p.suggest},
			{Pattern: "GET /requests/export", Page: p.exportRequests},

			{Pattern: "GET /requests/{id}", Page: p.recordPage},
			{Pattern: "GET /requests/{id}/raw", Page: p.rawRecord},
			{Pattern: "GET /requests/{id}/text", Page: p.recordText},
			{Pattern: "POST /requests/{id}/score", Page: p.setScore,
				Review: frame.Review("Set this score?", "Set", "name", "score", "set")},
			{Pattern: "GET /traces/{id}", Page: p.tracePage},
			{Pattern: "POST /traces/{id}/score", Page: p.scoreTrace,
				Review: frame.Review("Set this score?", "Set", "name", "score", "set")},

			{Pattern: "GET /requests/delete", Page: p.erasePage},
			{Pattern: "POST /requests/delete", Page: p.erase},
		},
		Notices: map[string]string{
			"scored": "The score is set.",
			"erased": "The requests were deleted.",
		},
		Undos: map[string]frame.Undoing{
			"request_id": frame.UndoScore(recorder, p.scored),
			"trace_id":   frame.UndoScore(recorder, p.scored),

			"erased": {Text: func(u frame.Undo) string { return "Deleted: " + u.Now + "." }},
		},
	}
}
