package client

import (
	"context"
	"net/url"

	"promptspool/api/wire"
)

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
	r := request{method: "DELETE", path: "/api/public/v2/requests", key: id.Key}
	switch {
	case d.RequestID != "":
		r.path += "/" + url.PathEscape(d.RequestID)
	case d.SessionID != "":
		r.path = "/api/public/v2/sessions/" + url.PathEscape(d.SessionID)
	case d.TraceID != "":
		r.path = "/api/public/v2/traces/" + url.PathEscape(d.TraceID)
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
