package dashboard

import (
	"net/http"
	"net/url"

	"promptspool/api/wire"
)

const requestsPerPage = 50

func (d *Dashboard) requestRoutes() {
	d.handle("GET /requests", wire.RoleViewer, d.requestsPage)
	d.handle("GET /suggestions", wire.RoleViewer, d.suggest)
	d.handle("GET /requests/export", wire.RoleViewer, d.exportRequests)
}

// requestsView is what the list of requests shows.
type requestsView struct {
	filterView
	Page    wire.SearchPage
	Error   *wire.Error // what is wrong with the filter
	Next    string      // the address of the next page; "" on the last one
	First   string      // the address of the first page; "" on that page
	Exports []exportLink
}

// filterView is a page's filter, with what its form offers.
type filterView struct {
	Filter    filter
	Path      string
	Spans     []span
	Fields    []filterField
	Operators []operator
	Chips     []chip
	Columns   []column // all that can be shown
	Closest   []closeLink
}

// chip is a condition in force, with the address of the page without it.
type chip struct{ Text, Without string }

func viewFilter(path string, f filter) filterView {
	v := filterView{
		Filter:    f,
		Path:      path,
		Spans:     spansWith(f.Span),
		Fields:    filterFields,
		Operators: operators,
		Columns:   columns,
	}
	for i, c := range f.Conditions {
		v.Chips = append(v.Chips, chip{c.Describe(), address(path, f.without(i).values())})
	}

	return v
}

// address joins a path and a query.
func address(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}

	return path + "?" + q.Encode()
}

func (d *Dashboard) requestsPage(c *call) error {
	query := c.URL.Query()
	f := readFilter(query)
	v := requestsView{filterView: viewFilter("/requests", f), Exports: exportLinks(f)}

	page, err := d.Records.Search(c.Context(), c.identity(), wire.Search{
		FilterGroup: f.group(d.Now()),
		Q:           f.Q,
		PerPage:     requestsPerPage,
		Cursor:      query.Get("cursor"),
	})

	// A filter that makes no sense is shown in its form, where it can be corrected.
	if e := wire.AsError(err); err != nil && e.Code == wire.CodeInvalid {
		v.Error = e
		return d.show(c, e.Status(), "requests", "Requests", "requests", v)
	}
	if err != nil {
		return err
	}

	v.Page = page
	// An incomplete search may still find something on its next pages.
	if len(page.Items) == 0 && page.Complete {
		d.suggestClosest(c, &v.filterView)
	}

	if page.NextCursor != nil {
		next := f.values()
		next.Set("cursor", *page.NextCursor)
		v.Next = address(v.Path, next)
	}
	if query.Get("cursor") != "" {
		v.First = address(v.Path, f.values())
	}

	return d.show(c, http.StatusOK, "requests", "Requests", "requests", v)
}
