package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"promptspool/api/admission"
	"promptspool/api/wire"
)

// Exporter gives back what was recorded, as events.
type Exporter interface {
	// ExportEvents gives fn the events of each record that s finds, and mark now and then a cursor that goes on behind them, "" at
	// the end. It ends with the first error of either.
	ExportEvents(ctx context.Context, id wire.Identity, s wire.Search, fn func([]wire.Event) error, mark func(cursor string) error) error
}

// ExportRelay asks a server for an export. What passes through a sidecar is neither held nor
// read: one event may be larger than what the sidecar has.
type ExportRelay interface {
	// OpenExport returns the answer as it comes. The caller must close it.
	OpenExport(ctx context.Context, id wire.Identity, e wire.Export) (io.ReadCloser, error)
}

// Exports that are written at the same time. Each reads the database all the while, and an answer that nobody takes
// holds its place for as long as the pace of streamed answers lets it.
const (
	exportsMax      = 4
	exportsOfKeyMax = 1
	pageExportsMax  = 16               // of people, who get all in one answer
	exportTimeMax   = 20 * time.Second // of one answer, well below callTimeMax; the caller goes on by cursor
	exportRetry     = 5 * time.Second
)

// errEnough ends an export that is not at its end.
var errEnough = errors.New("enough for one answer")

// beginExport takes a place among the exports. The caller must call end, or gets the error.
func beginExport(places *admission.Pool, owner string) (end func(), err error) {
	place := places.Claim(owner)
	err = place.Resize(1)
	switch {
	case errors.Is(err, admission.ErrShare):
		return nil, &wire.Error{Code: wire.CodeTooMany, RetryAfter: exportRetry,
			Message: "You already have an export running. Wait until it has ended, then start this one again."}
	case err != nil:
		return nil, wire.Unavailable(exportRetry,
			"The server is already writing as many exports as it can at the same time. Try again later.")
	}

	return place.Release, nil
}

// exportRequests answers with newline-delimited events, as POST /sync/events takes them. Now and then, and at the end, comes a line
// {"export":{"cursor","done"}}: an answer without one that says done was cut, or is one of several; the next call goes on with the
// cursor. Format csv is another answer: see writeCSV.
func (a *API) exportRequests(c *call) error {
	e, err := wire.DecodeExport(c.object)
	if err != nil {
		return err
	}
	end, err := beginExport(a.exports, c.id.KeyID)
	if err != nil {
		return err
	}

	if a.c.ExportRelay != nil {
		return a.relayExport(c, e, end)
	}

	// What is wrong with the search must be told before the first line.
	s, id := e.Search, c.id
	first := s
	first.Page, first.PerPage = 0, 1
	if e.Format == wire.FormatCSV {
		first.PerPage = wire.PageItemsMax // it is written, too
	}
	page, err := a.c.Querier.Search(c.life, id, first)
	if err != nil {
		end()
		return err
	}

	if e.Format == wire.FormatCSV {
		c.ctx.SetContentType(exportType(e))
		a.stream(c.ctx, callTimeMax, end, func(ctx context.Context, w io.Writer) error {
			return a.writeCSV(ctx, id, first, page, w)
		})
		return nil
	}

	c.ctx.SetContentType(exportType(e))
	a.stream(c.ctx, callTimeMax, end, func(ctx context.Context, w io.Writer) error {
		return a.writeEvents(ctx, id, s, w.(*bufio.Writer))
	})

	return nil
}

// exportType is the Content-Type of an export.
func exportType(e wire.Export) string {
	if e.Format == wire.FormatCSV {
		return "text/csv; charset=utf-8"
	}

	return "application/x-ndjson"
}

// relayExport answers with what the server does. Where that is cut, so is this.
func (a *API) relayExport(c *call, e wire.Export, end func()) error {
	life, done := context.WithCancel(a.life) // the server ends it, or the pace of the caller
	answer, err := a.c.ExportRelay.OpenExport(life, c.id, e)
	if err != nil {
		done()
		end()
		return err
	}

	c.ctx.SetContentType(exportType(e))
	a.stream(c.ctx, callTimeMax, end, func(_ context.Context, w io.Writer) error {
		defer done()
		defer answer.Close()
		_, err := io.Copy(w, answer)

		return err
	})

	return nil
}

// writeEvents writes lines until the export is at its end, or the time of the answer. What it has written is whole
// lines, so that the answer ends well also where the export broke off.
func (a *API) writeEvents(ctx context.Context, id wire.Identity, s wire.Search, w *bufio.Writer) error {
	var line []byte
	var gone error // the caller's
	begun := time.Now()
	err := a.c.Exporter.ExportEvents(ctx, id, s, func(events []wire.Event) error {
		for i := range events {
			line = events[i].AppendLine(line[:0])
			if _, gone = w.Write(line); gone != nil {
				return gone
			}
		}
		return nil
	}, func(cursor string) error {
		mark, _ := json.Marshal(map[string]wire.ExportMark{"export": {Cursor: cursor, Done: cursor == ""}})
		_, err := w.Write(append(mark, '\n'))
		if gone = errors.Join(err, w.Flush()); gone != nil || time.Since(begun) < exportTimeMax {
			return gone
		}
		return errEnough
	})

	if err != nil && gone == nil && !errors.Is(err, errEnough) {
		a.c.Logger.Warn("an export broke off", "error", err)
	}

	return gone
}
