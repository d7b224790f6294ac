package api

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"time"

	"promptspool/api/wire"
)

// writeCSV writes a line for each record that the search finds, with the first line of its texts: what a
// spreadsheet takes. It begins with page, and holds no more than one page of rows. An answer that
// cannot be finished is cut, so that nobody takes a part for the whole.
func (a *API) writeCSV(
	ctx context.Context, id wire.Identity, s wire.Search, page wire.SearchPage, out io.Writer,
) error {
	begun := time.Now()
	w := csv.NewWriter(out)
	if s.Cursor == "" {
		_ = w.Write(wire.CSVColumns) // w.Error returns its error below
	}

	for {
		if err := a.writeRows(ctx, id, page, w); err != nil {
			return err
		}
		if w.Flush(); w.Error() != nil || page.NextCursor == nil {
			return w.Error()
		}
		if time.Since(begun) > exportTimeMax {
			return errPartial
		}

		var err error
		s.Cursor = *page.NextCursor
		page, err = a.c.Querier.Search(ctx, id, s)
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
	}
}

// writeRows writes one page of rows. The last one has the cursor that continues behind it.
func (a *API) writeRows(ctx context.Context, id wire.Identity, page wire.SearchPage, w *csv.Writer) error {
	for i := range page.Items {
		cursor := ""
		if i == len(page.Items)-1 && page.NextCursor != nil {
			cursor = *page.NextCursor
		}

		// A page of a search has only the beginning of long metadata. The record is read for the
		// rest, one at a time, so that a page of them is never in memory.
		row := &page.Items[i]
		if row.Truncated() {
			record, err := a.c.Querier.Request(ctx, id, row.RequestID)
			if err != nil && !wire.IsCode(err, wire.CodeNotFound) { // else it was deleted after the search
				return fmt.Errorf("export: %w", err)
			}
			row = row.WithMetadata(record.Metadata)
		}
		_ = w.Write(row.CSVLine(cursor)) // w.Error returns its error after the page
	}

	return nil
}
