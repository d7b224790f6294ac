package api

import "promptspool/api/wire"

// searchRequests lists records, newest first.
func (a *API) searchRequests(c *call) error {
	return pass(c, wire.DecodeSearch, a.c.Querier.Search)
}

// getRequest returns one whole record.
func (a *API) getRequest(c *call) error {
	id, err := wire.ParseID(c.ident)
	if err != nil {
		return wire.Invalid(wire.FieldError{Field: "request_id", Reason: err.Error()})
	}
	record, err := a.c.Querier.Request(c.life, c.id, id)
	return c.answer(record, err)
}

// orphansPerPage is how many orphans a page has when nobody says.
const orphansPerPage = 100

// listOrphans lists requests that have not come, though events that belong to them have.
func (a *API) listOrphans(c *call) error {
	perPage, err := c.count("per_page", orphansPerPage, wire.PageItemsMax)
	if err != nil {
		return err
	}

	q := wire.OrphanQuery{PerPage: perPage, Cursor: string(c.ctx.QueryArgs().Peek("cursor"))}
	page, err := a.c.Querier.Orphans(c.life, c.id, q)
	return c.answer(page, err)
}
