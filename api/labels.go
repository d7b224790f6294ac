package api

import (
	"strconv"

	"promptspool/api/wire"
)

func (a *API) templateLabels(c *call) error {
	l, err := a.c.Templates.Labels(c.life, c.id, c.ident)
	return c.answer(l, err)
}

// createLabel points a label to a version; one that is there moves.
func (a *API) createLabel(c *call) error {
	w, err := wire.DecodeLabel(c.object)
	if err != nil {
		return err
	}
	l, err := a.c.Templates.CreateLabel(c.life, c.id, c.ident, w, "")
	return c.answer(l, err)
}

func (a *API) moveLabel(c *call) error {
	id, err := c.labelID()
	if err != nil {
		return err
	}
	version, err := wire.DecodeLabelMove(c.object)
	if err != nil {
		return err
	}
	l, err := a.c.Templates.MoveLabel(c.life, c.id, id, version, "")
	return c.answer(l, err)
}

// deleteLabel answers 204 without a body, as its clients expect.
func (a *API) deleteLabel(c *call) error {
	id, err := c.labelID()
	if err != nil {
		return err
	}
	if err := a.c.Templates.DeleteLabel(c.life, c.id, id, ""); err != nil {
		return err
	}
	c.ctx.SetStatusCode(204)
	return nil
}

func (c *call) labelID() (int64, error) {
	id, err := strconv.ParseInt(c.ident, 10, 64)
	if err != nil || id < 1 {
		return 0, wire.Errorf(wire.CodeNotFound, "There is no label %.100q. Labels are named by the ids that GET /prompt-templates/{name}/labels tells.", c.ident)
	}
	return id, nil
}
