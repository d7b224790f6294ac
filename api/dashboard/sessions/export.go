package sessions

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

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
