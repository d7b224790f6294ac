// Package requests has the dashboard's pages of what was logged: the list of requests, one request with
// the others of its trace, and what is done with them: exporting, scoring, deleting.
//
// # Files
//
//	list.go           the list with the table of pages, a request's place in it, and completing its filter
//	row.go            its rows and texts
//	export.go         saving it as a file; deleting requests
//	record.go         one request, with others that failed like it, and programs that make the call again
//	trace.go          the spans of a trace
package requests

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/conversation"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/number"
	"promptspool/api/dashboard/table"
	"promptspool/api/filterline"
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
	if at := filter.ReadPlace(query.Get("id"), query); at.ID != "" {
		return p.step(c, f, at)
	}

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
// texts.
func recordAddress(f filter.Filter, p filter.Place, view string) string {
	q := f.At(p)
	if view == sentView {
		q.Set("view", view)
	}

	return address.Of("/requests/"+p.ID, q)
}

// step leads to the page of the row beside one.
func (p *pages) step(c *frame.Exchange, f filter.Filter, at filter.Place) error {
	page, err := f.List(c.Context(), p.records, c.Identity(), wire.Search{
		Cursor:  at.Cursor,
		PerPage: min(at.Row+2, wire.PageItemsMax),
		Quick:   true,
	})
	if err != nil {
		return err
	}

	id := func(i int) string { return page.Items[i].RequestID }
	return c.Step(at, len(page.Items), id, func(to filter.Place) string {
		return recordAddress(f, to, c.URL.Query().Get("view"))
	})
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
			{Pattern: "POST /requests/{id}/score", Page: p.setScore, Review: frame.ReviewScore},
			{Pattern: "GET /traces/{id}", Page: p.tracePage},
			{Pattern: "POST /traces/{id}/score", Page: p.scoreTrace, Review: frame.ReviewScore},

			{Pattern: "GET /requests/delete", Page: p.erasePage},
			{Pattern: "POST /requests/delete", Page: p.erase},
		},
		Notices: map[string]string{
			"scored": "The score is set.",
			"erased": "The requests were deleted.",
		},
	}
}

const (
	suggestionsMax = 30
	countedMax     = 20                     // suggestions whose requests are counted
	suggestTimeMax = 100 * time.Millisecond // later ones would only disturb the typing
	countTimeMax   = 300 * time.Millisecond // of all counts; what is not counted by then has none
)

// suggestions complete a line that is being typed.
type suggestions struct {
	Kept   string  `json:"kept"` // what stays in front of a suggestion
	Offers []offer `json:"offers"`

	// Half is set if the written text is not a value, and these are all values that it
	// may become. Enter then takes the first.
	Half bool `json:"half"`
}

// offer is one suggestion.
type offer struct {
	Text string `json:"text"`
	Note string `json:"note"` // what it is, or how many requests have it

	found int // how many requests have it; -1 if that is not known
}

// suggest answers with what completes a line, of which the address has the part in front of the
// cursor. The page's script offers it.
func (p *pages) suggest(c *frame.Exchange) error {
	line := c.URL.Query().Get("line")
	found := suggestions{Kept: line, Offers: []offer{}}
	if utf8.RuneCountInString(line) <= filterline.RunesMax {
		found = p.completed(c.Context(), c.Identity(), filterline.TypingAt(line), c.URL.Query().Has("rollups"))
		// A star or a quote is meant as written.
		found.Half = found.Half && !strings.ContainsAny(line[len(found.Kept):], `*"`)
	}

	c.W.Header().Set("Content-Type", "application/json")

	return json.NewEncoder(c.W).Encode(found)
}

// completed returns what completes a line of calls, or of sessions, traces and users.
func (p *pages) completed(
	ctx context.Context, id wire.Identity, typing filterline.Typing, ofRollups bool,
) suggestions {
	found := suggestions{Kept: typing.Kept, Offers: []offer{}}
	switch {
	case typing.IsText():
	case typing.Value:
		found.Offers, found.Half = p.offerValues(ctx, id, typing)
	case typing.Field != nil:
		found.Offers = p.offerParts(ctx, id, typing.Field, typing.Prefix)
	default:
		for _, f := range typing.Keys(ofRollups) {
			found.Offers = append(found.Offers, offer{Text: f.Completed(), Note: f.Help})
		}
		metadata := filterline.OfMetadata()
		found.Offers = append(found.Offers, p.offerParts(ctx, id, metadata, typing.Prefix)...)
	}

	return found
}

// offerParts suggests what follows a field's dot, such as the keys of metadata.
func (p *pages) offerParts(ctx context.Context, id wire.Identity, f *filterline.Field, prefix string) []offer {
	offers := []offer{}
	for _, part := range p.existing(ctx, id, wire.SuggestQuery{Field: f.PartField(), Prefix: prefix}) {
		offers = append(offers, offer{Text: f.CompletedPart(part), Note: f.Name})
	}

	return offers
}

// offerValues suggests values, those of the most requests first. half is what suggestions have of it.
func (p *pages) offerValues(
	ctx context.Context, id wire.Identity, t filterline.Typing,
) (offers []offer, half bool) {
	if name, selector, ok := t.Selector(); ok {
		return p.counted(ctx, id, t, p.versions(ctx, id, name, selector)), false
	}

	texts := t.Words()
	known := len(texts) > 0 || t.Field.Values != nil
	if of := t.Field.ValueField(); !known && of != "" {
		texts = p.existing(ctx, id,
			wire.SuggestQuery{Field: of, Key: t.Part, Prefix: t.Prefix, Inside: true})
	}

	var values []filterline.Value
	half = t.Prefix != "" && len(texts) > 0 && len(texts) < suggestionsMax
	for _, text := range texts {
		// As if it had been quoted: an @ or a star in it is part of the value.
		values = append(values, filterline.Value{Text: text, Quoted: true})
		half = half && !strings.EqualFold(text, t.Prefix)
	}
	offers = p.counted(ctx, id, t, values)
	slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(b.found, a.found) })

	return offers, half
}

// counted offers values, with how many requests have each of them, as far as time allows.
func (p *pages) counted(
	ctx context.Context, id wire.Identity, t filterline.Typing, values []filterline.Value,
) []offer {
	ctx, cancel := context.WithTimeout(ctx, countTimeMax)
	defer cancel()
	offers := []offer{}
	for i, value := range values {
		text, line := t.Offered(value)
		o := offer{Text: text, found: -1}
		if i < countedMax && t.Field.Kind != filterline.Time {
			o.found, o.Note = p.countOf(ctx, id, line)
		}
		offers = append(offers, o)
	}

	return offers
}

// versions returns a template's versions, newest first, and its labels.
func (p *pages) versions(ctx context.Context, id wire.Identity, name, prefix string) (all []filterline.Value) {
	head, err := p.templates.Head(ctx, id, name)
	if err != nil {
		return nil
	}
	var selectors []string
	for n := head.Latest(); n > 0; n-- {
		selectors = append(selectors, strconv.Itoa(n))
	}
	for _, l := range head.Labels {
		selectors = append(selectors, l.Name)
	}

	for _, selector := range selectors {
		if len(all) < suggestionsMax && strings.HasPrefix(selector, prefix) {
			all = append(all, filterline.Value{Text: name + "@" + selector})
		}
	}

	return all
}

// existing lists values that exist. Fields without such values have none, and so has a server that
// cannot tell in time.
func (p *pages) existing(ctx context.Context, id wire.Identity, q wire.SuggestQuery) []string {
	q.Limit, q.Budget = suggestionsMax, suggestTimeMax
	found, err := p.records.Suggest(ctx, id, q)
	if err != nil {
		return nil
	}

	return found.Values
}

// countOf returns how many requests a line finds, also in words; -1 and "" if that takes too long.
func (p *pages) countOf(ctx context.Context, id wire.Identity, line filterline.Line) (n int, words string) {
	s, err := line.Compile(filterline.Clock{Now: time.Now()})
	if err != nil {
		return -1, ""
	}
	page, err := p.records.Search(ctx, id, wire.Search{FilterGroup: s, PerPage: 1})
	if err != nil {
		return -1, ""
	}
	words = number.Grouped(int64(page.Total))
	if page.TotalIsLowerBound {
		words += "+"
	}

	return page.Total, words
}
