package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"promptspool/api/wire"
)

// Exports that are written at the same time, and searches for secrets. Each reads the database
// all the while, and an answer that its caller does not read holds its place for as long as the
// pace of streamed answers allows.
const (
	exportsMax      = 4
	exportsOfKeyMax = 1
	pageExportsMax  = 16               // of people, who get everything in one answer
	exportTimeMax   = 20 * time.Second // of one answer, well below requestTimeMax; the caller continues by cursor
	exportRetry     = 5 * time.Second
)

// errPartial ends an answer whose export is not at its end.
var errPartial = errors.New("enough for one answer")

// exportRequests answers with newline-delimited events, as POST /sync/events takes them, or with
// CSV; see wire.CSVExport.
//
// Now and then, and at the end, comes a line {"export":{"cursor","done"}}. An answer whose last
// line of these has done false, or that has none, was cut or is one of several: the next request
// continues with the cursor.
func (a *API) exportRequests(c *exchange, e wire.Export) error {
	// The answer may be a file of CSV, which has no place for a warning.
	if len(c.warnings) > 0 {
		c.ctx.Response.Header.Set("Promptspool-Warning", strings.Join(c.warnings, " "))
	}
	release, err := begin(a.exports, c.id.KeyID, "export")
	if err != nil {
		return err
	}
	if a.c.Upstream != nil {
		return a.relayExport(c, e, release)
	}

	// Once a line was written, the status is sent. So the search is tried before, and a fault in
	// it gets its own answer.
	first := e.Search
	first.Page, first.PerPage = 0, 1
	if e.Format == wire.FormatCSV {
		// This page is the beginning of the CSV.
		first.PerPage = wire.PageItemsMax
	} else if wire.IsRecordCursor(first.Cursor) {
		// It is none of a search.
		first.Cursor = ""
	}
	page, err := a.recorded.Search(c.context, c.id, first)
	if err != nil {
		release()
		return err
	}

	a.noteExport(c, e)

	// The request is over before the answer is written, so write must not use c.
	id := c.id
	write := func(ctx context.Context, w io.Writer) error {
		return a.writeEvents(ctx, id, e.Search, w.(*bufio.Writer))
	}
	if e.Format == wire.FormatCSV {
		write = func(ctx context.Context, w io.Writer) error {
			return a.writeCSV(ctx, id, first, page, w)
		}
	}
	c.ctx.SetContentType(exportType(e))
	a.stream(c.ctx, requestTimeMax, release, write)

	return nil
}

// exportType returns the Content-Type of an export.
func exportType(e wire.Export) string {
	if e.Format == wire.FormatCSV {
		return "text/csv; charset=utf-8"
	}
	return "application/x-ndjson"
}

// relayExport answers with what the server answers. Where that is cut, so is this.
func (a *API) relayExport(c *exchange, e wire.Export, release func()) error {
	// The request's own context ends before the answer is written. This one is ended by the
	// server, or because the caller reads too slowly.
	ctx, cancel := context.WithCancel(a.root)
	answer, err := a.c.Upstream.OpenExport(ctx, c.id, e)
	if err != nil {
		cancel()
		release()
		return err
	}

	c.ctx.SetContentType(exportType(e))
	a.stream(c.ctx, requestTimeMax, release, func(_ context.Context, w io.Writer) error {
		defer cancel()
		defer answer.Close()
		_, err := io.Copy(w, answer)

		return err
	})

	return nil
}

// writeEvents writes lines until the export is at its end, or exportTimeMax is over. It
// has written full lines only, so the answer ends well even if the export broke off.
func (a *API) writeEvents(ctx context.Context, id wire.Identity, s wire.Search, w *bufio.Writer) error {
	begun := time.Now()
	var line []byte
	var writeErr error // the caller has left

	writeLines := func(events []wire.Event) error {
		for i := range events {
			line = events[i].AppendLine(line[:0])
			_, writeErr = w.Write(line)
			if writeErr != nil {
				return writeErr
			}
		}
		return nil
	}
	writeMark := func(cursor string) error {
		mark, _ := json.Marshal(map[string]wire.ExportMark{"export": {Cursor: cursor, Done: cursor == ""}})
		_, err := w.Write(append(mark, '\n'))
		writeErr = errors.Join(err, w.Flush())
		if writeErr != nil || time.Since(begun) < exportTimeMax {
			return writeErr
		}
		return errPartial
	}

	err := a.c.Records.ExportEvents(ctx, id, s, writeLines, writeMark)
	if err != nil && writeErr == nil && !errors.Is(err, errPartial) {
		a.c.Logger.Warn("an export broke off", "error", err)
	}

	return writeErr
}

// writeCSV writes CSV that begins with page. It holds no more than one page of rows. An answer that cannot be
// finished is cut, so that a part is not taken for the whole.
func (a *API) writeCSV(
	ctx context.Context, id wire.Identity, s wire.Search, page wire.SearchPage, out io.Writer,
) error {
	begun := time.Now()
	search := func(s wire.Search) (wire.SearchPage, error) {
		if time.Since(begun) > exportTimeMax {
			return wire.SearchPage{}, errPartial
		}
		return a.recorded.Search(ctx, id, s)
	}
	record := func(requestID string) (wire.Record, error) { return a.recorded.Request(ctx, id, requestID) }

	return wire.CSVExport{Columns: wire.CSVColumns, Search: search, Record: record}.Write(out, s, page)
}
