package requests

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/number"
	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// exported is what is saved of a view.
type exported struct {
	wire.Search
	columns []string // of a CSV; nil for all
}

// exportForms are the formats in which a view can be saved.
var exportForms = map[string]struct {
	extension, mediaType string
	write                func(p *pages, ctx context.Context, id wire.Identity, e exported, w io.Writer) error
}{
	wire.FormatEvents: {".jsonl", "application/x-ndjson", (*pages).writeEvents},
	"records":         {".jsonl", "application/x-ndjson", (*pages).writeRecords},
	wire.FormatCSV:    {".csv", "text/csv; charset=utf-8", (*pages).writeCSV},
}

// exportLink is an entry of the menu that saves a view.
type exportLink struct{ Text, Hint, Href string }

// exportLinks returns the entries for the records of a filter, whose list shows some columns.
func exportLinks(f filter.Filter, columns []string) []exportLink {
	href := func(format string, columns []string) string {
		f.Columns = columns
		q := f.Values()
		q.Set("format", format)
		return address.Of("/requests/export", q)
	}
	const events = "all there is; promptspool requests import reads them into another server or project"

	return []exportLink{
		{"Events", events, href(wire.FormatEvents, nil)},
		{"Records", "one JSON object per line, with prompts and responses", href("records", nil)},
		{"CSV", "the columns of this list, for a spreadsheet", href(wire.FormatCSV, columns)},
		{"CSV, all columns", "", href(wire.FormatCSV, nil)},
	}
}

// exportRequests answers with all records of a view, in one of the forms: records unless the address names one.
func (p *pages) exportRequests(c *frame.Exchange) error {
	query := c.URL.Query()
	name := cmp.Or(query.Get("format"), "records")
	form, ok := exportForms[name]
	if !ok {
		return wire.Invalid(wire.FieldError{Field: "format", Reason: "must be events, records or csv"})
	}

	id := c.Identity()
	f := c.Filter(query)
	s, err := f.Search()
	if err != nil {
		return err
	}

	// An invalid filter must be rejected now. Once the first line is sent, an answer can
	// only be cut off.
	probe := s
	probe.PerPage = 1
	if _, err := p.records.Search(c.Context(), id, probe); err != nil {
		return err
	}

	if err := c.Note(c.Context(), "export requests", name, wire.AuditFilter(f.Text)); err != nil {
		return err
	}

	e := exported{s, f.Columns}
	write := func(ctx context.Context, w io.Writer) error { return form.write(p, ctx, id, e, w) }

	if name == wire.FormatCSV {
		name = "requests"
	}

	return c.SendFile(f.FileName(name, form.extension), form.mediaType, write)
}

// writeEvents writes what `requests import` reads. No cursors are written: a browser could
// not resume with one.
func (p *pages) writeEvents(ctx context.Context, id wire.Identity, e exported, w io.Writer) error {
	var line []byte
	write := func(events []wire.Event) error {
		for i := range events {
			line = events[i].AppendLine(line[:0])
			if _, err := w.Write(line); err != nil {
				return err
			}
		}
		return nil
	}
	ignoreCursor := func(string) error { return nil }

	return p.records.ExportEvents(ctx, id, e.Search, write, ignoreCursor)
}

// writeRecords writes records as the API shows them.
func (p *pages) writeRecords(ctx context.Context, id wire.Identity, e exported, w io.Writer) error {
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	query := wire.ExportQuery{FilterGroup: e.FilterGroup}

	return p.records.Export(ctx, id, query, func(e wire.Exported) error {
		return lines.Encode(e.Record)
	})
}

// writeCSV writes a line for each record.
func (p *pages) writeCSV(ctx context.Context, id wire.Identity, e exported, w io.Writer) error {
	e.PerPage = wire.PageItemsMax
	search := func(s wire.Search) (wire.SearchPage, error) { return p.records.Search(ctx, id, s) }
	record := func(requestID string) (wire.Record, error) { return p.records.Request(ctx, id, requestID) }
	page, err := search(e.Search)
	if err != nil {
		return err
	}

	return wire.CSVExport{Columns: csvHeader(e.columns), Search: search, Record: record}.Write(w, e.Search, page)
}

// csvHeader returns the heading of a CSV of chosen columns. Without any it has all but the tools, as in the
// API.
func csvHeader(chosen []string) []string {
	if chosen == nil {
		// Without the cursor.
		return wire.CSVColumns[:len(wire.CSVColumns)-1]
	}

	header := []string{"started_at", "status", "error_message", "request_id", "accepted_at"}
	for _, c := range filter.ColumnsOf(chosen) {
		for _, cell := range c.Cells() {
			if !slices.Contains(header, cell) {
				header = append(header, cell)
			}
		}
	}

	return header
}

// eraseView is what the page shows that asks before records are deleted.
type eraseView struct {
	wire.Deletion
	Requests int64 // that would be deleted
	More     bool  // there are more of them than were counted
	Others   []eraseLink
	In       string        // the list that has them
	Filter   filter.Filter // of the list
	Back     string        // its address
	Cancel   string        // the address that the question came from
	Error    *wire.Error
}

// eraseLink leads to the page for all records with a metadata value of one.
type eraseLink struct{ Key, Value, Href string }

// eraseLinksMax bounds the values that are offered.
const eraseLinksMax = 20

// Counted describes what would be deleted.
func (v eraseView) Counted() string {
	text := number.Quantity(v.Requests, "request")
	if v.More {
		return "at least " + text
	}

	return text
}

// erasePage shows what would be deleted, with its number. The page is the question before it.
func (p *pages) erasePage(c *frame.Exchange) error {
	q := c.URL.Query()
	f := c.Filter(q)
	v := eraseView{
		Filter: f,
		Deletion: wire.Deletion{
			RequestID: q.Get("id"),
			SessionID: q.Get("session_id"),
			Key:       q.Get("key"),
			Value:     q.Get("value"),
		},
		Back:   f.Requests(),
		Cancel: f.Requests(),
	}

	switch {
	case v.RequestID != "":
		r, err := p.records.Request(c.Context(), c.Identity(), v.RequestID)
		if err != nil {
			return err
		}
		v.Requests, v.Cancel = 1, address.Of("/requests/"+r.RequestID, keepPlace(f.Values(), q))
		for _, key := range slices.Sorted(maps.Keys(r.Metadata)) {
			if len(v.Others) < eraseLinksMax {
				v.Others = append(v.Others, eraseLink{key, r.Metadata[key], eraseAddress(f, key, r.Metadata[key])})
			}
		}
	case v.SessionID != "":
		v.Cancel = address.Session(v.SessionID)
		if err := p.countErased(c, &v, filterline.Where("session", "", v.SessionID)); err != nil {
			return err
		}
	case v.Key != "" && v.Value != "":
		if err := p.countErased(c, &v, filterline.Where("metadata", v.Key, v.Value)); err != nil {
			return err
		}
	}

	return c.Show(http.StatusOK, "erase", "Delete requests", "requests", v)
}

// countErased counts by the condition that the deletion itself has.
func (p *pages) countErased(c *frame.Exchange, v *eraseView, condition filterline.Term) error {
	doomed := c.Filter(nil).With(condition)
	page, err := doomed.List(c.Context(), p.records, c.Identity(), wire.Search{PerPage: 1})
	v.Requests, v.More, v.In = int64(page.Total), page.TotalIsLowerBound, doomed.Requests()

	return err
}

// eraseAddress returns the address of the question before all requests with a metadata
// value are deleted, or to choose that value. It keeps the filter of the list.
func eraseAddress(f filter.Filter, key, value string) string {
	q := f.Values()
	for name, text := range map[string]string{"key": key, "value": value} {
		if text != "" {
			q.Set(name, text)
		}
	}

	return address.Of("/requests/delete", q)
}

// erase deletes what the page showed.
func (p *pages) erase(c *frame.Exchange) error {
	form := wire.Deletion{RequestID: c.PostForm.Get("id"), SessionID: c.PostForm.Get("session_id")}
	if key, value := c.PostForm.Get("key"), c.PostForm.Get("value"); key != "" || value != "" {
		// Both, so that a slip deletes nothing.
		if key == "" || value == "" {
			return wire.Invalid(wire.FieldError{Field: "value", Reason: "and key must both be given"})
		}
		form.Key, form.Value = key, value
	}
	deleted, err := p.records.Delete(c.Context(), c.Identity(), form)
	// One that broke off has deleted some for good.
	if err == nil || deleted.Records > 0 {
		// Even if the request's time is up.
		ctx := context.WithoutCancel(c.Context())
		err = errors.Join(err,
			c.Note(ctx, "delete requests", form.AuditTarget(), deleted.AuditDetail()))
	}
	if err != nil {
		return err
	}

	return c.Redirect(c.Filter(c.PostForm).Requests(), "erased")
}
