package client

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// Suggest lists values that a field has.
func (c *Client) Suggest(
	ctx context.Context, id wire.Identity, q wire.SuggestQuery,
) (wire.Suggestions, error) {
	query := url.Values{"field": {q.Field}}
	for name, value := range map[string]string{
		"prefix":       q.Prefix,
		"metadata_key": q.Key,
		"prompt_id":    q.TemplateID,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.FilterGroup != nil {
		filter, err := jsonscan.Marshal(q.FilterGroup)
		if err != nil {
			return wire.Suggestions{}, errNotJSON(err)
		}
		query.Set("filter_group", string(filter))
	}

	return ask[wire.Suggestions](ctx, c, get(id, "/api/public/v2/requests/suggestions", query))
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
	path, query := "/api/public/v2/requests", url.Values{}
	switch {
	case d.RequestID != "":
		path += "/" + url.PathEscape(d.RequestID)
	case d.SessionID != "":
		path = "/api/public/v2/sessions/" + url.PathEscape(d.SessionID)
	case d.TraceID != "":
		path = "/api/public/v2/traces/" + url.PathEscape(d.TraceID)
	default:
		query.Set("metadata_key", d.Key)
		query.Set("metadata_value", d.Value)
		if !d.Before.IsZero() {
			query.Set("before", d.Before.Format(time.RFC3339Nano))
		}
	}

	return ask[wire.Deleted](ctx, c, request{method: "DELETE", path: path, query: query, key: id.Key})
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
