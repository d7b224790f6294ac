package sessions

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/number"
	"promptspool/api/dashboard/table"
	"promptspool/api/filterline"
	"promptspool/api/wire"
)

const (
	listPerPage   = 50
	exportPerPage = 10_000 // each page of an export adds up all names
)

// listView is what a list shows.
type listView struct {
	filter.Form
	wire.RollupPage
	Title    string
	Headings []table.Heading
	Rows     []row
	Next     string // the address of the next page; "" on the last one
	First    string // the address of the first page; "" on that page
	Exports  []exportLink
}

// One returns what a row is.
func (v listView) One() string { return strings.TrimSuffix(v.Noun(), "s") }

// row is a session, a trace or a user.
type row struct {
	wire.Rollup
	Href string
}

// Duration returns the time from the first call to the last, which may be days.
func (r row) Duration() string {
	d := r.LastSeen.Sub(r.FirstSeen)
	if d >= time.Hour {
		return number.Roughly(d)
	}
	return number.Latency(new(d.Seconds()))
}

// Score returns the mean score; "" without one.
func (r row) Score() string {
	if r.MeanScore == nil {
		return ""
	}
	return strconv.FormatFloat(*r.MeanScore, 'f', 1, 64)
}

// exportLink is an entry of the menu that saves the list.
type exportLink struct{ Text, Hint, Href string }

// list shows the list at its path, or saves it as a file.
func (p *pages) list(c *frame.Exchange) error {
	query := c.URL.Query()
	f := c.Filter(query).OfRollups(query)
	v := listView{Form: filter.NewForm(c.URL.Path, f)}
	v.Title = strings.ToUpper(v.Noun()[:1]) + v.Noun()[1:]
	search, err := f.Rollups(v.Noun())
	search.PerPage, search.Cursor = listPerPage, query.Get("cursor")
	if err == nil && query.Has("format") {
		return p.export(c, f, search)
	}
	if err == nil {
		v.RollupPage, err = p.records.Rollups(c.Context(), c.Identity(), search)
	}
	// A filter that makes no sense is shown in its form, where it can be corrected.
	if e := wire.AsError(err); err != nil && e.Code == wire.CodeInvalid {
		v.Reject(e)
		return c.Show(e.Status(), "list", f.Title(v.Title), "requests", v)
	}
	if err != nil {
		return err
	}

	v.Headings = headings(f, v.Path)
	for _, item := range v.Items {
		v.Rows = append(v.Rows, row{item, hrefOf(v.Path, item.ID)})
	}
	// An incomplete search may still find something on its next pages.
	if len(v.Rows) == 0 && v.Complete {
		v.SuggestClosest(c.Context(), p.records, c.Identity())
	}
	v.Exports = []exportLink{
		{"CSV", "for a spreadsheet", address.With(address.Of(v.Path, f.Values()), "format", "csv")},
		{"JSON lines", "for programs", address.With(address.Of(v.Path, f.Values()), "format", "jsonl")},
	}
	if v.NextCursor != nil {
		v.Next = address.With(address.Of(v.Path, f.Values()), "cursor", *v.NextCursor)
	}
	if search.Cursor != "" {
		v.First = address.Of(v.Path, f.Values())
	}

	return c.Show(http.StatusOK, "list", f.Title(v.Title), "requests", v)
}

// headings returns the headings of the list at a path.
func headings(f filter.Filter, path string) []table.Heading {
	first := map[string]string{"/traces": "Trace", "/sessions": "Session", "/users": "User"}
	all := []table.Heading{{Text: first[path]}}
	for _, column := range []struct{ text, sort string }{
		{"Turns", "turns"}, {"Spans", "spans"}, {"Errors", "errors"}, {"Cost", "cost"}, {"Tokens", "tokens"},
		{"Mean score", "mean_score"}, {"Duration", "duration_ms"}, {"First seen", "first_seen"},
		{"Last seen", "last_seen"},
	} {
		if column.sort == "spans" && path != "/traces" {
			continue
		}
		sorted := f
		sorted.Order = f.Order.Next(column.sort)
		all = append(all, table.Heading{
			Text:   column.text,
			Number: true,
			Href:   address.Of(path, sorted.Values()),
			Sorted: f.Order.Direction(column.sort),
		})
	}

	return all
}

// hrefOf returns where a row of the list at a path leads: from a user to their sessions.
func hrefOf(path, id string) string {
	switch path {
	case "/traces":
		return "/traces/" + url.PathEscape(id)
	case "/sessions":
		return address.Session(id)
	}

	return address.Of("/sessions", filter.Filter{}.With(filterline.Where("user", "", id)).Values())
}

// export answers with all pages of a list, as CSV or as a line of JSON for each row.
func (p *pages) export(c *frame.Exchange, f filter.Filter, s wire.RollupSearch) error {
	id, format := c.Identity(), c.URL.Query().Get("format")
	media := map[string]string{"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}[format]
	if media == "" {
		return wire.Invalid(wire.FieldError{Field: "format", Reason: "must be csv or jsonl"})
	}
	// A fault is answered before the first line is sent.
	s.PerPage = 1
	if _, err := p.records.Rollups(c.Context(), id, s); err != nil {
		return err
	}
	if err := c.Note(c.Context(), "export "+s.Of, format, wire.AuditFilter(f.Text)); err != nil {
		return err
	}

	s.PerPage = exportPerPage
	return c.SendFile(f.FileName(s.Of, "."+format), media, func(ctx context.Context, w io.Writer) error {
		lines, texts := csv.NewWriter(w), json.NewEncoder(w)
		if format == "csv" {
			_ = lines.Write(csvHeader) // lines.Error has its error
		}
		for {
			page, err := p.records.Rollups(ctx, id, s)
			for i := range page.Items {
				if format == "csv" {
					_ = lines.Write(csvLine(&page.Items[i]))
				} else if err == nil {
					err = texts.Encode(page.Items[i])
				}
			}
			lines.Flush()
			if err == nil {
				err = lines.Error()
			}
			if err != nil || page.NextCursor == nil {
				return err
			}
			s.Cursor = *page.NextCursor
		}
	})
}

var csvHeader = []string{
	"id", "first_seen", "last_seen", "turns", "spans", "cost_usd", "input_tokens", "output_tokens", "errors",
	"scores", "mean_score",
}

func csvLine(r *wire.Rollup) []string {
	line := []string{
		wire.CSVCell(r.ID), r.FirstSeen.Format(time.RFC3339Nano), r.LastSeen.Format(time.RFC3339Nano),
	}
	count := func(n int64) { line = append(line, strconv.FormatInt(n, 10)) }
	count(r.Turns)
	count(r.Spans)
	line = append(line, strconv.FormatFloat(r.Cost, 'f', -1, 64))
	count(r.InputTokens)
	count(r.OutputTokens)
	count(r.Errors)
	count(r.Scores)

	return append(line, row{Rollup: *r}.Score())
}
