package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"time"

	"promptspool/api/wire"
)

// Export asks for the events of what s finds and gives fn each line, which is valid until fn returns. It returns the cursor behind the
// last lines that are sure to be whole, and whether that was the end. One call may get only a part: the next goes on with the cursor.
// An error of fn ends it.
func (c *Client) Export(ctx context.Context, id wire.Identity, s wire.Search, fn func(line []byte) error) (mark wire.ExportMark, err error) {
	return c.exportLines(ctx, id, s, fn, func(wire.ExportMark) error { return nil })
}

// exportLines is Export that also gives each mark.
func (c *Client) exportLines(ctx context.Context, id wire.Identity, s wire.Search, fn func(line []byte) error, marked func(wire.ExportMark) error) (mark wire.ExportMark, err error) {
	mark.Cursor = s.Cursor
	err = c.export(ctx, id, wire.Export{Search: s}, func(ctx context.Context, body io.Reader) error {
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, wire.BatchBodyBytesMax)
		for lines.Scan() {
			if !bytes.HasPrefix(lines.Bytes(), []byte(`{"export":`)) {
				if err := fn(lines.Bytes()); err != nil {
					return err
				}
				continue
			}
			var m struct{ Export wire.ExportMark }
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				return c.unusable(200, "%v", err)
			}
			mark = m.Export
			if err := marked(mark); err != nil {
				return err
			}
		}
		if err := lines.Err(); err != nil {
			return c.unreachable(ctx, err)
		}
		return nil
	})
	return mark, err
}

// ExportCSV asks for a line of each record that s finds and gives fn each, with the columns that wire.CSVColumns names, the heading
// first unless s has a cursor. Without an error nothing is missing. An answer that was cut is CodeUnavailable: a later call goes on with
// the last cursor that was given, and what came behind it comes again. An error of fn ends it.
func (c *Client) ExportCSV(ctx context.Context, id wire.Identity, s wire.Search, fn func(columns []string) error) error {
	return c.export(ctx, id, wire.Export{Search: s, Format: wire.FormatCSV}, func(ctx context.Context, body io.Reader) error {
		lines := csv.NewReader(body)
		lines.FieldsPerRecord = len(wire.CSVColumns)
		for {
			columns, err := lines.Read()
			switch bad := (*csv.ParseError)(nil); {
			case err == io.EOF:
				return nil
			case errors.As(err, &bad) && bad.Err == csv.ErrFieldCount:
				return c.unusable(200, "%v", err)
			case err != nil: // cut, maybe in the middle of a line
				return c.unreachable(ctx, err)
			}
			if err := fn(columns); err != nil {
				return err
			}
		}
	})
}

// export makes the call and hands a good answer to read.
func (c *Client) export(ctx context.Context, id wire.Identity, e wire.Export, read func(ctx context.Context, body io.Reader) error) error {
	if !canTravel(id.Key) {
		return errNoKey
	}
	body, err := encode(e)
	if err != nil {
		return errNotJSON(err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(silenceMax, func() { cancel(errSilent) })
	defer silence.Stop()
	req, err := c.newRequest(ctx, request{method: "POST", path: "/api/public/v2/requests/export", key: id.Key, body: body}, silence)
	if err != nil {
		return wire.Errorf(wire.CodeInternal, "The call could not be made: %w", err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer res.Body.Close()
	heard := &heard{res.Body, silence}
	if res.StatusCode != 200 || res.Header.Get("Promptspool-Version") == "" {
		told, _ := io.ReadAll(io.LimitReader(heard, syncAnswerBytesMax))
		return c.read(res, told, syncAnswerBytesMax, nil)
	}
	return read(ctx, heard)
}

// ExportEvents gives fn the events of what s finds, and mark each cursor that the server tells, "" at the end. It goes on by itself
// where an answer was only a part, and keeps no more than one event. An error of fn or mark ends it.
func (c *Client) ExportEvents(ctx context.Context, id wire.Identity, s wire.Search, fn func([]wire.Event) error, mark func(cursor string) error) error {
	for {
		told, err := c.exportLines(ctx, id, s, func(line []byte) error {
			e, err := wire.ParseEvent(line)
			if err != nil {
				return c.unusable(200, "an event of it is none: %v", err)
			}
			return fn([]wire.Event{e})
		}, func(m wire.ExportMark) error { return mark(m.Cursor) })
		if err != nil || told.Done {
			return err
		}
		if told.Cursor == s.Cursor {
			return wire.Unavailable(awayDelay, "The server's answer was cut.")
		}
		s.Cursor = told.Cursor
	}
}
