package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/wire"
)

// Exporter gives back what was recorded, as events. On a sidecar they pass through, one by one.
type Exporter interface {
	// ExportEvents gives fn the events of each record that s finds, and mark now and then a cursor that goes on behind them, "" at
	// the end. It ends with the first error of either.
	ExportEvents(ctx context.Context, id wire.Identity, s wire.Search, fn func([]wire.Event) error, mark func(cursor string) error) error
}

const (
	exportsMax    = 4                // at once
	exportTimeMax = 20 * time.Second // of one answer, well below the time in which it must be written; the caller goes on by cursor
)

// errEnough ends an export that is not at its end.
var errEnough = errors.New("enough for one answer")

// exportRequests answers with newline-delimited events, as POST /sync/events takes them. Now and then, and at the end, comes a line
// {"export":{"cursor","done"}}: an answer without one that says done was cut, or is one of several; the next call goes on with the
// cursor. Format csv is another answer: see exportCSV.
func (a *API) exportRequests(c *call) error {
	e, err := wire.DecodeExport(c.object)
	if err != nil {
		return err
	}
	s := e.Search
	select {
	case a.exports <- struct{}{}:
	default:
		return wire.Unavailable(a.shares.delay(), "The server writes as many exports as it may at once. Send this again later.")
	}
	if e.Format == wire.FormatCSV {
		return a.exportCSV(c, s, func() { <-a.exports })
	}
	// What is wrong with the search must be told before the first line.
	err = a.c.Exporter.ExportEvents(c.life, c.id, s, func([]wire.Event) error { return errEnough }, func(string) error { return errEnough })
	if err != nil && !errors.Is(err, errEnough) {
		<-a.exports
		return err
	}
	id := c.id
	c.ctx.SetContentType("application/x-ndjson")
	streamBody(c.ctx, fasthttp.NewStreamReader(func(w *bufio.Writer) {
		defer func() { <-a.exports }()
		defer func() {
			if p := recover(); p != nil { // here it would end the process
				a.c.Metrics.Panics.Inc()
				a.c.Logger.Error("an export panicked", "panic", p, "stack", string(debug.Stack()))
			}
		}()
		a.writeExport(id, s, w)
	}))
	return nil
}

// writeExport writes lines until the export is at its end, or the time of the answer.
func (a *API) writeExport(id wire.Identity, s wire.Search, w *bufio.Writer) {
	ctx, done := context.WithTimeout(a.life, callTimeMax)
	defer done()
	begun := time.Now()
	var line []byte
	err := a.c.Exporter.ExportEvents(ctx, id, s, func(events []wire.Event) error {
		for i := range events {
			line = events[i].AppendLine(line[:0])
			if _, err := w.Write(line); err != nil {
				return err // whoever asked has gone
			}
		}
		return nil
	}, func(cursor string) error {
		mark, _ := json.Marshal(map[string]wire.ExportMark{"export": {Cursor: cursor, Done: cursor == ""}})
		if _, err := w.Write(append(mark, '\n')); err != nil {
			return err
		}
		if err := w.Flush(); err != nil || time.Since(begun) < exportTimeMax {
			return err
		}
		return errEnough
	})
	if err != nil && !errors.Is(err, errEnough) {
		a.c.Logger.Warn("an export broke off", "error", err)
	}
}
