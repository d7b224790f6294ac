package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"

	"promptspool/api/wire"
)

// Send delivers a batch of events: newline-delimited JSON, compressed with zstd. An
// answer that does not account for every event is an error. Send only reads the batch,
// but may do so for a moment after it has returned.
func (c *Client) Send(
	ctx context.Context, key wire.Secret, events int, batch []byte,
) (wire.BatchAnswer, error) {
	return c.sendBatch(ctx, events, request{key: key, body: batch})
}

// SendStream is Send for a batch that is not in memory as a whole. Each call of open must
// return a reader from its beginning.
func (c *Client) SendStream(
	ctx context.Context, key wire.Secret, events int, open func() io.Reader,
) (wire.BatchAnswer, error) {
	return c.sendBatch(ctx, events, request{key: key, stream: open})
}

func (c *Client) sendBatch(ctx context.Context, events int, r request) (wire.BatchAnswer, error) {
	r.method, r.path = "POST", "/sync/events"
	r.encoding, r.answerBytesMax = "zstd", syncAnswerBytesMax
	a, err := ask[wire.BatchAnswer](ctx, c, r)
	if err != nil {
		return a, err
	}

	// An event without a result must be sent again, so the batch was not delivered.
	refused := len(a.Refused)
	if a.Accepted < 0 || a.Duplicate < 0 || a.Accepted+a.Duplicate+refused != events {
		return a, c.unusable(200, "of %d events it accounts for %d accepted, %d duplicate and %d refused",
			events, a.Accepted, a.Duplicate, refused)
	}

	return a, nil
}

// Verdict returns what a key may do. wire.CodeUnauthorized means that the server does not
// know it.
func (c *Client) Verdict(ctx context.Context, key wire.Secret) (wire.KeyVerdict, error) {
	v, err := ask[wire.KeyVerdict](ctx, c, request{
		method:         "GET",
		path:           "/sync/key",
		key:            key,
		answerBytesMax: syncAnswerBytesMax,
	})
	if err == nil && v.Account == "" {
		err = c.unusable(200, "it names no project")
	}
	return v, err
}

// Request reads one record.
func (c *Client) Request(ctx context.Context, id wire.Identity, requestID string) (wire.Record, error) {
	return ask[wire.Record](ctx, c, get(id, kept("requests", requestID), nil))
}

// Search lists records.
func (c *Client) Search(ctx context.Context, id wire.Identity, s wire.Search) (wire.SearchPage, error) {
	return ask[wire.SearchPage](ctx, c, post(id, "/api/public/v2/requests/search", s))
}

// Trace lists the spans of a trace.
func (c *Client) Trace(ctx context.Context, id wire.Identity, trace string) (wire.Trace, error) {
	return ask[wire.Trace](ctx, c, get(id, kept("traces", trace), nil))
}

// Rollups finds sessions, traces or users.
func (c *Client) Rollups(ctx context.Context, id wire.Identity, s wire.RollupSearch) (wire.RollupPage, error) {
	return ask[wire.RollupPage](ctx, c, post(id, "/api/public/v2/"+s.Of+"/search", s))
}

// Spans finds spans.
func (c *Client) Spans(ctx context.Context, id wire.Identity, s wire.SpanSearch) (wire.SpanPage, error) {
	return ask[wire.SpanPage](ctx, c, post(id, "/api/public/v2/spans/search", s))
}

// Session returns what the records of a session add up to.
func (c *Client) Session(ctx context.Context, id wire.Identity, session string) (wire.RollupFound, error) {
	return ask[wire.RollupFound](ctx, c, get(id, kept("sessions", session), nil))
}

// Orphans lists requests that have not arrived, though events that belong to them have.
func (c *Client) Orphans(ctx context.Context, id wire.Identity, q wire.OrphanQuery) (wire.OrphanPage, error) {
	q.PerPage = max(1, q.PerPage)
	return ask[wire.OrphanPage](ctx, c, get(id, "/api/public/v2/requests/orphans", q))
}

// Changes polls the registry's change feed. The server holds the request for up to q.Wait,
// at most a minute.
func (c *Client) Changes(ctx context.Context, id wire.Identity, q wire.ChangesQuery) (wire.Changes, error) {
	asked := struct {
		wire.ChangesQuery
		Wait string `json:"wait"` // as text, unlike a duration's JSON
	}{q, q.Wait.String()}

	return ask[wire.Changes](ctx, c, get(id, "/sync/changes", asked))
}

// ScoreDefinitions lists the definitions of the project's scores.
func (c *Client) ScoreDefinitions(ctx context.Context, id wire.Identity) (wire.ScoreDefinitions, error) {
	list, err := ask[wire.ScoreDefinitionList](ctx, c, get(id, kept("score-definitions"), nil))
	return list.Items, err
}

// DefineScore makes a definition, or replaces the one of its name.
func (c *Client) DefineScore(ctx context.Context, id wire.Identity, d wire.ScoreDefinition) error {
	return c.do(ctx, send("PUT", id, kept("score-definitions", d.Name), d))
}

// UndefineScore removes a definition.
func (c *Client) UndefineScore(ctx context.Context, id wire.Identity, name string) error {
	return c.do(ctx, send("DELETE", id, kept("score-definitions", name), nil))
}

// Views lists the project's views.
func (c *Client) Views(ctx context.Context, id wire.Identity) ([]wire.View, error) {
	list, err := ask[wire.ViewList](ctx, c, get(id, kept("views"), nil))
	return list.Items, err
}

// PutView saves a view of the project, in place of the one of its name.
func (c *Client) PutView(ctx context.Context, id wire.Identity, v wire.View) error {
	return c.do(ctx, send("PUT", id, kept("views", v.Name), v))
}

// RemoveView deletes a view of the project.
func (c *Client) RemoveView(ctx context.Context, id wire.Identity, v wire.View) error {
	return c.do(ctx, send("DELETE", id, kept("views", v.Name), nil))
}

// Alerts lists the project's alerts.
func (c *Client) Alerts(ctx context.Context, id wire.Identity) ([]wire.Alert, error) {
	list, err := ask[wire.AlertList](ctx, c, get(id, kept("alerts"), nil))
	return list.Items, err
}

// PutAlert makes an alert, or replaces the rule of its name.
func (c *Client) PutAlert(ctx context.Context, id wire.Identity, r wire.AlertRule) error {
	return c.do(ctx, send("PUT", id, kept("alerts", r.Name), r))
}

// RemoveAlert removes an alert.
func (c *Client) RemoveAlert(ctx context.Context, id wire.Identity, name string) error {
	return c.do(ctx, send("DELETE", id, kept("alerts", name), nil))
}

// TestAlert returns how often a rule would have fired.
func (c *Client) TestAlert(ctx context.Context, id wire.Identity, r wire.AlertRule) (wire.AlertTest, error) {
	return ask[wire.AlertTest](ctx, c, post(id, kept("alerts", "test"), r))
}

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
	lines.Split(wholeLines)
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

// wholeLines splits at line breaks. It leaves out what follows the last one: a connection that
// broke has cut it.
func wholeLines(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if atEOF && bytes.IndexByte(data, '\n') < 0 {
		return len(data), nil, nil
	}
	return bufio.ScanLines(data, atEOF)
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

// Suggest lists values that a field has.
func (c *Client) Suggest(
	ctx context.Context, id wire.Identity, q wire.SuggestQuery,
) (wire.Suggestions, error) {
	return ask[wire.Suggestions](ctx, c, get(id, "/api/public/v2/requests/suggestions", q))
}

// Analyze sums up the records that a search with the same filter finds.
func (c *Client) Analyze(
	ctx context.Context, id wire.Identity, q wire.StatisticsQuery,
) (wire.Analytics, error) {
	return ask[wire.Analytics](ctx, c, post(id, "/api/public/v2/requests/analytics", q))
}

// Statistics sums up the same records by q.By, and compares two versions of a template.
func (c *Client) Statistics(
	ctx context.Context, id wire.Identity, q wire.PartsQuery,
) (wire.Statistics, error) {
	return ask[wire.Statistics](ctx, c, post(id, "/api/public/v2/requests/statistics", q))
}

// Delete deletes one record, or all with a metadata value, of a session or of a trace, for good.
func (c *Client) Delete(ctx context.Context, id wire.Identity, d wire.Deletion) (wire.Deleted, error) {
	r := send("DELETE", id, kept("requests"), nil)
	switch {
	case d.RequestID != "":
		r.path = kept("requests", d.RequestID)
	case d.SessionID != "":
		r.path = kept("sessions", d.SessionID)
	case d.TraceID != "":
		r.path = kept("traces", d.TraceID)
	default:
		r.query = wire.DeletionQuery{Key: d.Key, Value: d.Value, Before: d.Before}
	}

	return ask[wire.Deleted](ctx, c, r)
}

// Reprice recalculates the cost of stored requests, a part with each request.
func (c *Client) Reprice(ctx context.Context, id wire.Identity, cursor string) (wire.Repriced, error) {
	body := map[string]string{"cursor": cursor}
	return ask[wire.Repriced](ctx, c, post(id, "/api/public/v2/requests/reprice", body))
}

// Scan looks for secrets in stored records, a part with each request, and masks them if told
// to.
func (c *Client) Scan(ctx context.Context, id wire.Identity, q wire.ScanQuery) (wire.Scanned, error) {
	return ask[wire.Scanned](ctx, c, post(id, "/api/public/v2/requests/scan", q))
}
