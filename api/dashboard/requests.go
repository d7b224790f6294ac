package dashboard

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"promptspool/api/filterline"
	"promptspool/api/wire"
)

const requestsPerPage = 50

func (d *Dashboard) requestRoutes() {
	d.handle("GET /requests", wire.RoleViewer, d.requestsPage)
	d.handle("POST /requests/view", wire.RoleViewer, d.rememberView)
	d.handle("GET /suggestions", wire.RoleViewer, d.suggest)
	d.handle("GET /requests/export", wire.RoleViewer, d.exportRequests)
}

// requestsView is what the list of requests shows.
type requestsView struct {
	filterView
	View     listView
	Shown    []column
	Headings []heading
	Page     wire.SearchPage
	Rows     []requestRow
	Next     string // the address of the next page; "" on the last one
	First    string // the address of the first page; "" on that page
	Exports  []exportLink
}

// filterView is a page's filter, with what its form offers.
type filterView struct {
	Filter  filter
	Path    string
	Error   *wire.Error // what is wrong with the filter
	Marked  markedLine  // where, if that is known
	Chips   []chip
	Times   []timeLink
	Range   string   // the time that is shown, in words
	Zone    string   // whose days they are
	Columns []column // all that can be shown
	Closest []closeLink
}

// timeLink leads to the page at another time.
type timeLink struct {
	Text, Href string
	Current    bool
}

// markedLine is a line with the place of its fault, up to the next blank.
type markedLine struct{ Before, Wrong, After, Reason string }

// chip is a condition in force, with the address of the page without it.
type chip struct{ Text, Without string }

// chipsMax bounds the chips, each of which has the whole line in its address.
const chipsMax = 20

func viewFilter(path string, f filter, now time.Time) filterView {
	v := filterView{Filter: f, Path: path, Columns: columns, Zone: zoneName(f.zone)}
	if f.fault != nil {
		return v // another time would lose what was typed
	}
	for i := range min(len(f.line.Terms), chipsMax) {
		v.Chips = append(v.Chips, chip{f.line.Terms[i].String(), address(path, f.without(i).values())})
	}

	for _, t := range times {
		other := f.during(t.Line)
		v.Times = append(v.Times, timeLink{t.Text, address(path, other.values()), other.Text == f.Text})
	}
	from, to := f.line.Range(filterline.Clock{Now: now, Zone: f.zone})
	v.Range = rangeText(from, to, now, cmp.Or(f.zone, time.UTC))

	return v
}

// reject shows what is wrong with the filter, in its form, where it can be corrected.
func (v *filterView) reject(e *wire.Error) {
	v.Error = e
	if len(e.Fields) == 0 || e.Fields[0].Offset == nil {
		return
	}

	line := []rune(v.Filter.Text)
	at := min(*e.Fields[0].Offset, len(line))
	rest := string(line[at:])
	end := strings.IndexFunc(rest, unicode.IsSpace)
	if end < 0 {
		end = len(rest)
	}
	_, reason, _ := strings.Cut(e.Fields[0].Reason, ": ") // the mark says where
	v.Marked = markedLine{Before: string(line[:at]), Wrong: rest[:end], After: rest[end:], Reason: reason + "."}
	if v.Marked.Wrong == "" {
		v.Marked.Wrong = "…" // something is missing here
	}
}

// filter reads the filter in an address, in the reader's zone.
func (c *call) filter(q url.Values) filter {
	f := readFilter(q)
	f.zone = c.zone().Location

	return f
}

// address joins a path and a query.
func address(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}

	return path + "?" + q.Encode()
}

// list reads a page of the list of a filter: its rows behind a cursor.
func (d *Dashboard) list(ctx context.Context, c *call, f filter, page wire.Search) (wire.SearchPage, error) {
	s, err := f.search(d.Now())
	if err != nil {
		return wire.SearchPage{}, err
	}
	s.Cursor, s.PerPage, s.Quick = page.Cursor, page.PerPage, page.Quick
	s.SortBy, s.SortOrder = f.Order.search()

	return d.Records.Search(ctx, c.identity(), s)
}

func (d *Dashboard) requestsPage(c *call) error {
	query := c.URL.Query()
	f := c.filter(query)
	v := requestsView{filterView: viewFilter("/requests", f, d.Now()), View: c.listView(f)}
	v.Exports = exportLinks(f, v.View.Columns)
	v.Shown = v.View.shown()

	page, err := d.list(c.Context(), c, f, wire.Search{PerPage: requestsPerPage, Cursor: query.Get("cursor")})
	// A filter that makes no sense is shown in its form, where it can be corrected.
	if e := wire.AsError(err); err != nil && e.Code == wire.CodeInvalid {
		v.reject(e)
		return d.show(c, e.Status(), "requests", f.title("Requests"), "requests", v)
	}
	if err != nil {
		return err
	}

	var main string
	v.Page = page
	v.Rows, main = requestRows(f, page)
	if main == "" {
		// No row has a score: the texts may have its room.
		v.Shown = slices.DeleteFunc(v.Shown, func(c column) bool { return c.Name == "score" })
	}
	v.Headings = f.headings(v.Shown, main)
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

	return d.show(c, http.StatusOK, "requests", f.title("Requests"), "requests", v)
}
