package api

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"promptspool/api/wire"
)

// exportCSV answers with a line for each record that the search finds, without its texts: what a spreadsheet takes. It asks for a page
// of rows at a time and holds no more. An answer that cannot be finished is cut, so that nobody takes a part for the whole.
func (a *API) exportCSV(c *call, s wire.Search, done func()) error {
	s.Page, s.PerPage = 0, wire.PageItemsMax
	page, err := a.c.Querier.Search(c.life, c.id, s) // what is wrong with the search must be told before the first line
	if err != nil {
		done()
		return err
	}
	id := c.id
	out, in := io.Pipe() // fasthttp closes out when the answer is written, or cannot be
	c.ctx.SetContentType("text/csv; charset=utf-8")
	streamBody(c.ctx, out)
	go func() {
		defer done()
		defer func() {
			if p := recover(); p != nil { // here it would end the process
				a.c.Metrics.Panics.Inc()
				a.c.Logger.Error("an export panicked", "panic", p, "stack", string(debug.Stack()))
				_ = in.CloseWithError(io.ErrUnexpectedEOF)
			}
		}()
		_ = in.CloseWithError(a.writeCSV(id, s, page, in))
	}()
	return nil
}

// writeCSV writes page and those behind it.
func (a *API) writeCSV(id wire.Identity, s wire.Search, page wire.SearchPage, out io.Writer) error {
	ctx, done := context.WithTimeout(a.life, callTimeMax)
	defer done()
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
			_ = w.Write(page.Items[i].CSVLine(cursor))
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
			a.c.Logger.Warn("an export broke off", "error", err)
			return fmt.Errorf("export: %w", err)
		}
	}
}
