package client

import (
	"context"
	"net/url"
	"strconv"

	"promptspool/api/wire"
)

// Raw reads a template's version, with its snippets inserted. ident is a name or an id.
func (c *Client) Raw(
	ctx context.Context, id wire.Identity, ident string, s wire.Selector,
) (wire.RawTemplate, error) {
	return ask[wire.RawTemplate](ctx, c, get(id, "/prompt-templates/"+url.PathEscape(ident), s))
}

// Source reads a template's version as it was published, with references to snippets.
func (c *Client) Source(
	ctx context.Context, id wire.Identity, ident string, s wire.Selector,
) (wire.RawTemplate, error) {
	asked := struct {
		wire.Selector
		Resolve bool `json:"resolve_snippets"`
	}{s, false}

	return ask[wire.RawTemplate](ctx, c, get(id, "/prompt-templates/"+url.PathEscape(ident), asked))
}

// Fetch reads a rendered version of a template, as an app would.
func (c *Client) Fetch(
	ctx context.Context, id wire.Identity, ident string, f wire.TemplateFetch,
) (wire.RenderedTemplate, error) {
	return ask[wire.RenderedTemplate](ctx, c, post(id, "/prompt-templates/"+url.PathEscape(ident), f))
}

// Publish makes a version of a template, or moves its labels.
func (c *Client) Publish(ctx context.Context, id wire.Identity, p wire.Publish) (wire.Published, error) {
	return ask[wire.Published](ctx, c, post(id, "/rest/prompt-templates", wire.PublishBody{
		Template:       p.PublishedName,
		Version:        p.PublishedVersion,
		PublishedPlace: p.PublishedPlace,
	}))
}

// Patch makes a version of a template from an earlier one.
func (c *Client) Patch(
	ctx context.Context, id wire.Identity, ident string, p wire.TemplatePatch,
) (wire.Published, error) {
	return ask[wire.Published](ctx, c, send("PATCH", id, "/rest/prompt-templates/"+url.PathEscape(ident), p))
}

// List lists templates with their latest versions.
func (c *Client) List(
	ctx context.Context, id wire.Identity, q wire.TemplateListQuery,
) (wire.TemplateList, error) {
	q.PerPage = max(1, q.PerPage)
	return ask[wire.TemplateList](ctx, c, get(id, "/prompt-templates", q))
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
	return ask[wire.PlacedLabel](ctx, c, send("PATCH", id, path, wire.LabelMove{Version: version}))
}

// DeleteLabel deletes a label.
func (c *Client) DeleteLabel(ctx context.Context, id wire.Identity, label int64, _ string) error {
	return c.do(ctx, send("DELETE", id, "/prompt-labels/"+strconv.FormatInt(label, 10), nil))
}

// Archive archives a template.
func (c *Client) Archive(ctx context.Context, id wire.Identity, ident, _ string) error {
	return c.do(ctx, send("DELETE", id, "/rest/prompt-templates/"+url.PathEscape(ident), nil))
}

// Restore restores an archived template.
func (c *Client) Restore(ctx context.Context, id wire.Identity, ident, _ string) error {
	return c.do(ctx, post(id, "/rest/prompt-templates/"+url.PathEscape(ident)+"/restore", nil))
}
