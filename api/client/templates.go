package client

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"promptspool/api/wire"
)

// Raw reads a template's version, with its snippets inserted. ident is a name or an id.
func (c *Client) Raw(
	ctx context.Context, id wire.Identity, ident string, s wire.Selector,
) (wire.RawTemplate, error) {
	return c.raw(ctx, id, ident, s, url.Values{})
}

// Source reads a template's version as it was published, with references to snippets.
func (c *Client) Source(
	ctx context.Context, id wire.Identity, ident string, s wire.Selector,
) (wire.RawTemplate, error) {
	return c.raw(ctx, id, ident, s, url.Values{"resolve_snippets": {"false"}})
}

func (c *Client) raw(
	ctx context.Context, id wire.Identity, ident string, s wire.Selector, q url.Values,
) (wire.RawTemplate, error) {
	if s.Version > 0 {
		q.Set("version", strconv.Itoa(s.Version))
	}
	if s.Label != "" {
		q.Set("label", s.Label)
	}

	return ask[wire.RawTemplate](ctx, c, get(id, "/prompt-templates/"+url.PathEscape(ident), q))
}

// Fetch reads a rendered version of a template, as an app would.
func (c *Client) Fetch(
	ctx context.Context, id wire.Identity, ident string, f wire.TemplateFetch,
) (wire.RenderedTemplate, error) {
	return ask[wire.RenderedTemplate](ctx, c, post(id, "/prompt-templates/"+url.PathEscape(ident), f))
}

// Publish makes a version of a template, or moves its labels.
func (c *Client) Publish(ctx context.Context, id wire.Identity, p wire.Publish) (wire.Published, error) {
	return ask[wire.Published](ctx, c, post(id, "/rest/prompt-templates", publishBody(p)))
}

// Patch makes a version of a template from an earlier one.
func (c *Client) Patch(
	ctx context.Context, id wire.Identity, ident string, p wire.TemplatePatch,
) (wire.Published, error) {
	path := "/rest/prompt-templates/" + url.PathEscape(ident)
	return ask[wire.Published](ctx, c, request{method: "PATCH", path: path, key: id.Key, json: p})
}

// publishBody returns the body of POST /rest/prompt-templates.
func publishBody(p wire.Publish) any {
	type base struct {
		Name string   `json:"prompt_name"`
		Tags []string `json:"tags"`
	}
	type version struct {
		Blueprint     json.RawMessage `json:"prompt_template"`
		CommitMessage string          `json:"commit_message,omitempty"`
		Metadata      json.RawMessage `json:"metadata,omitempty"`
	}

	return struct {
		Template    base              `json:"prompt_template"`
		Version     version           `json:"prompt_version"`
		Labels      []string          `json:"release_labels,omitempty"`
		ExternalIDs []wire.ExternalID `json:"external_ids,omitzero"` // an empty list removes them
	}{base{p.Name, p.Tags}, version{p.Blueprint, p.CommitMessage, p.Metadata}, p.Labels, p.ExternalIDs}
}

// List lists templates with their latest versions.
func (c *Client) List(
	ctx context.Context, id wire.Identity, q wire.TemplateListQuery,
) (wire.TemplateList, error) {
	query := url.Values{
		"page":     {strconv.Itoa(max(1, q.Page))},
		"per_page": {strconv.Itoa(max(1, q.PerPage))},
		"tags":     q.Tags,
	}

	for name, value := range map[string]string{
		"name":             q.Name,
		"label":            q.Label,
		"status":           q.Status,
		"created_by_email": q.Author,
		"sort_by":          q.SortBy,
		"sort_order":       q.SortOrder,
		"external_source":  q.Source,
		"external_id":      q.ExternalID,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.IsSnippet != nil {
		query.Set("is_snippet", strconv.FormatBool(*q.IsSnippet))
	}
	for name, at := range map[string]time.Time{
		"created_after":  q.CreatedAfter,
		"created_before": q.CreatedBefore,
		"updated_after":  q.UpdatedAfter,
		"updated_before": q.UpdatedBefore,
	} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}

	return ask[wire.TemplateList](ctx, c, get(id, "/prompt-templates", query))
}

// Labels lists a template's labels, and their history.
func (c *Client) Labels(ctx context.Context, id wire.Identity, ident string) (wire.Labels, error) {
	return ask[wire.Labels](ctx, c, get(id, "/prompt-templates/"+url.PathEscape(ident)+"/labels", nil))
}

// CreateLabel points a new label to a version, as the key's owner.
func (c *Client) CreateLabel(
	ctx context.Context, id wire.Identity, ident string, w wire.LabelWrite, _ string,
) (wire.PlacedLabel, error) {
	return ask[wire.PlacedLabel](ctx, c, post(id, "/prompts/"+url.PathEscape(ident)+"/label", w))
}

// MoveLabel points a label to another version, as the key's owner.
func (c *Client) MoveLabel(
	ctx context.Context, id wire.Identity, label int64, version int, _ string,
) (wire.PlacedLabel, error) {
	path := "/prompt-labels/" + strconv.FormatInt(label, 10)
	return ask[wire.PlacedLabel](ctx, c, request{
		method: "PATCH",
		path:   path,
		key:    id.Key,
		json:   wire.LabelMove{Version: version},
	})
}

// DeleteLabel deletes a label.
func (c *Client) DeleteLabel(ctx context.Context, id wire.Identity, label int64, _ string) error {
	path := "/prompt-labels/" + strconv.FormatInt(label, 10)
	return c.do(ctx, request{method: "DELETE", path: path, key: id.Key})
}

// Archive archives a template.
func (c *Client) Archive(ctx context.Context, id wire.Identity, ident, _ string) error {
	path := "/rest/prompt-templates/" + url.PathEscape(ident)
	return c.do(ctx, request{method: "DELETE", path: path, key: id.Key})
}

// Restore restores an archived template.
func (c *Client) Restore(ctx context.Context, id wire.Identity, ident, _ string) error {
	path := "/rest/prompt-templates/" + url.PathEscape(ident) + "/restore"
	return c.do(ctx, request{method: "POST", path: path, key: id.Key})
}
