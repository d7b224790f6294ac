package api

import (
	"encoding/json"
	"strconv"

	"promptspool/api/wire"
)

// suggestValues completes what somebody types into a filter.
func (a *API) suggestValues(c *call) error {
	args := c.ctx.QueryArgs()
	q := wire.SuggestQuery{Field: string(args.Peek("field")), Prefix: string(args.Peek("prefix")), Key: string(args.Peek("metadata_key"))}
	var err error
	if q.Limit, err = c.count("limit", 0, wire.PageItemsMax); err != nil {
		return err
	}
	if q.Field == "" {
		return wire.Invalid(wire.FieldError{Field: "field", Reason: "is missing from the query"})
	}
	if raw := args.Peek("filter_group"); len(raw) > 0 {
		if _, err = wire.ParseObject(raw); err == nil {
			err = json.Unmarshal(raw, &q.FilterGroup)
		}
		if err != nil || q.FilterGroup == nil {
			return wire.Invalid(wire.FieldError{Field: "filter_group", Reason: "must be a filter group as a search takes it, as JSON"})
		}
	}
	// The peer's number of a template narrows prompt only.
	if id := string(args.Peek("prompt_id")); id != "" && q.Field == "prompt" {
		if _, err := strconv.ParseUint(id, 10, 63); err != nil {
			return wire.Invalid(wire.FieldError{Field: "prompt_id", Reason: "must be an integer of at least 1"})
		}
		q.TemplateID = id
	}
	values, err := a.c.Analyst.Suggest(c.life, c.id, q)
	return c.answer(values, err)
}

// analyzeRequests sums up what a search with the same filter would find.
func (a *API) analyzeRequests(c *call) error {
	return pass(c, wire.DecodeStatistics, a.c.Analyst.Analyze)
}

// templateStatistics sums it up by template version.
func (a *API) templateStatistics(c *call) error {
	return pass(c, wire.DecodeStatistics, a.c.Analyst.TemplateStatistics)
}

// deleteRequest deletes one record for good.
func (a *API) deleteRequest(c *call) error {
	id, err := wire.ParseID(c.ident)
	if err != nil {
		return wire.Invalid(wire.FieldError{Field: "request_id", Reason: err.Error()})
	}
	return a.erase(c, wire.Deletion{RequestID: id})
}

// deleteRequests deletes all records with a metadata value.
func (a *API) deleteRequests(c *call) error {
	args := c.ctx.QueryArgs()
	d, err := wire.DecodeDeletion(string(args.Peek("metadata_key")), string(args.Peek("metadata_value")), string(args.Peek("before")))
	if err != nil {
		return err
	}
	return a.erase(c, d)
}

func (a *API) erase(c *call, d wire.Deletion) error {
	deleted, err := a.c.Keeper.Delete(c.life, c.id, d)
	return c.answer(deleted, err)
}

// repriceRequests prices stored requests anew, a part at a call.
func (a *API) repriceRequests(c *call) error {
	cursor := ""
	if raw, ok := c.object.Get("cursor"); ok && json.Unmarshal(raw, &cursor) != nil {
		return wire.Invalid(wire.FieldError{Field: "cursor", Reason: "must be a string"})
	}
	told, err := a.c.Keeper.Reprice(c.life, c.id, cursor)
	return c.answer(told, err)
}

// scanRequests looks for secrets in what is stored, a part at a call, and masks them if asked to.
func (a *API) scanRequests(c *call) error {
	var q wire.ScanQuery
	if raw, ok := c.object.Get("cursor"); ok && json.Unmarshal(raw, &q.Cursor) != nil {
		return wire.Invalid(wire.FieldError{Field: "cursor", Reason: "must be a string"})
	}
	if raw, ok := c.object.Get("mask"); ok && json.Unmarshal(raw, &q.Mask) != nil {
		return wire.Invalid(wire.FieldError{Field: "mask", Reason: "must be true or false"})
	}

	scanned, err := a.c.Keeper.Scan(c.life, c.id, q)
	return c.answer(scanned, err)
}
