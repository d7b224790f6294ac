package api

import (
	"strconv"

	"promptspool/api/wire"
)

// templateLabels lists the labels of a template.
func (a *API) templateLabels(c *call) error {
	labels, err := a.c.Templates.Labels(c.context, c.id, c.ident)
	return c.answer(labels, err)
}

// createLabel points a label to a version. A label that exists moves.
func (a *API) createLabel(c *call) error {
	w, err := wire.DecodeLabel(c.object)
	if err != nil {
		return err
	}
	label, err := a.c.Templates.CreateLabel(c.context, c.id, c.ident, w, "")
	return c.answer(label, err)
}

// moveLabel points a label to another version.
func (a *API) moveLabel(c *call) error {
	id, err := c.labelID()
	if err != nil {
		return err
	}
	version, err := wire.DecodeLabelMove(c.object)
	if err != nil {
		return err
	}
	label, err := a.c.Templates.MoveLabel(c.context, c.id, id, version, "")
	return c.answer(label, err)
}

// deleteLabel answers 204 without a body, as its clients expect.
func (a *API) deleteLabel(c *call) error {
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

// labelID returns the label's id in the call's path.
func (c *call) labelID() (int64, error) {
	id, err := strconv.ParseInt(c.ident, 10, 64)
	if err != nil || id < 1 {
		return 0, wire.Errorf(wire.CodeNotFound,
			"There is no label %.100q. Use an id from GET /prompt-templates/{name}/labels.", c.ident)
	}

	return id, nil
}
