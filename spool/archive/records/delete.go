package records

import (
	"context"
	"encoding/hex"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Delete deletes what a wire.Deletion names, for good.
// Deleting a record that does not exist succeeds, and blocks its later arrival. With an error it
// returns what was deleted until then, without Success.
func (svc *Service) Delete(ctx context.Context, id wire.Identity, d wire.Deletion) (wire.Deleted, error) {
	invalid := func(reason string) (wire.Deleted, error) {
		return wire.Deleted{}, wire.Invalid(wire.FieldError{Field: "request_id", Reason: reason})
	}
	switch {
	case d.RequestID != "" && d.Key != "":
		return invalid("cannot be combined with metadata_key; send one of them")
	case d.RequestID+d.SessionID+d.TraceID == "" && d.Key == "":
		return invalid("is missing; send it, or metadata_key and metadata_value")
	case d.RequestID != "":
		var err error
		d.RequestID, err = wire.ParseID(d.RequestID)
		if err != nil {
			return invalid(err.Error())
		}
	case d.TraceID != "":
		trace, err := parseTrace(d.TraceID)
		if err != nil {
			return wire.Deleted{}, err
		}
		d.TraceID = hex.EncodeToString(trace[:])
	}
	// A moment in the future would delete what has not been written yet.
	if d.Before.IsZero() || d.Before.After(svc.config.Now()) {
		d.Before = svc.config.Now().UTC()
	}

	deleted, err := archive.Delete(ctx, svc.config.Store, id.Account, d)
	deleted.Success = err == nil

	return deleted, err
}

const (
	editsMax      = 100     // records that one transaction edits
	editsBytesMax = 8 << 20 // of their bodies, unless one alone has more
)

// edits collects the records that a walk edits. Many go into one transaction, which costs one
// fsync. Both bounds keep it small enough for the writers beside it.
type edits struct {
	store   archive.Store
	account string
	erase   bool // see archive.Edit
	change  archive.EditFunc

	ids     []string
	bytes   int // of their bodies
	changed int // records that were edited so far
}

// add edits a record, now or with later ones.
func (e *edits) add(ctx context.Context, s *archive.State) error {
	e.ids = append(e.ids, s.RequestID)
	if e.bytes += s.Bytes(); len(e.ids) < editsMax && e.bytes < editsBytesMax {
		return nil
	}

	return e.flush(ctx)
}

// flush edits the records that were added.
func (e *edits) flush(ctx context.Context) error {
	n, err := archive.Edit(ctx, e.store, e.account, e.ids, e.erase, e.change)
	// Even on an error: some may have been edited before it.
	e.changed += n
	e.ids, e.bytes = e.ids[:0], 0

	return err
}
