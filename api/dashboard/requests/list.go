package requests

import (
	"html/template"
	"net/http"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/conversation"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/table"
	"promptspool/api/wire"
)

const requestsPerPage = 50

// requestsView is what the list of requests shows.
type requestsView struct {
	filter.Form
	View     listView
	Columns  []filter.Column // all those that can be shown
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
	v := requestsView{Form: filter.NewForm("/requests", f), View: readView(c, f), Columns: filter.Columns}
	v.Exports = exportLinks(f, v.View.Columns)
	v.Shown = v.View.shown()

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
	n := readNumber(query)
	if query.Get("cursor") == "" {
		n.At = 1
	}
	if !page.TotalIsLowerBound {
		n.Of = page.Total
	} else if n.At == 1 || n.Of == 0 { // else the first page knows better: it counted from there
		n.Of = -page.Total
	}
	v.Count = n.count()
	v.Rows, main = requestRows(f, page, n)
	v.Shown = filled(v.Shown, f, v.Rows)
	if v.ByDays = f.Order.Direction(filter.ByTime) != ""; v.ByDays {
		markDays(v.Rows, c.Now(), f.Zone())
	}
	v.Headings = headings(f, v.Shown, main)

	if page.NextCursor != nil {
		next := f.Values()
		next.Set("cursor", *page.NextCursor)
		n.plus(len(page.Items)).set(next)
		v.Next = address.Of(v.Path, next)
	}
	if query.Get("cursor") != "" {
		v.First = address.Of(v.Path, f.Values())
	}

	return c.Show(http.StatusOK, "requests", f.Title("Requests"), "requests", v)
}

// Excerpt returns an excerpt in which what the filter looks for is marked.
func (v requestsView) Excerpt(text string) template.HTML {
	return conversation.Excerpt(text, v.Filter.Sought())
}

// Review returns the address where the list is scored, one request after another.
func (v requestsView) Review() string {
	q := v.Filter.Values()
	q.Del("col")

	return address.Of("/review", q)
}

// Erase returns the address of the question which requests to delete.
func (v requestsView) Erase() string { return eraseAddress(v.Filter, "", "") }
