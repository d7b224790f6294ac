package api

import (
	"strconv"

	"promptspool/api/wire"
)

// searchRequests lists records, newest first.
func (a *API) searchRequests(c *call) error {
	s, err := wire.DecodeSearch(c.object)
	if err != nil {
		return err
	}
	page, err := a.c.Querier.Search(c.life, c.id, s)
	if err != nil {
		return err
	}
	writeJSON(c.ctx, 200, page)
	return nil
}

// getRequest returns one whole record.
func (a *API) getRequest(c *call) error {
	id, err := wire.ParseID(c.ident)
	if err != nil {
		return wire.Invalid(wire.FieldError{Field: "request_id", Reason: err.Error()})
	}
	record, err := a.c.Querier.Request(c.life, c.id, id)
	if err != nil {
		return err
	}
	writeJSON(c.ctx, 200, record)
	return nil
}

// orphansPerPage is how many orphans a page has when nobody says.
const orphansPerPage = 100

// listOrphans lists requests that have not come, though events that belong to them have.
func (a *API) listOrphans(c *call) error {
	args := c.ctx.QueryArgs()
	q := wire.OrphanQuery{PerPage: orphansPerPage, Cursor: string(args.Peek("cursor"))}
	if text := string(args.Peek("per_page")); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > wire.PageItemsMax {
			return wire.Invalid(wire.FieldError{Field: "per_page", Reason: "must be an integer from 1 to " + strconv.Itoa(wire.PageItemsMax)})
		}
		q.PerPage = n
	}
	page, err := a.c.Querier.Orphans(c.life, c.id, q)
	if err != nil {
		return err
	}
	writeJSON(c.ctx, 200, page)
	return nil
}
