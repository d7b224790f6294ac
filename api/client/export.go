package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"

	"promptspool/api/wire"
)

// Export calls fn with each line of the events that s finds; a line is valid until fn
// returns. It returns the cursor after the last complete lines, and whether the export
// is done. One request may get only a part: the next one continues with the cursor. An error
// of fn ends it.
func (c *Client) Export(
	ctx context.Context, id wire.Identity, s wire.Search, fn func(line []byte) error,
) (mark wire.ExportMark, err error) {
	mark.Cursor = s.Cursor
	answer, err := c.openExport(ctx, id, wire.Export{Search: s})
	if err != nil {
		return mark, err
	}
	defer answer.Close()

	lines := bufio.NewScanner(answer)
	lines.Buffer(nil, wire.BatchBodyBytesMax)
	for lines.Scan() {
		if !bytes.HasPrefix(lines.Bytes(), []byte(`{"export":`)) {
			if err := fn(lines.Bytes()); err != nil {
				return mark, err
			}
			continue
		}
		var m struct{ Export wire.ExportMark }
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return mark, c.unusable(200, "%v", err)
		}

		// The mark covers the lines before it. The lines after the last one come again
		// with the next request.
		mark = m.Export
	}

	if err := lines.Err(); err != nil {
		return mark, c.unreachable(answer.ctx, err)
	}

	return mark, nil
}

// ExportCSV is Export for a line of each record, in the columns of wire.CSVColumns without the
// cursor. The heading comes first, unless s has a cursor.
//
// It holds the lines until a cursor follows or the answer is complete, so that none comes again.
// If the answer breaks off, the error is wire.CodeUnavailable.
func (c *Client) ExportCSV(
	ctx context.Context, id wire.Identity, s wire.Search, fn func(columns []string) error,
) (mark wire.ExportMark, err error) {
	mark.Cursor = s.Cursor
	answer, err := c.openExport(ctx, id, wire.Export{Search: s, Format: wire.FormatCSV})
	if err != nil {
		return mark, err
	}
	defer answer.Close()

	lines := csv.NewReader(answer)
	lines.FieldsPerRecord = len(wire.CSVColumns)
	last := len(wire.CSVColumns) - 1
	heading := s.Cursor == ""
	var held [][]string
	for !mark.Done {
		next := wire.ExportMark{Done: true}
		line, err := lines.Read()
		switch bad := (*csv.ParseError)(nil); {
		case err == io.EOF:
		case errors.As(err, &bad) && bad.Err == csv.ErrFieldCount:
			return mark, c.unusable(200, "%v", err)
		case err != nil: // cut, maybe in the middle of a line
			return mark, c.unreachable(answer.ctx, err)
		default:
			held = append(held, line[:last])
			if heading || line[last] == "" {
				heading = false
				continue
			}
			next = wire.ExportMark{Cursor: line[last]}
		}

		for _, line := range held {
			if err := fn(line); err != nil {
				return mark, err
			}
		}
		held, mark = held[:0], next
	}

	return mark, nil
}

// OpenExport requests an export and returns the server's answer as it arrives. The caller
// must close it.
func (c *Client) OpenExport(ctx context.Context, id wire.Identity, e wire.Export) (io.ReadCloser, error) {
	answer, err := c.openExport(ctx, id, e)
	if err != nil {
		return nil, err
	}

	return answer, nil
}

func (c *Client) openExport(ctx context.Context, id wire.Identity, e wire.Export) (*openAnswer, error) {
	answer, err := c.open(ctx, post(id, "/api/public/v2/requests/export", e))
	if err != nil {
		return nil, err
	}

	if answer.StatusCode != 200 || answer.Header.Get("Promptspool-Version") == "" {
		// Errors are small, and are read as a whole.
		defer answer.Close()
		text, _ := io.ReadAll(io.LimitReader(answer, syncAnswerBytesMax))

		return nil, c.read(answer.Response, text, syncAnswerBytesMax, nil)
	}

	return answer, nil
}
