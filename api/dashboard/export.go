package dashboard

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/url"
	"slices"

	"promptspool/api/wire"
)

// exportWriter writes the records that a search finds.
type exportWriter func(
	d *Dashboard, ctx context.Context, id wire.Identity, s wire.Search, w io.Writer,
) error

// exportForm is a format in which a view can be saved.
type exportForm struct {
	name, text, hint string
	file, mediaType  string
	write            exportWriter
}

var exportForms = []exportForm{
	{
		name:      wire.FormatEvents,
		text:      "Events",
		hint:      "to import into another account or server",
		file:      "events.ndjson",
		mediaType: "application/x-ndjson",
		write:     (*Dashboard).writeEvents,
	},
	{
		name:      "records",
		text:      "Records",
		hint:      "one JSON object per line, with prompts and responses",
		file:      "records.ndjson",
		mediaType: "application/x-ndjson",
		write:     (*Dashboard).writeRecords,
	},
	{
		name:      wire.FormatCSV,
		text:      "CSV",
		hint:      "for a spreadsheet, without prompts and responses",
		file:      "records.csv",
		mediaType: "text/csv; charset=utf-8",
		write:     (*Dashboard).writeCSV,
	},
}

// exportLink is an entry of the menu that saves a view.
type exportLink struct{ Text, Hint, Href string }

// exportLinks returns the entries for the records of a filter.
func exportLinks(f filter) []exportLink {
	var links []exportLink
	for _, form := range exportForms {
		q := f.values()
		q.Set("format", form.name)
		links = append(links, exportLink{form.text, form.hint, address("/requests/export", q)})
	}

	return links
}

// readExportForm returns the form that an address asks for, or records if it names none.
func readExportForm(q url.Values) (exportForm, error) {
	name := q.Get("format")
	if name == "" {
		name = "records"
	}

	i := slices.IndexFunc(exportForms, func(form exportForm) bool { return form.name == name })
	if i < 0 {
		fault := wire.FieldError{Field: "format", Reason: "must be events, records or csv"}
		return exportForm{}, wire.Invalid(fault)
	}

	return exportForms[i], nil
}

// exportRequests answers with all records of a view, in one of the forms.
func (d *Dashboard) exportRequests(c *call) error {
	query := c.URL.Query()
	form, err := readExportForm(query)
	if err != nil {
		return err
	}

	id := c.identity()
	s, err := c.filter(query).search(d.Now())
	if err != nil {
		return err
	}

	// An invalid filter must be rejected now. Once the first line is sent, an answer can
	// only be cut off.
	probe := s
	probe.PerPage = 1
	if _, err := d.Records.Search(c.Context(), id, probe); err != nil {
		return err
	}

	write := func(ctx context.Context, w io.Writer) error { return form.write(d, ctx, id, s, w) }

	// The server streams long answers after the handler has returned, within bounds.
	streamer, streams := innermost(c.w).(interface {
		Stream(owner string, write func(ctx context.Context, w io.Writer) error) error
	})
	if streams {
		if err := streamer.Stream(id.KeyID, write); err != nil {
			return err
		}
	}

	c.w.Header().Set("Content-Type", form.mediaType)
	c.w.Header().Set("Content-Disposition", `attachment; filename="`+form.file+`"`)
	if streams {
		return nil
	}

	return write(c.Context(), c.w)
}

// writeEvents writes what `requests import` reads. No cursors are written: a browser could
// not resume with one.
func (d *Dashboard) writeEvents(ctx context.Context, id wire.Identity, s wire.Search, w io.Writer) error {
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

	return d.Records.ExportEvents(ctx, id, s, write, ignoreCursor)
}

// writeRecords writes records as the API shows them.
func (d *Dashboard) writeRecords(ctx context.Context, id wire.Identity, s wire.Search, w io.Writer) error {
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	query := wire.ExportQuery{FilterGroup: s.FilterGroup, Q: s.Q}

	return d.Records.Export(ctx, id, query, func(e wire.Exported) error {
		return lines.Encode(e.Record)
	})
}

// writeCSV writes a line for each record, a page of rows at a time.
func (d *Dashboard) writeCSV(ctx context.Context, id wire.Identity, s wire.Search, w io.Writer) error {
	lines := csv.NewWriter(w)
	columns := len(wire.CSVColumns) - 1 // without the cursor
	if err := lines.Write(wire.CSVColumns[:columns]); err != nil {
		return err
	}

	s.PerPage = wire.PageItemsMax
	for {
		page, err := d.Records.Search(ctx, id, s)
		if err != nil {
			return err
		}

		for i := range page.Items {
			row := &page.Items[i]
			if row.Truncated() {
				// A row holds only so much metadata. The record has all of it, unless it
				// was deleted since the search.
				record, err := d.Records.Request(ctx, id, row.RequestID)
				if err != nil && !wire.IsCode(err, wire.CodeNotFound) {
					return err
				}
				row = row.WithMetadata(record.Metadata)
			}
			_ = lines.Write(row.CSVLine("")[:columns]) // lines.Error has its error
		}

		lines.Flush()
		if lines.Error() != nil || page.NextCursor == nil {
			return lines.Error()
		}

		s.Cursor = *page.NextCursor
	}
}
