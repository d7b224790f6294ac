package records

import (
	"context"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
)

// exportPage is how many positions an export reads ahead of its records, so that a slow
// reader holds no snapshot of the store.
const exportPage = 1000

// Export calls fn with every matching record, newest first, and a cursor that continues
// after it. It ends when fn returns an error, which it returns. Its memory is bounded by
// one record. Records written meanwhile may be missing; records deleted before fn would
// get them are.
func (svc *Service) Export(
	ctx context.Context, id wire.Identity, e wire.ExportQuery, fn func(wire.Exported) error,
) error {
	q, err := query.Compile(wire.Search{
		FilterGroup: e.FilterGroup,
		Cursor:      e.Cursor,
		PerPage:     exportPage,
	})
	if err != nil {
		return err
	}

	// An export must be complete, however long it takes.
	q.Budget = 0
	for {
		page, _, err := svc.positions(ctx, id, q, exportPage)
		if err != nil {
			return err
		}

		for i := range page {
			record, err := svc.Request(ctx, id, page[i].RequestID)
			if wire.IsCode(err, wire.CodeNotFound) {
				continue // deleted meanwhile
			}
			if err != nil {
				return err
			}
			if err := fn(wire.Exported{Record: record, Cursor: page[i].Cursor()}); err != nil {
				return err
			}
		}

		if len(page) < exportPage {
			return nil
		}
		q.After = &page[len(page)-1]
	}
}

// exportStep is how many records are between two cursors.
const exportStep = 100

// ExportEvents calls fn with the events of every record that s finds, in its order, one
// record at a time. If s has no filter, the events that wait for their request follow.
//
// mark is called now and then with a cursor that continues after what fn got, "" at the
// end. The export ends with the first error of either. Its memory is bounded by a page of
// rows and one record.
func (svc *Service) ExportEvents(
	ctx context.Context, id wire.Identity, s wire.Search,
	fn func([]wire.Event) error, mark func(cursor string) error,
) error {
	s.Page, s.PerPage = 0, exportStep
	for !wire.IsOffList(s.Cursor) {
		q, err := query.Compile(s)
		if err != nil {
			return err
		}
		// The events have the texts themselves.
		q.Bare = true
		page, err := svc.search(ctx, id, q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := svc.exportRecord(ctx, id, page.Items[i].RequestID, fn); err != nil {
				return err
			}
		}

		if page.NextCursor == nil {
			s.Cursor = wire.OrphanCursor
			break
		}
		s.Cursor = *page.NextCursor
		// Between pages, never within one: after a cursor nothing was left out.
		if err := mark(s.Cursor); err != nil {
			return err
		}
	}

	// No filter can match an orphan or a span: it has no row.
	if s.FilterGroup != nil {
		return mark("")
	}
	for s.Cursor != "" {
		part, next, err := svc.partBehind(ctx, id.Account, s.Cursor)
		if err != nil {
			return err
		}
		for _, w := range part {
			if err := svc.exportRecord(ctx, id, w.requestID, fn); err != nil {
				return err
			}
		}

		// Marked after a whole part: an export that is taken up again repeats at most one.
		s.Cursor = next
		if err := mark(next); err != nil {
			return err
		}
	}

	return nil
}

// exportRecord calls fn with the events of one record, unless it was deleted meanwhile.
func (svc *Service) exportRecord(
	ctx context.Context, id wire.Identity, requestID string, fn func([]wire.Event) error,
) error {
	state, bodies, err := svc.config.Store.Bodies(ctx, id.Account, requestID)
	if wire.IsCode(err, wire.CodeNotFound) {
		return nil
	}
	if err != nil {
		return err
	}

	return fn(state.Events(bodies))
}
