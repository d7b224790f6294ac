package api

import "promptspool/api/wire"

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
