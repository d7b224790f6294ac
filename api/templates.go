package api

import (
	"strconv"

	"promptspool/api/wire"
)

// fetchTemplate returns a template's version with its text and, for a provider, the arguments of the model call.
func (a *API) fetchTemplate(c *call) error {
	f, err := wire.DecodeFetch(c.object)
	if err != nil {
		return err
	}
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
	if t.Cache != "" {
		c.ctx.Response.Header.Set("X-Cache", t.Cache)
		c.ctx.Response.Header.Set("Age", strconv.Itoa(int(t.Age.Seconds())))
	}
	writeJSON(c.ctx, 200, t)
	return nil
}

// rawTemplate returns a version as it was published; a sidecar's cache reads by it.
func (a *API) rawTemplate(c *call) error {
	s, err := c.selector()
	if err != nil {
		return err
	}
	t, err := a.c.Templates.Raw(c.life, c.id, c.ident, s)
	if err != nil {
		return err
	}
	writeJSON(c.ctx, 200, t)
	return nil
}

func (a *API) publishTemplate(c *call) error {
	p, err := wire.DecodePublish(c.object)
	if err != nil {
		return err
	}
	t, err := a.c.Templates.Publish(c.life, c.id, p)
	if err != nil {
		return err
	}
	writeJSON(c.ctx, 201, t)
	return nil
}

func (a *API) listTemplates(c *call) error {
	args := c.ctx.QueryArgs()
	q := wire.TemplateListQuery{Name: string(args.Peek("name")), Label: string(args.Peek("label"))}
	var err error
	if q.Page, err = c.count("page", 1, wire.PageOffsetMax); err != nil {
		return err
	}
	if q.PerPage, err = c.count("per_page", 30, wire.PageItemsMax); err != nil {
		return err
	}
	list, err := a.c.Templates.List(c.life, c.id, q)
	if err != nil {
		return err
	}
	writeJSON(c.ctx, 200, list)
	return nil
}

// selector reads version and label from the query; empty means absent.
func (c *call) selector() (wire.Selector, error) {
	version, err := c.count("version", 0, 1<<31-1)
	return wire.Selector{Version: version, Label: string(c.ctx.QueryArgs().Peek("label"))}, err
}

// count reads an integer of at least 1 from the query.
func (c *call) count(name string, absent, most int) (int, error) {
	text := string(c.ctx.QueryArgs().Peek(name))
	if text == "" {
		return absent, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, wire.Invalid(wire.FieldError{Field: name, Reason: "must be an integer from 1 to " + strconv.Itoa(most)})
	}
	return n, nil
}
