package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"time"

	"promptspool/api/wire"
)

// Export asks for the events of what s finds and gives fn each line, which is valid until fn returns. It returns the cursor behind the
// last lines that are sure to be whole, and whether that was the end. One call may get only a part: the next goes on with the cursor.
// An error of fn ends it.
func (c *Client) Export(ctx context.Context, id wire.Identity, s wire.Search, fn func(line []byte) error) (mark wire.ExportMark, err error) {
	mark.Cursor = s.Cursor
	body, err := encode(s)
	if err != nil {
		return mark, wire.Invalid(wire.FieldError{Field: "filter_group", Reason: "is not JSON: " + err.Error()})
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(silenceMax, func() { cancel(errSilent) })
	defer silence.Stop()
	req, err := c.newRequest(ctx, request{method: "POST", path: "/api/public/v2/requests/export", key: id.Key, body: body}, silence)
	if err != nil {
		return mark, wire.Errorf(wire.CodeInternal, "The call could not be made: %w", err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return mark, c.unreachable(ctx, err)
	}
	defer res.Body.Close()
	heard := &heard{res.Body, silence}
	if res.StatusCode != 200 || res.Header.Get("Promptspool-Version") == "" {
		told, _ := io.ReadAll(io.LimitReader(heard, syncAnswerBytesMax))
		var none struct{}
		return mark, c.read(res, told, syncAnswerBytesMax, &none)
	}
	lines := bufio.NewScanner(heard)
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
		mark = m.Export
	}
	if err := lines.Err(); err != nil {
		return mark, c.unreachable(ctx, err)
	}
	return mark, nil
}
