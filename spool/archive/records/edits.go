package records

import (
	"context"

	"promptspool/spool/archive"
)

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
