package client

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"promptspool/api/wire"
)

// Suggest asks for values that a field has.
func (c *Client) Suggest(ctx context.Context, id wire.Identity, q wire.SuggestQuery) (wire.Suggestions, error) {
	query := url.Values{"field": {q.Field}}
	for name, value := range map[string]string{"prefix": q.Prefix, "metadata_key": q.Key, "prompt_id": q.TemplateID} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	var s wire.Suggestions
	if q.FilterGroup != nil {
		filter, err := encode(q.FilterGroup)
		if err != nil {
			return s, wire.Invalid(wire.FieldError{Field: "filter_group", Reason: "is not JSON: " + err.Error()})
		}
		query.Set("filter_group", string(filter))
	}
	err := c.do(ctx, request{method: "GET", path: "/api/public/v2/requests/suggestions", query: query, key: id.Key, answer: &s})
	return s, err
}

// Analyze sums up the records that a search with the same filter finds.
func (c *Client) Analyze(ctx context.Context, id wire.Identity, q wire.StatisticsQuery) (wire.Analytics, error) {
	var a wire.Analytics
	err := c.post(ctx, id, "/api/public/v2/requests/analytics", q, &a)
	return a, err
}

// TemplateStatistics sums them up by template version.
func (c *Client) TemplateStatistics(ctx context.Context, id wire.Identity, q wire.StatisticsQuery) (wire.TemplateStatistics, error) {
	var s wire.TemplateStatistics
	err := c.post(ctx, id, "/api/public/v2/requests/template-statistics", q, &s)
	return s, err
}

// Delete deletes one record, or all with a metadata value, for good.
func (c *Client) Delete(ctx context.Context, id wire.Identity, d wire.Deletion) (wire.Deleted, error) {
	path, query := "/api/public/v2/requests", url.Values{}
	if d.RequestID != "" {
		path += "/" + url.PathEscape(d.RequestID)
	} else {
		query.Set("metadata_key", d.Key)
		query.Set("metadata_value", d.Value)
		if !d.Before.IsZero() {
			query.Set("before", d.Before.Format(time.RFC3339Nano))
		}
	}
	var deleted wire.Deleted
	err := c.do(ctx, request{method: "DELETE", path: path, query: query, key: id.Key, answer: &deleted})
	return deleted, err
}

// Reprice prices stored requests anew, a part at a call.
func (c *Client) Reprice(ctx context.Context, id wire.Identity, cursor string) (wire.Repriced, error) {
	var told wire.Repriced
	err := c.post(ctx, id, "/api/public/v2/requests/reprice", map[string]string{"cursor": cursor}, &told)
	return told, err
}

// Scan looks for secrets in what is stored, a part at a call, and masks them if asked to.
func (c *Client) Scan(ctx context.Context, id wire.Identity, q wire.ScanQuery) (wire.Scanned, error) {
	var scanned wire.Scanned
	err := c.post(ctx, id, "/api/public/v2/requests/scan", q, &scanned)
	return scanned, err
}

// Backtest renders the variables of a template's newest requests with another version of it.
func (c *Client) Backtest(ctx context.Context, id wire.Identity, q wire.BacktestQuery) ([]wire.Backtest, error) {
	var lines jsonLines
	if err := c.post(ctx, id, "/rest/backtest", q, &lines); err != nil {
		return nil, err
	}
	tests := make([]wire.Backtest, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal(line, &tests[i]); err != nil {
			return nil, c.unusable(200, "line %d: %v", i+1, err)
		}
	}
	return tests, nil
}

// jsonLines is an answer of newline-delimited JSON.
type jsonLines []json.RawMessage

func (c *Client) post(ctx context.Context, id wire.Identity, path string, body, answer any) error {
	encoded, err := encode(body)
	if err != nil {
		return wire.Invalid(wire.FieldError{Field: "filter_group", Reason: "is not JSON: " + err.Error()})
	}
	return c.do(ctx, request{method: "POST", path: path, key: id.Key, body: encoded, answer: answer})
}
