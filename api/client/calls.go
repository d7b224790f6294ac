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
	var a wire.BatchAnswer
	r.method, r.path, r.encoding, r.answer, r.answerBytesMax = "POST", "/sync/events", "zstd", &a, syncAnswerBytesMax
	err := c.do(ctx, r)
	if err == nil && (a.Accepted < 0 || a.Duplicate < 0 || a.Accepted+a.Duplicate+len(a.Refused) != events) {
		err = c.unusable(200, "of %d events it accounts for %d accepted, %d duplicate and %d refused", events, a.Accepted, a.Duplicate, len(a.Refused))
	}
	return a, err
}

// Verdict asks what a key is good for. CodeUnauthorized says that the server does not know it.
func (c *Client) Verdict(ctx context.Context, key wire.Secret) (wire.KeyVerdict, error) {
	var v wire.KeyVerdict
	err := c.do(ctx, request{method: "GET", path: "/sync/key", key: key, answer: &v, answerBytesMax: syncAnswerBytesMax})
	if err == nil && v.Account == "" {
		err = c.unusable(200, "it names no account")
	}
	return v, err
}

// Request reads one record.
func (c *Client) Request(ctx context.Context, id wire.Identity, requestID string) (wire.Record, error) {
	var r wire.Record
	err := c.do(ctx, request{method: "GET", path: "/api/public/v2/requests/" + url.PathEscape(requestID), key: id.Key, answer: &r})
	return r, err
}

// Search lists records.
func (c *Client) Search(ctx context.Context, id wire.Identity, s wire.Search) (wire.SearchPage, error) {
	var p wire.SearchPage
	body, err := encode(s)
	if err != nil {
		return p, wire.Invalid(wire.FieldError{Field: "filter_group", Reason: "is not JSON: " + err.Error()})
	}
	err = c.do(ctx, request{method: "POST", path: "/api/public/v2/requests/search", key: id.Key, body: body, answer: &p})
	return p, err
}

// Orphans lists requests that have not come, though events that belong to them have.
func (c *Client) Orphans(ctx context.Context, id wire.Identity, q wire.OrphanQuery) (wire.OrphanPage, error) {
	query := url.Values{"per_page": {strconv.Itoa(max(1, q.PerPage))}}
	if q.Cursor != "" {
		query.Set("cursor", q.Cursor)
	}
	var p wire.OrphanPage
	err := c.do(ctx, request{method: "GET", path: "/api/public/v2/requests/orphans", query: query, key: id.Key, answer: &p})
	return p, err
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

	var ch wire.Changes
	err := c.do(ctx, request{method: "GET", path: "/sync/changes", query: query, key: id.Key, answer: &ch})
	return ch, err
}
