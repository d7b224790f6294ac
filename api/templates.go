package api

import (
	"encoding/json"
	"strconv"
	"time"

	"promptspool/api/edge"
	"promptspool/api/wire"
)

// fetchTemplate returns a template's version with its text and, for a provider, the arguments of the model call.
func (a *API) fetchTemplate(c *call) error {
	f, err := wire.DecodeFetch(c.object)
	if err != nil {
		return err
	}

	f.Room = templatePool.Get().(*[]byte)
	defer keepBytes(f.Room)

	return a.fetch(c, c.ident, f)
}

// getTemplate is the older spelling, with the same choice as a query.
func (a *API) getTemplate(c *call) error {
	name := string(c.ctx.QueryArgs().Peek("prompt_name"))
	if name == "" {
		return wire.Invalid(wire.FieldError{Field: "prompt_name", Reason: "is missing from the query"})
	}
	s, err := c.selector()
	if err != nil {
		return err
	}
	return a.fetch(c, name, wire.TemplateFetch{Selector: s})
}

func (a *API) fetch(c *call, name string, f wire.TemplateFetch) error {
	t, err := a.c.Templates.Fetch(c.life, c.id, name, f)
	if err != nil {
		return err
	}
	c.cached(t.Cache, t.Age)
	writeTemplate(c.ctx, &t)
	return nil
}

// cached tells how a sidecar came by its answer, and how old that is. "" is nothing to tell.
func (c *call) cached(how string, age time.Duration) {
	if how == "" {
		return
	}

	var text, seconds [20]byte
	c.ctx.Response.Header.SetCanonical(cacheHeader, append(text[:0], how...))
	c.ctx.Response.Header.SetCanonical(ageHeader, strconv.AppendInt(seconds[:0], int64(age.Seconds()), 10))
}

// rawTemplate returns a version with its snippets in their places, or, with resolve_snippets=false, as it was published; a
// sidecar's cache reads by it. With include_llm_kwargs=true come the arguments of the model call, without variables.
func (a *API) rawTemplate(c *call) error {
	s, err := c.selector()
	if err != nil {
		return err
	}
	resolve, err := c.flag("resolve_snippets", true)
	if err != nil {
		return err
	}
	kwargs, err := c.flag("include_llm_kwargs", false)
	if err != nil {
		return err
	}
	read := a.c.Templates.Raw
	if !resolve {
		read = a.c.Templates.Source
	}
	t, err := read(c.life, c.id, c.ident, s)
	if err == nil && kwargs {
		var rendered wire.RenderedTemplate
		rendered, err = a.c.Templates.Fetch(c.life, c.id, c.ident, wire.TemplateFetch{Selector: wire.Selector{Version: t.Version}})
		if t.LLMKwargs = rendered.LLMKwargs; t.LLMKwargs == nil {
			t.LLMKwargs = json.RawMessage("null")
		}
	}
	return c.answer(t, err)
}

func (a *API) publishTemplate(c *call) error {
	p, err := wire.DecodePublish(c.object)
	if err != nil {
		return err
	}
	t, err := a.c.Templates.Publish(c.life, c.id, p)
	return writePublished(c, 201, t, err)
}

// publishTemplateOld is the older spelling; its clients take exactly 200 for success.
func (a *API) publishTemplateOld(c *call) error {
	p, err := wire.DecodeOldPublish(c.object)
	if err != nil {
		return err
	}
	t, err := a.c.Templates.Publish(c.life, c.id, p)
	return writePublished(c, 200, t, err)
}

func (a *API) patchTemplate(c *call) error {
	p, err := wire.DecodePatch(c.object)
	if err != nil {
		return err
	}
	t, err := a.c.Templates.Patch(c.life, c.id, c.ident, p)
	return writePublished(c, 201, t, err)
}

func writePublished(c *call, status int, t wire.Published, err error) error {
	if err != nil {
		return err
	}
	if t.Warnings == nil { // passed on from a server that does not report any
		t.Warnings = []wire.Finding{}
	}

	edge.WriteJSON(c.ctx, status, t)
	return nil
}

// doneAnswer answers what was done and has nothing to show.
type doneAnswer struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
}

func (a *API) archiveTemplate(c *call) error {
	done := doneAnswer{true, "The template is archived. Publishing or restoring it brings it back."}
	return c.answer(done, a.c.Templates.Archive(c.life, c.id, c.ident))
}

func (a *API) restoreTemplate(c *call) error {
	done := doneAnswer{true, "The template is in use."}
	return c.answer(done, a.c.Templates.Restore(c.life, c.id, c.ident))
}

func (a *API) listTemplates(c *call) error {
	q, err := c.listQuery()
	if err != nil {
		return err
	}
	list, err := a.c.Templates.List(c.life, c.id, q)
	if err != nil {
		return err
	}
	c.cached(list.Cache, list.Age)
	return c.answer(list, nil)
}
