// Package sessions has the dashboard's pages of what calls add up to: the lists of traces, sessions and
// users, and a session as one conversation. The page of a trace is one of package requests.
package sessions

import (
	"context"
	"embed"
	"encoding/csv"
	"encoding/json"
	"fmt"
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

const listPerPage = 50

// listView is what a list shows.
type listView struct {
	filter.Form
	wire.RollupPage
	One    string // what a row is, such as session
	Title  string // what it lists, such as Sessions
	Rows   []row
	Next   string // the address of the next page; "" on the last one
	First  string // the address of the first page; "" on that page
	Export string // that of the whole list as a file, to be ended with csv or jsonl
}

// row is a session, a trace or a user.
type row struct{ wire.Rollup }

// Duration returns the time from the first call to the last.
func (r row) Duration() string { return number.Span(r.LastSeen.Sub(r.FirstSeen)) }

// Score returns the mean score; "" without one.
func (r row) Score() string {
	if r.MeanScore == nil {
		return ""
	}
	return strconv.FormatFloat(*r.MeanScore, 'f', 1, 64)
}

// list shows the list at its path, or saves it as a file.
func (p *pages) list(c *frame.Exchange) error {
	query := c.URL.Query()
	f := c.Filter(query).OfRollups(query)
	v := listView{Form: filter.NewForm(c.URL.Path, f)}
	v.One = strings.TrimSuffix(v.Noun(), "s")
	v.Title = strings.ToUpper(v.One[:1]) + v.Noun()[1:]
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

	for _, item := range v.Items {
		v.Rows = append(v.Rows, row{item})
	}

	here := address.Of(v.Path, f.Values())
	v.Export = address.With(here, "format", "")
	if v.NextCursor != nil {
		v.Next = address.With(here, "cursor", *v.NextCursor)
	}
	if search.Cursor != "" {
		v.First = here
	}

	return c.Show(http.StatusOK, "list", f.Title(v.Title), "requests", v)
}

// Heading returns the heading of a column of numbers, which sorts by a field.
func (v listView) Heading(field, text string) table.Heading {
	h := table.Heading{Text: text, Number: true}
	h.Href, h.Sorted = v.Filter.Sorted(v.Path, field)

	return h
}

// reviewMax bounds what the ids of the rows take of an address.
const reviewMax = 4 << 10

// Review returns the address where the calls of the rows are scored, one after another.
func (v listView) Review() string {
	of := filterline.Where(v.One, "", "")
	of.Values = nil
	size := 0
	for _, r := range v.Rows {
		size += len(url.QueryEscape(r.ID))
		if size <= reviewMax {
			of.Values = append(of.Values, filterline.Value{Text: r.ID, Quoted: true})
		}
	}

	return address.Of("/review", filter.Filter{}.With(of).Values())
}

// SessionsOf returns the address of the sessions of a user.
func (v listView) SessionsOf(user string) string {
	return address.Of("/sessions", filter.Filter{}.With(filterline.Where("user", "", user)).Values())
}

// exportPerPage is the size of the pages of an export, for each of which all names are read.
const exportPerPage = 10_000

// exportForms are the formats in which a list can be saved.
var exportForms = map[string]struct {
	mediaType, heading string
	write              func(w io.Writer, r *wire.Rollup) error
}{
	"csv":   {"text/csv; charset=utf-8", csvHeading, writeCSV},
	"jsonl": {"application/x-ndjson", "", writeJSON},
}

const csvHeading = "id,first_seen,last_seen,turns,spans,cost_usd,input_tokens,output_tokens,errors,scores,mean_score\n"

func writeJSON(w io.Writer, r *wire.Rollup) error { return json.NewEncoder(w).Encode(r) }

func writeCSV(w io.Writer, r *wire.Rollup) error {
	const layout = time.RFC3339Nano
	facts := fmt.Sprintf("%s %s %d %d %.9f %d %d %d %d", r.FirstSeen.Format(layout), r.LastSeen.Format(layout),
		r.Turns, r.Spans, r.Cost, r.InputTokens, r.OutputTokens, r.Errors, r.Scores)
	line := append([]string{wire.CSVCell(r.ID)}, strings.Fields(facts)...)

	return csv.NewWriter(w).WriteAll([][]string{append(line, row{*r}.Score())})
}

// export answers with all pages of a list, in one of the forms.
func (p *pages) export(c *frame.Exchange, f filter.Filter, s wire.RollupSearch) error {
	id, format := c.Identity(), c.URL.Query().Get("format")
	form, ok := exportForms[format]
	if !ok {
		return wire.Invalid(wire.FieldError{Field: "format", Reason: "must be csv or jsonl"})
	}
	// A fault can be answered only before the first line is sent.
	s.PerPage = exportPerPage
	page, err := p.records.Rollups(c.Context(), id, s)
	if err != nil {
		return err
	}
	if err := c.Note(c.Context(), "export "+s.Of, format, wire.AuditFilter(f.Text)); err != nil {
		return err
	}

	return c.SendFile(f.FileName(s.Of, "."+format), form.mediaType, func(ctx context.Context, w io.Writer) error {
		_, err := io.WriteString(w, form.heading)
		// A later page of a part may have older calls of the same session.
		written := make(map[string]bool)
		for err == nil {
			for _, r := range page.Items {
				if written[r.ID] {
					continue
				}
				if err := form.write(w, &r); err != nil {
					return err
				}
				if !page.Complete {
					written[r.ID] = true
				}
			}
			if page.NextCursor == nil {
				return nil
			}
			s.Cursor = *page.NextCursor
			page, err = p.records.Rollups(ctx, id, s)
		}
		return err
	})
}

// Records reads what was logged.
type Records interface {
	Search(ctx context.Context, id wire.Identity, s wire.Search) (wire.SearchPage, error)
	Request(ctx context.Context, id wire.Identity, requestID string) (wire.Record, error)
	Rollups(ctx context.Context, id wire.Identity, s wire.RollupSearch) (wire.RollupPage, error)
	Session(ctx context.Context, id wire.Identity, session string) (wire.RollupFound, error)
}

// pages are the pages of sessions.
type pages struct {
	records  Records
	recorder frame.Recorder
}

//go:embed *.html
var html embed.FS

// Pages returns the pages of sessions.
func Pages(records Records, recorder frame.Recorder) frame.Section {
	p := &pages{records, recorder}

	return frame.Section{
		HTML: html,
		Routes: []frame.Route{
			{Pattern: "GET /traces", Page: p.list},
			{Pattern: "GET /sessions", Page: p.list},
			{Pattern: "GET /sessions/{id}", Page: p.sessionPage},
			{Pattern: scoreRoute, Page: p.setScore,
				Review: frame.Review("Set this score?", "Set", "name", "score", "set")},
			{Pattern: "GET /users", Page: p.list},
		},
		Notices: map[string]string{
			"no-next":     "There is no later session.",
			"no-previous": "There is no earlier session.",
		},
		Undos: map[string]frame.Undoing{"session_id": frame.UndoScore(recorder, p.scored)},
	}
}
