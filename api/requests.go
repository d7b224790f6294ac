package api

import (
	"path"

	"github.com/dustin/go-humanize/english"

	"promptspool/api/tracetree"
	"promptspool/api/wire"
)

// getRequest returns one whole record.
func (a *API) getRequest(c *exchange) error {
	id, err := c.recordID()
	if err != nil {
		return err
	}
	record, err := a.recorded.Request(c.context, c.id, id)
	return answer(c, record, err)
}

// recordID returns the request id in the request's path.
func (c *exchange) recordID() (string, error) {
	id, err := wire.ParseID(c.ident)
	if err != nil {
		return "", wire.Invalid(wire.FieldError{Field: "request_id", Reason: err.Error()})
	}
	return id, nil
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
func (a *API) deleteRequests(c *exchange, q wire.DeletionQuery) error {
	return a.deleteMatching(c, wire.Deletion{Key: q.Key, Value: q.Value, Before: q.Before})
}

func (a *API) deleteMatching(c *exchange, d wire.Deletion) error {
	deleted, err := a.recorded.Delete(c.context, c.id, d)
	// One that broke off has deleted some for good.
	if err == nil || deleted.Records > 0 {
		a.note(c, "delete requests", d.AuditTarget(), deleted.AuditDetail())
	}

	return answer(c, deleted, err)
}

// repriceRequests prices records again, a part with each request.
func (a *API) repriceRequests(c *exchange, q wire.Continue) error {
	repriced, err := a.recorded.Reprice(c.context, c.id, q.Cursor)
	if n := repriced.Changed; n > 0 {
		a.note(c, "reprice requests", english.Plural(n, "record", ""), "")
	}

	return answer(c, repriced, err)
}

// scanRequests searches records for secrets, a part with each request, and masks them if
// the caller wants that.
func (a *API) scanRequests(c *exchange, q wire.ScanQuery) error {
	release, err := begin(a.scans, c.id.KeyID, "scan")
	if err != nil {
		return err
	}
	defer release()

	scanned, err := a.recorded.Scan(c.context, c.id, q)
	return answer(c, scanned, err)
}

// searchRollups lists sessions, traces or users.
func (a *API) searchRollups(c *exchange, s wire.RollupSearch) error {
	s.Of = path.Base(path.Dir(c.route.path))
	page, err := a.recorded.Rollups(c.context, c.id, s)

	return answer(c, page, err)
}

// session returns what the records of a session add up to.
func (a *API) session(c *exchange) error {
	session, err := a.recorded.Session(c.context, c.id, c.ident)
	return answer(c, session, err)
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
func (a *API) trace(c *exchange, q wire.TraceQuery) error {
	trace, err := a.recorded.Trace(c.context, c.id, c.ident)
	// One at a time: as JSON, a long trace takes many times its memory.
	if len(trace.Spans) > longTrace {
		a.longTraces.Lock()
		defer a.longTraces.Unlock()
	}
	if err == nil && q.Form == "tree" {
		return answer(c, tracetree.Of(trace), nil)
	}

	return answer(c, trace, err)
}
