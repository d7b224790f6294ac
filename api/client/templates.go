package client

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"promptspool/api/wire"
)

// Raw reads a template's version, with its snippets in their places. Ident is a name, which may hold anything, or an id.
func (c *Client) Raw(ctx context.Context, id wire.Identity, ident string, s wire.Selector) (wire.RawTemplate, error) {
	return c.raw(ctx, id, ident, s, url.Values{})
}

// Source reads a template's version as it was published: references to snippets stay.
func (c *Client) Source(ctx context.Context, id wire.Identity, ident string, s wire.Selector) (wire.RawTemplate, error) {
	return c.raw(ctx, id, ident, s, url.Values{"resolve_snippets": {"false"}})
}

func (c *Client) raw(ctx context.Context, id wire.Identity, ident string, s wire.Selector, q url.Values) (wire.RawTemplate, error) {
	if s.Version > 0 {
		q.Set("version", strconv.Itoa(s.Version))
	}
	if s.Label != "" {
		q.Set("label", s.Label)
	}
	var t wire.RawTemplate
	err := c.do(ctx, request{method: "GET", path: "/prompt-templates/" + url.PathEscape(ident), query: q, key: id.Key, answer: &t})
	return t, err
}

// Fetch reads a template's version filled in, as an app would.
func (c *Client) Fetch(ctx context.Context, id wire.Identity, ident string, f wire.TemplateFetch) (wire.RenderedTemplate, error) {
	var t wire.RenderedTemplate
	body := map[string]any{}
	set(body, "version", f.Version, f.Version > 0)
	set(body, "label", f.Label, f.Label != "")
	set(body, "provider", f.Provider, f.Provider != "")
	set(body, "model", f.Model, f.Model != "")
	set(body, "input_variables", f.Variables, f.Variables != nil)
	set(body, "model_parameter_overrides", f.Overrides, f.Overrides != nil)
	err := c.send(ctx, id, "POST", "/prompt-templates/"+url.PathEscape(ident), body, &t)
	return t, err
}

func set(body map[string]any, name string, value any, there bool) {
	if there {
		body[name] = value
	}
}

// Publish makes a version of a template, or moves its labels.
func (c *Client) Publish(ctx context.Context, id wire.Identity, p wire.Publish) (wire.Published, error) {
	var t wire.Published
	body, err := encode(publishBody(p))
	if err != nil {
		return t, wire.Invalid(wire.FieldError{Field: "prompt_version", Reason: "is not JSON: " + err.Error()})
	}
	err = c.do(ctx, request{method: "POST", path: "/rest/prompt-templates", key: id.Key, body: body, answer: &t})
	return t, err
}

// Patch makes a version of a template from another one of it.
func (c *Client) Patch(ctx context.Context, id wire.Identity, ident string, p wire.TemplatePatch) (wire.Published, error) {
	var t wire.Published
	body := map[string]any{}
	set(body, "version", p.Version, p.Version > 0)
	set(body, "label", p.Label, p.Label != "")
	for name, raw := range map[string]json.RawMessage{"messages": p.Messages, "tools": p.Tools, "functions": p.Functions, "content": p.Content,
		"function_call": p.FunctionCall, "tool_choice": p.ToolChoice, "model_parameters": p.ModelParameters, "response_format": p.ResponseFormat} {
		set(body, name, raw, raw != nil)
	}
	set(body, "commit_message", p.CommitMessage, p.CommitMessage != "")
	set(body, "release_labels", p.Labels, p.Labels != nil)
	err := c.send(ctx, id, "PATCH", "/rest/prompt-templates/"+url.PathEscape(ident), body, &t)
	return t, err
}

// send is do with a body that is encoded here.
func (c *Client) send(ctx context.Context, id wire.Identity, method, path string, body, answer any) error {
	text, err := encode(body)
	if err != nil {
		return wire.Errorf(wire.CodeBadJSON, "The body is not JSON: %w.", err)
	}
	return c.do(ctx, request{method: method, path: path, key: id.Key, body: text, answer: answer})
}

// publishBody is the shape of POST /rest/prompt-templates.
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
		Template base     `json:"prompt_template"`
		Version  version  `json:"prompt_version"`
		Labels   []string `json:"release_labels,omitempty"`
	}{base{p.Name, p.Tags}, version{p.Blueprint, p.CommitMessage, p.Metadata}, p.Labels}
}

// List lists templates with their latest versions.
func (c *Client) List(ctx context.Context, id wire.Identity, q wire.TemplateListQuery) (wire.TemplateList, error) {
	query := url.Values{"page": {strconv.Itoa(max(1, q.Page))}, "per_page": {strconv.Itoa(max(1, q.PerPage))}, "tags": q.Tags}
	for name, value := range map[string]string{"name": q.Name, "label": q.Label, "status": q.Status, "created_by_email": q.Author, "sort_by": q.SortBy, "sort_order": q.SortOrder} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for name, at := range map[string]time.Time{"created_after": q.CreatedAfter, "created_before": q.CreatedBefore, "updated_after": q.UpdatedAfter, "updated_before": q.UpdatedBefore} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	var l wire.TemplateList
	err := c.do(ctx, request{method: "GET", path: "/prompt-templates", query: query, key: id.Key, answer: &l})
	return l, err
}

// Labels lists a template's labels, and their history.
func (c *Client) Labels(ctx context.Context, id wire.Identity, ident string) (wire.Labels, error) {
	var l wire.Labels
	err := c.do(ctx, request{method: "GET", path: "/prompt-templates/" + url.PathEscape(ident) + "/labels", key: id.Key, answer: &l})
	return l, err
}

// labelBody is what creates or moves a label.
type labelBody struct {
	Name    string `json:"name,omitempty"`
	Version int    `json:"prompt_version_number"`
}

// CreateLabel points a label to a version. Who does it is the key.
func (c *Client) CreateLabel(ctx context.Context, id wire.Identity, ident string, w wire.LabelWrite, _ string) (wire.PlacedLabel, error) {
	var p wire.PlacedLabel
	err := c.send(ctx, id, "POST", "/prompts/"+url.PathEscape(ident)+"/label", labelBody(w), &p)
	return p, err
}

// MoveLabel points a label to another version. Who does it is the key.
func (c *Client) MoveLabel(ctx context.Context, id wire.Identity, label int64, version int, _ string) (wire.PlacedLabel, error) {
	var p wire.PlacedLabel
	err := c.send(ctx, id, "PATCH", "/prompt-labels/"+strconv.FormatInt(label, 10), labelBody{Version: version}, &p)
	return p, err
}

// DeleteLabel takes a label away.
func (c *Client) DeleteLabel(ctx context.Context, id wire.Identity, label int64, _ string) error {
	return c.do(ctx, request{method: "DELETE", path: "/prompt-labels/" + strconv.FormatInt(label, 10), key: id.Key})
}

// Archive takes a template out of use.
func (c *Client) Archive(ctx context.Context, id wire.Identity, ident string) error {
	return c.do(ctx, request{method: "DELETE", path: "/rest/prompt-templates/" + url.PathEscape(ident), key: id.Key})
}

// Restore brings an archived template back.
func (c *Client) Restore(ctx context.Context, id wire.Identity, ident string) error {
	return c.do(ctx, request{method: "POST", path: "/rest/prompt-templates/" + url.PathEscape(ident) + "/restore", key: id.Key})
}
