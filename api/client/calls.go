package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/url"
	"strconv"

	"promptspool/api/wire"
)

// Send delivers a batch: so many events as newline-delimited JSON, compressed with zstd. An answer that does not account for
// every event counts as none. The batch is only read, possibly for a moment longer than the call lasts.
func (c *Client) Send(ctx context.Context, key wire.Secret, events int, batch []byte) (wire.BatchAnswer, error) {
	return c.sendBatch(ctx, events, request{key: key, body: batch})
}

// SendStream is Send of a batch that is not held as a whole: each call of open gives a reader from its beginning.
func (c *Client) SendStream(ctx context.Context, key wire.Secret, events int, open func() io.Reader) (wire.BatchAnswer, error) {
	return c.sendBatch(ctx, events, request{key: key, stream: open})
}

func (c *Client) sendBatch(ctx context.Context, events int, r request) (wire.BatchAnswer, error) {
	r.method, r.path, r.encoding, r.answerBytesMax = "POST", "/sync/events", "zstd", syncAnswerBytesMax
	a, err := ask[wire.BatchAnswer](ctx, c, r)
	if err == nil && (a.Accepted < 0 || a.Duplicate < 0 || a.Accepted+a.Duplicate+len(a.Refused) != events) {
		err = c.unusable(200, "of %d events it accounts for %d accepted, %d duplicate and %d refused", events, a.Accepted, a.Duplicate, len(a.Refused))
	}
	return a, err
}

// Verdict asks what a key is good for. CodeUnauthorized says that the server does not know it.
func (c *Client) Verdict(ctx context.Context, key wire.Secret) (wire.KeyVerdict, error) {
	v, err := ask[wire.KeyVerdict](ctx, c, request{
		method: "GET", path: "/sync/key", key: key, answerBytesMax: syncAnswerBytesMax,
	})
	if err == nil && v.Account == "" {
		err = c.unusable(200, "it names no account")
	}
	return v, err
}

// Request reads one record.
func (c *Client) Request(ctx context.Context, id wire.Identity, requestID string) (wire.Record, error) {
	return ask[wire.Record](ctx, c, get(id, "/api/public/v2/requests/"+url.PathEscape(requestID), nil))
}

// Search lists records.
func (c *Client) Search(ctx context.Context, id wire.Identity, s wire.Search) (wire.SearchPage, error) {
	return ask[wire.SearchPage](ctx, c, post(id, "/api/public/v2/requests/search", s))
}

// Orphans lists requests that have not come, though events that belong to them have.
func (c *Client) Orphans(ctx context.Context, id wire.Identity, q wire.OrphanQuery) (wire.OrphanPage, error) {
	query := url.Values{"per_page": {strconv.Itoa(max(1, q.PerPage))}}
	if q.Cursor != "" {
		query.Set("cursor", q.Cursor)
	}
	return ask[wire.OrphanPage](ctx, c, get(id, "/api/public/v2/requests/orphans", query))
}

// encode is json.Marshal that leaves < > & as they are: what a caller published is passed on, not rewritten.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// Changes polls the registry's change feed; the server holds the call up to q.Wait, and at most a minute.
func (c *Client) Changes(ctx context.Context, id wire.Identity, q wire.ChangesQuery) (wire.Changes, error) {
	query := url.Values{"since": {strconv.FormatUint(q.Since, 10)}, "wait": {q.Wait.String()}}
	if q.ProviderBaseURLs != "" {
		query.Set("provider_base_urls", q.ProviderBaseURLs)
	}

	return ask[wire.Changes](ctx, c, get(id, "/sync/changes", query))
}
