package records

import (
	"context"
	"strings"

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
// record at a time. Without a filter those are all records, also what no list shows, by their ids.
//
// mark is called now and then with a cursor that continues after what fn got, "" at the
// end. The export ends with the first error of either. Its memory is bounded by a page of
// rows and one record.
func (svc *Service) ExportEvents(
	ctx context.Context, id wire.Identity, s wire.Search,
	fn func([]wire.Event) error, mark func(cursor string) error,
) error {
	s.Page, s.PerPage = 0, exportStep
	if s.FilterGroup == nil && s.Cursor == "" {
		s.Cursor = wire.RecordCursor
	}
	for !wire.IsRecordCursor(s.Cursor) {
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

		// Between pages, never within one: after a cursor nothing was left out. A list without a filter is
		// not all: importing some of it twice does no harm.
		s.Cursor = wire.RecordCursor
		if page.NextCursor != nil {
			s.Cursor = *page.NextCursor
			if err := mark(s.Cursor); err != nil {
				return err
			}
		}
	}

	// No filter can match what no list shows: it has no row.
	for more := s.FilterGroup == nil; more; {
		ids, err := svc.idsAfter(ctx, id.Account, strings.TrimPrefix(s.Cursor, wire.RecordCursor))
		if err != nil {
			return err
		}
		for _, requestID := range ids {
			if err := svc.exportRecord(ctx, id, requestID, fn); err != nil {
				return err
			}
		}

		more = len(ids) == idsStep
		if more {
			s.Cursor = wire.RecordCursor + ids[len(ids)-1]
			if err := mark(s.Cursor); err != nil {
				return err
			}
		}
	}

	return mark("")
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
