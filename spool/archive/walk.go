package archive

import (
	"context"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
)

// walkTime is how long one call walks before it reports how far it got.
const walkTime = 2 * time.Second

// walk looks at all records of an account in parts: from the newest on those that lists
// show, then the orphans, then the spans.
type walk struct {
	archive *Archive
	account string
	ends    time.Time
	limit   int // records to look at; 0 if time alone bounds them
	look    func(ctx context.Context, requestID string) error

	seen   int
	cursor string // continues behind the records that were looked at
	done   bool
}

// newWalk returns a walk that continues at the cursor of an earlier one, "" for the first.
func (a *Archive) newWalk(
	id wire.Identity, cursor string, look func(ctx context.Context, requestID string) error,
) *walk {
	return &walk{
		archive: a,
		account: id.Account,
		ends:    a.config.Now().Add(walkTime),
		look:    look,
		cursor:  cursor,
	}
}

// run looks at records from the cursor on until the time or the records run out.
func (w *walk) run(ctx context.Context) error {
	if after, inSpans := strings.CutPrefix(w.cursor, spanCursor); inSpans {
		return w.spans(ctx, after)
	}
	after, inOrphans := strings.CutPrefix(w.cursor, orphanCursor)
	if !inOrphans {
		more, err := w.listed(ctx)
		if more || err != nil {
			return err
		}
		after = ""
	}

	// No list shows the orphans, so they are looked at apart.
	return w.orphans(ctx, after)
}

// listed looks at the records that lists show. more reports whether time ran out.
func (w *walk) listed(ctx context.Context) (more bool, err error) {
	q, err := query.Compile(wire.Search{Cursor: w.cursor, PerPage: exportPage})
	if err != nil {
		return false, err
	}

	for {
		page, _, err := w.archive.positions(ctx, wire.Identity{Account: w.account}, q, exportPage)
		if err != nil {
			return false, err
		}
		for _, p := range page {
			if err := w.look(ctx, p.RequestID); err != nil {
				return false, err
			}
			// Every call gets at least one record further.
			if w.step(p.Cursor()) {
				return true, nil
			}
		}

		if len(page) < exportPage {
			return false, nil
		}
		q.After = &page[len(page)-1]
	}
}

// orphans looks at the records whose request has not arrived.
func (w *walk) orphans(ctx context.Context, after string) error {
	for {
		states, next, err := w.archive.config.Store.OffList(ctx, w.account, Orphaned, after, exportStep)
		if err != nil {
			return err
		}
		for i := range states {
			after = states[i].RequestID
			if err := w.look(ctx, after); err != nil {
				return err
			}
			if w.step(orphanCursor + after) {
				return nil
			}
		}

		// Then what has neither a row nor a place among the orphans.
		if next == "" {
			return w.spans(ctx, "")
		}
	}
}

// spans looks at the records that are only a span, behind a cursor.
func (w *walk) spans(ctx context.Context, after string) error {
	for {
		page, err := w.archive.spans(ctx, wire.Identity{Account: w.account}, after)
		if err != nil {
			return err
		}
		for _, p := range page {
			after = p.Cursor()
			if err := w.look(ctx, p.RequestID); err != nil {
				return err
			}
			if w.step(spanCursor + after) {
				return nil
			}
		}

		if len(page) < exportStep {
			w.cursor, w.done = "", true
			return nil
		}
	}
}

// step notes that a record was looked at, and reports whether the call has done enough. The
// next one continues at cursor.
func (w *walk) step(cursor string) (enough bool) {
	w.cursor = cursor
	w.seen++

	return w.seen == w.limit || w.archive.config.Now().After(w.ends)
}
