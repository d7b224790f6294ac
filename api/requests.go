package api

import (
	"encoding/json"
	"path"
	"strconv"

	"promptspool/api/filterline"
	"promptspool/api/tracetree"
	"promptspool/api/wire"
)

// searchRequests lists records, newest first.
func (a *API) searchRequests(c *exchange) error {
	return answerFrom(c, a.decodeSearch, a.recorded.Search)
}

// getRequest returns one whole record.
func (a *API) getRequest(c *exchange) error {
	id, err := c.recordID()
	if err != nil {
		return err
	}
	record, err := a.recorded.Request(c.context, c.id, id)
	return c.answer(record, err)
}

// recordID returns the request id in the request's path.
func (c *exchange) recordID() (string, error) {
	id, err := wire.ParseID(c.ident)
	if err != nil {
		return "", wire.Invalid(wire.FieldError{Field: "request_id", Reason: err.Error()})
	}
	return id, nil
}

// orphansPerPage is the size of a page of orphans whose caller names none.
const orphansPerPage = 100

// listOrphans lists requests that have not arrived although scores, metadata or links of theirs
// have.
func (a *API) listOrphans(c *exchange) error {
	perPage, err := c.intArg("per_page", orphansPerPage, wire.PageItemsMax)
	if err != nil {
		return err
	}

	q := wire.OrphanQuery{PerPage: perPage, Cursor: string(c.ctx.QueryArgs().Peek("cursor"))}
	page, err := a.recorded.Orphans(c.context, c.id, q)
	return c.answer(page, err)
}

// analyzeRequests aggregates what a search with the same filter would find.
func (a *API) analyzeRequests(c *exchange) error {
	return answerFrom(c, func(object wire.Object) (wire.StatisticsQuery, error) {
		q, err := a.decodeParts(object)
		return q.StatisticsQuery, err
	}, a.recorded.Analyze)
}

// statistics aggregates it by template version or another value, or compares two versions.
func (a *API) statistics(c *exchange) error {
	return answerFrom(c, a.decodeParts, a.recorded.Statistics)
}

// suggestValues completes what a person types into a filter.
func (a *API) suggestValues(c *exchange) error {
	args := c.ctx.QueryArgs()
	q := wire.SuggestQuery{
		Field:  string(args.Peek("field")),
		Prefix: string(args.Peek("prefix")),
		Key:    string(args.Peek("metadata_key")),
	}

	var err error
	if q.Limit, err = c.intArg("limit", 0, wire.PageItemsMax); err != nil {
		return err
	}
	if q.Field == "" {
		return wire.Invalid(wire.FieldError{Field: "field", Reason: "is missing from the query"})
	}
	if q.FilterGroup, err = c.filterArg(); err != nil {
		return err
	}
	selected, err := a.readLine(wire.FilterLine{Line: string(args.Peek("filter")), Zone: string(args.Peek("tz"))})
	if err != nil {
		return err
	}
	q.FilterGroup = filterline.Both(selected, q.FilterGroup)

	// With any other field the number is ignored: in the peer's schema it is the number
	// of a template, and narrows the field prompt only.
	if id := string(args.Peek("prompt_id")); id != "" && q.Field == "prompt" {
		if _, err := strconv.ParseUint(id, 10, 63); err != nil {
			return wire.Invalid(wire.FieldError{Field: "prompt_id", Reason: "must be an integer of at least 1"})
		}
		q.TemplateID = id
	}
	values, err := a.recorded.Suggest(c.context, c.id, q)
	return c.answer(values, err)
}

// filterArg reads a filter group from the query; nil if it is absent.
func (c *exchange) filterArg() (*wire.Filter, error) {
	text := c.ctx.QueryArgs().Peek("filter_group")
	if len(text) == 0 {
		return nil, nil
	}

	// encoding/json alone accepts what a body is rejected for, such as repeated members.
	reason := "must be a filter group in JSON, like that of a search"
	if _, err := wire.ParseObject(text); err == nil {
		group, err := wire.ParseFilter(text)
		if err == nil {
			return group, nil
		}
		reason = err.Error()
	}

	return nil, wire.Invalid(wire.FieldError{Field: "filter_group", Reason: reason})
}

// deleteRequest deletes one record for good.
func (a *API) deleteRequest(c *exchange) error {
	id, err := c.recordID()
	if err != nil {
		return err
	}
	return a.deleteMatching(c, wire.Deletion{RequestID: id})
}

// deleteRequests deletes all records with a metadata value.
func (a *API) deleteRequests(c *exchange) error {
	args := c.ctx.QueryArgs()
	d, err := wire.DecodeDeletion(
		string(args.Peek("metadata_key")), string(args.Peek("metadata_value")), string(args.Peek("before")))
	if err != nil {
		return err
	}

	return a.deleteMatching(c, d)
}

func (a *API) deleteMatching(c *exchange, d wire.Deletion) error {
	deleted, err := a.recorded.Delete(c.context, c.id, d)
	// One that broke off has deleted some for good.
	if err == nil || deleted.Records > 0 {
		a.noteDeleted(c, d, deleted)
	}

	return c.answer(deleted, err)
}

// repriceRequests prices records again, a part with each request.
func (a *API) repriceRequests(c *exchange) error {
	cursor := ""
	if err := c.member("cursor", &cursor, "must be a string"); err != nil {
		return err
	}
	repriced, err := a.recorded.Reprice(c.context, c.id, cursor)
	a.noteChanged(c, "reprice requests", repriced.Changed)

	return c.answer(repriced, err)
}

// scanRequests searches records for secrets, a part with each request, and masks them if
// the caller wants that.
func (a *API) scanRequests(c *exchange) error {
	var q wire.ScanQuery
	if err := c.member("cursor", &q.Cursor, "must be a string"); err != nil {
		return err
	}
	if err := c.member("mask", &q.Mask, "must be true or false"); err != nil {
		return err
	}
	const reason = "must be an integer of at least 1"
	if err := c.member("limit", &q.Limit, reason); err != nil {
		return err
	}
	if _, ok := c.object.Get("limit"); ok && q.Limit < 1 {
		return wire.Invalid(wire.FieldError{Field: "limit", Reason: reason})
	}

	release, err := begin(a.scans, c.id.KeyID, "scan")
	if err != nil {
		return err
	}
	defer release()

	scanned, err := a.recorded.Scan(c.context, c.id, q)
	return c.answer(scanned, err)
}

// member decodes a member of the request's body into v, if it is there; reason is the error of a
// value that does not fit.
func (c *exchange) member(name string, v any, reason string) error {
	raw, ok := c.object.Get(name)
	if ok && json.Unmarshal(raw, v) != nil {
		return wire.Invalid(wire.FieldError{Field: name, Reason: reason})
	}
	return nil
}

// searchRollups lists sessions, traces or users.
func (a *API) searchRollups(c *exchange) error {
	s, err := a.decodeRollupSearch(c.object)
	if err != nil {
		return err
	}
	s.Of = path.Base(path.Dir(c.route.path))
	page, err := a.recorded.Rollups(c.context, c.id, s)

	return c.answer(page, err)
}

// searchSpans lists spans.
func (a *API) searchSpans(c *exchange) error {
	s, err := wire.DecodeSpanSearch(c.object)
	if err == nil {
		err = a.carryOutRollup(&s.FilterLine, &s.FilterGroup, &s.Having)
	}
	if err != nil {
		return err
	}
	page, err := a.recorded.Spans(c.context, c.id, s)

	return c.answer(page, err)
}

// session returns what the records of a session add up to.
func (a *API) session(c *exchange) error {
	session, err := a.recorded.Session(c.context, c.id, c.ident)
	return c.answer(session, err)
}

// deleteSession deletes the records of a session for good.
func (a *API) deleteSession(c *exchange) error {
	return a.deleteMatching(c, wire.Deletion{SessionID: c.ident})
}

// deleteTrace deletes the records of a trace for good.
func (a *API) deleteTrace(c *exchange) error {
	return a.deleteMatching(c, wire.Deletion{TraceID: c.ident})
}

// longTrace is how many spans of a trace take little memory.
const longTrace = 5000

// trace returns the spans of a trace: by their start or, if the caller wants that, as a tree.
func (a *API) trace(c *exchange) error {
	form, err := c.wordArg("form", []string{"flat", "tree"})
	if err != nil {
		return err
	}
	trace, err := a.recorded.Trace(c.context, c.id, c.ident)
	// One at a time: as JSON, a long trace takes many times its memory.
	if len(trace.Spans) > longTrace {
		a.longTraces.Lock()
		defer a.longTraces.Unlock()
	}
	if err == nil && form == "tree" {
		return c.answer(tracetree.Of(trace), nil)
	}

	return c.answer(trace, err)
}
