package api

import (
	"path"

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

// listOrphans lists requests that have not arrived although scores, metadata or links of theirs
// have.
func (a *API) listOrphans(c *exchange) error {
	q, err := queryArgs[wire.OrphanQuery](c)
	if err != nil {
		return err
	}

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
	q, err := queryArgs[wire.SuggestQuery](c)
	if err != nil {
		return err
	}
	selected, err := a.readLine(q.FilterLine)
	if err != nil {
		return err
	}
	q.FilterLine, q.FilterGroup = wire.FilterLine{}, filterline.Both(selected, q.FilterGroup)

	values, err := a.recorded.Suggest(c.context, c.id, q)
	return c.answer(values, err)
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
	q, err := queryArgs[wire.DeletionQuery](c)
	if err != nil {
		return err
	}

	return a.deleteMatching(c, wire.Deletion{Key: q.Key, Value: q.Value, Before: q.Before})
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
	q, err := wire.Decode[wire.Continue](c.object)
	if err != nil {
		return err
	}
	repriced, err := a.recorded.Reprice(c.context, c.id, q.Cursor)
	a.noteChanged(c, "reprice requests", repriced.Changed)

	return c.answer(repriced, err)
}

// scanRequests searches records for secrets, a part with each request, and masks them if
// the caller wants that.
func (a *API) scanRequests(c *exchange) error {
	q, err := wire.Decode[wire.ScanQuery](c.object)
	if err != nil {
		return err
	}

	release, err := begin(a.scans, c.id.KeyID, "scan")
	if err != nil {
		return err
	}
	defer release()

	scanned, err := a.recorded.Scan(c.context, c.id, q)
	return c.answer(scanned, err)
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
	s, err := wire.Decode[wire.SpanSearch](c.object)
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
	q, err := queryArgs[wire.TraceQuery](c)
	if err != nil {
		return err
	}
	trace, err := a.recorded.Trace(c.context, c.id, c.ident)
	// One at a time: as JSON, a long trace takes many times its memory.
	if len(trace.Spans) > longTrace {
		a.longTraces.Lock()
		defer a.longTraces.Unlock()
	}
	if err == nil && q.Form == "tree" {
		return c.answer(tracetree.Of(trace), nil)
	}

	return c.answer(trace, err)
}
