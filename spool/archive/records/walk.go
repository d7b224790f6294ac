package records

import (
	"context"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
)

// walkTime is how long one call walks before it reports how far it got.
const walkTime = 2 * time.Second

// walk looks at all records of an account in parts: from the newest on those that lists
// show, then the orphans, then the spans.
type walk struct {
	archive *Service
	account string
	ends    time.Time
	limit   int // records to look at; 0 if time alone bounds them
	look    func(ctx context.Context, requestID string) error

	seen   int
	cursor string // continues after the records that were looked at
	done   bool
}

// newWalk returns a walk that continues at the cursor of an earlier one, "" for the first.
func (svc *Service) newWalk(
	id wire.Identity, cursor string, look func(ctx context.Context, requestID string) error,
) *walk {
	return &walk{
		archive: svc,
		account: id.Account,
		ends:    svc.config.Now().Add(walkTime),
		look:    look,
		cursor:  cursor,
	}
}

// run looks at records from the cursor on until the time or the records run out. Every call gets
// at least one record further.
func (w *walk) run(ctx context.Context) error {
	for next := w.cursor; ; {
		part, behind, err := w.archive.partBehind(ctx, w.account, next)
		if err != nil {
			return err
		}
		for _, r := range part {
			if err := w.look(ctx, r.requestID); err != nil {
				return err
			}
			if w.step(r.cursor) {
				return nil
			}
		}

		if next = behind; next == "" {
			w.cursor, w.done = "", true
			return nil
		}
	}
}

// The first bytes of the cursors of records that no list shows.
const (
	orphanCursor = "o."
	spanCursor   = "s."
)

// isOffList reports whether a cursor is past all records that lists show.
func isOffList(cursor string) bool {
	return strings.HasPrefix(cursor, orphanCursor) || strings.HasPrefix(cursor, spanCursor)
}

// walked is a record of a walk, and the cursor that continues after it.
type walked struct{ requestID, cursor string }

// partBehind returns the next records of an account after a cursor, "" for the beginning: from
// the newest on those that lists show, then the orphans, then those that are only a span. next
// continues after them; it is "" at the end.
func (svc *Service) partBehind(ctx context.Context, account, cursor string) (part []walked, next string, err error) {
	if after, isOrphan := strings.CutPrefix(cursor, orphanCursor); isOrphan {
		states, last, err := svc.config.Store.States(ctx, account, archive.Orphaned, after, exportStep)
		for i := range states {
			part = append(part, walked{states[i].RequestID, orphanCursor + states[i].RequestID})
		}
		if next = spanCursor; last != "" {
			next = orphanCursor + last
		}
		return part, next, err
	}

	after, isSpan := strings.CutPrefix(cursor, spanCursor)
	var behind *query.Position
	if after != "" {
		p, ok := query.ParseCursor(after)
		if !ok {
			return nil, "", errCursor("cursor of an earlier answer")
		}
		behind = &p
	}

	var page []query.Position
	prefix, limit := "", exportPage
	if next = orphanCursor; isSpan {
		prefix, limit, next = spanCursor, exportStep, ""
		page, err = svc.config.Store.Spans(ctx, account, behind, limit)
	} else {
		page, _, err = svc.positions(ctx, wire.Identity{Account: account}, query.Query{After: behind}, limit)
	}
	for _, p := range page {
		part = append(part, walked{p.RequestID, prefix + p.Cursor()})
	}
	// A part that is not full is the last of its kind.
	if len(part) == limit {
		next = part[limit-1].cursor
	}

	return part, next, err
}

// step notes that a record was looked at, and reports whether the call has done enough. The
// next one continues at cursor.
func (w *walk) step(cursor string) (enough bool) {
	w.cursor = cursor
	w.seen++

	return w.seen == w.limit || w.archive.config.Now().After(w.ends)
}
