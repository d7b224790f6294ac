package api

import (
	"encoding/json"
	"strconv"
	"time"

	"promptspool/api/edge"
	"promptspool/api/wire"
)

// fetchTemplate returns a template's version with its text and, for a provider, the arguments of
// the model call.
func (a *API) fetchTemplate(c *exchange, f wire.TemplateFetch) error {
	return a.answerTemplate(c, c.ident, f)
}

// getTemplate is the older spelling, which selects the version by the query.
func (a *API) getTemplate(c *exchange, q wire.NamedQuery) error {
	return a.answerTemplate(c, q.Name, wire.TemplateFetch{Selector: q.Selector})
}

func (a *API) answerTemplate(c *exchange, name string, f wire.TemplateFetch) error {
	t, err := a.c.Templates.Fetch(c.context, c.id, name, f)
	if err != nil {
		return err
	}
	c.warn(&t)
	c.setCacheHeaders(t.Cache, t.Age)
	writeTemplate(c.ctx, &t)

	return nil
}

// setCacheHeaders tells the caller whether a sidecar answers from its cache, and how old the
// answer is. result is "" where there is no cache.
func (c *exchange) setCacheHeaders(result string, age time.Duration) {
	if result == "" {
		return
	}

	c.ctx.Response.Header.Set("X-Cache", result)
	c.ctx.Response.Header.Set("Age", strconv.Itoa(int(age.Seconds())))
}

// rawTemplate returns a version with its snippets in their places or, with
// resolve_snippets=false, as it was published. A sidecar's cache reads templates this way. With
// include_llm_kwargs=true it includes the arguments of the model call, without variables.
func (a *API) rawTemplate(c *exchange, q wire.RawQuery) error {
	read := a.c.Templates.Raw
	if !q.Resolve {
		read = a.c.Templates.Source
	}
	t, err := read(c.context, c.id, c.ident, q.Selector)
	if err == nil && q.Kwargs {
		t.LLMKwargs, err = a.llmKwargs(c, t.Version)
	}

	return answer(c, t, err)
}

// llmKwargs returns the arguments of the model call for a version of the request's template. The
// version is the resolved one, because a label may have moved since.
func (a *API) llmKwargs(c *exchange, version int) (json.RawMessage, error) {
	f := wire.TemplateFetch{Selector: wire.Selector{Version: version}}
	rendered, err := a.c.Templates.Fetch(c.context, c.id, c.ident, f)
	if rendered.LLMKwargs == nil {
		return json.RawMessage("null"), err
	}

	return rendered.LLMKwargs, err
}

// publishTemplate publishes a version.
func (a *API) publishTemplate(c *exchange) error { return a.publish(c, wire.DecodePublish, 201) }

// publishTemplateOld is the older spelling. Its clients accept exactly 200 as success.
func (a *API) publishTemplateOld(c *exchange) error { return a.publish(c, wire.DecodeOldPublish, 200) }

func (a *API) publish(c *exchange, decode func(wire.Object) (wire.Publish, error), status int) error {
	p, err := decode(c.object)
	if err != nil {
		return err
	}
	t, err := a.c.Templates.Publish(c.context, c.id, p)
	return c.answerPublished(status, t, err)
}

// patchTemplate publishes the next version, which differs from a base in some members.
func (a *API) patchTemplate(c *exchange, p wire.TemplatePatch) error {
	t, err := a.c.Templates.Patch(c.context, c.id, c.ident, p)
	return c.answerPublished(201, t, err)
}

func (c *exchange) answerPublished(status int, t wire.Published, err error) error {
	if err != nil {
		return err
	}
	// Passed on from a server that does not report any.
	if t.Warnings == nil {
		t.Warnings = []wire.Finding{}
	}
	c.warn(&t)
	edge.WriteJSON(c.ctx, status, t)

	return nil
}

// archiveTemplate hides a template until it is published or restored.
func (a *API) archiveTemplate(c *exchange) error {
	err := a.c.Templates.Archive(c.context, c.id, c.ident, "")
	return answer(c, wire.Done{
		Success: true,
		Message: "The template is archived. Publishing or restoring it brings it back.",
	}, err)
}

// restoreTemplate makes an archived template visible again.
func (a *API) restoreTemplate(c *exchange) error {
	err := a.c.Templates.Restore(c.context, c.id, c.ident, "")
	return answer(c, wire.Done{Success: true, Message: "The template is restored."}, err)
}

// listTemplates lists templates, one page at a time.
func (a *API) listTemplates(c *exchange, q wire.TemplateListQuery) error {
	list, err := a.c.Templates.List(c.context, c.id, q)
	if err != nil {
		return err
	}
	c.setCacheHeaders(list.Cache, list.Age)

	return answer(c, list, nil)
}

// templateLabels lists the labels of a template.
func (a *API) templateLabels(c *exchange) error {
	labels, err := a.c.Templates.Labels(c.context, c.id, c.ident)
	return answer(c, labels, err)
}

// createLabel points a label to a version. A label that exists moves.
func (a *API) createLabel(c *exchange, w wire.LabelWrite) error {
	label, err := a.c.Templates.CreateLabel(c.context, c.id, c.ident, w, "")
	return answer(c, label, err)
}

// moveLabel points a label to another version.
func (a *API) moveLabel(c *exchange, w wire.LabelMove) error {
	id, err := c.labelID()
	if err != nil {
		return err
	}
	label, err := a.c.Templates.MoveLabel(c.context, c.id, id, w.Version, "")
	return answer(c, label, err)
}

// deleteLabel answers 204 without a body, as its clients expect.
func (a *API) deleteLabel(c *exchange) error {
	id, err := c.labelID()
	if err != nil {
		return err
	}
	if err := a.c.Templates.DeleteLabel(c.context, c.id, id, ""); err != nil {
		return err
	}
	c.ctx.SetStatusCode(204)

	return nil
}

// labelID returns the label's id in the request's path.
func (c *exchange) labelID() (int64, error) {
	id, err := strconv.ParseInt(c.ident, 10, 64)
	if err != nil || id < 1 {
		return 0, wire.Errorf(wire.CodeNotFound,
			"There is no label %.100q. Use an id from GET /prompt-templates/{name}/labels.", c.ident)
	}

	return id, nil
}
