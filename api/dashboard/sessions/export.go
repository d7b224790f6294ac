package sessions

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"time"

	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

// exportPerPage is the size of the pages of an export, for each of which all names are read.
const exportPerPage = 10_000

// export answers with all pages of a list, as CSV or as a line of JSON for each row.
func (p *pages) export(c *frame.Exchange, f filter.Filter, s wire.RollupSearch) error {
	id, format := c.Identity(), c.URL.Query().Get("format")
	media := map[string]string{"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}[format]
	if media == "" {
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

	return c.SendFile(f.FileName(s.Of, "."+format), media, func(ctx context.Context, w io.Writer) error {
		lines, texts := csv.NewWriter(w), json.NewEncoder(w)
		write := func(r *wire.Rollup) error { return texts.Encode(r) }
		if format == "csv" {
			write = func(r *wire.Rollup) error { return lines.Write(csvLine(r)) }
			_ = lines.Write(csvHeader) // lines.Error has its error
		}
		// A later page of a part may have older calls of the same session.
		written := make(map[string]bool)
		for err == nil {
			for i := range page.Items {
				r := &page.Items[i]
				if err == nil && !written[r.ID] {
					err = write(r)
				}
				if !page.Complete {
					written[r.ID] = true
				}
			}
			if lines.Flush(); err != nil || page.NextCursor == nil {
				return cmp.Or(err, lines.Error())
			}
			s.Cursor = *page.NextCursor
			page, err = p.records.Rollups(ctx, id, s)
		}
		return err
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
