package api

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"time"

	"promptspool/api/wire"
)

// writeCSV writes a line for each record that the search finds, without its texts: what a spreadsheet takes. It begins
// with page, and holds no more than a page of rows. An answer that cannot be finished is cut, so that nobody takes a
// part for the whole.
func (a *API) writeCSV(ctx context.Context, id wire.Identity, s wire.Search, page wire.SearchPage, out io.Writer) error {
	begun := time.Now()
	w := csv.NewWriter(out)
	if s.Cursor == "" {
		_ = w.Write(wire.CSVColumns) // Flush tells
	}
	for {
		for i := range page.Items {
			cursor := ""
			if i == len(page.Items)-1 && page.NextCursor != nil {
				cursor = *page.NextCursor
			}
			row := &page.Items[i]
			if row.Truncated() {
				record, err := a.c.Querier.Request(ctx, id, row.RequestID)
				if err != nil && !wire.IsCode(err, wire.CodeNotFound) { // else deleted since
					return fmt.Errorf("export: %w", err)
				}
				row = row.WithMetadata(record.Metadata)
			}
			_ = w.Write(row.CSVLine(cursor))
		}
		if w.Flush(); w.Error() != nil || page.NextCursor == nil {
			return w.Error()
		}
		if time.Since(begun) > exportTimeMax {
			return errEnough
		}
		s.Cursor = *page.NextCursor
		var err error
		if page, err = a.c.Querier.Search(ctx, id, s); err != nil {
			return fmt.Errorf("export: %w", err)
		}
	}
}
