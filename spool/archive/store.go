package archive

import (
	"context"
	"encoding/json"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// Store keeps states, bodies and rows by account and request id. Every key begins with
// the account, so another account's data does not exist for a caller. It is safe for
// concurrent use. Errors are wire errors; CodeUnavailable is worth a retry.
type Store interface {
	// Apply folds events (State.Take) and returns their results, in their order. It uses
	// one transaction: all events are folded or, on an error, none. Only where their
	// records weigh more than HeldBytesMax together it uses several. When it returns, the
	// events are durable. Once begun, ctx does not cancel it.
	//
	// An event that would have to wait for its request while the account's orphans are
	// full (Orphans.Full) gets OrphanLater. The bodies of events with a Hash are kept.
	// The store keeps no references to events.
	Apply(ctx context.Context, account string, events []Event) ([]wire.Result, error)

	// Record returns a state and the body that it shows (State.ShownBody), nil for an orphan.
	// The long values that the record shows are restored (State.Restore). Both belong to
	// the caller. The error is CodeNotFound for an unknown record, and CodeInternal for
	// a damaged body.
	Record(ctx context.Context, account, requestID string) (State, json.RawMessage, error)

	// Bodies returns a state as it is stored, orphans included, and the bodies that were
	// kept of its events, by event id. Errors are those of Record.
	Bodies(ctx context.Context, account, requestID string) (State, map[string]json.RawMessage, error)

	// Known returns which of these records there are, orphans included.
	Known(ctx context.Context, account string, ids []string) (map[string]bool, error)

	// Search returns the page of q as of one moment: what Query.Select makes of all rows
	// of the account. Its memory is bounded by the page or, for an order other than time,
	// by Offset + Limit.
	Search(ctx context.Context, account string, q query.Query) (query.Page, error)

	// Scan calls fn for every row behind q.After that matches, newest first, as of one
	// moment. It ignores the pages and the order of q. Only the columns in want, and
	// those that q looks at, are certain to be filled in. fn must not keep the row or
	// what it points to, and must not call the store.
	//
	// Scan ends when fn returns false or an error, which it returns. stopped is where it
	// ended because q.Budget was spent, otherwise nil.
	Scan(
		ctx context.Context, account string, q query.Query, want rowcode.Columns,
		fn func(row *wire.Row) (more bool, err error),
	) (stopped *query.Position, err error)

	// Sum gives sums every row that matches q, newest first, as of one moment: by itself,
	// with the columns in want, or within a summary that Summarize made. q must be
	// Spanned. Sum ends when sums returns an error, which it returns.
	Sum(ctx context.Context, account string, q query.Query, want rowcode.Columns, sums query.Sums) error

	// Delete deletes what d names, and rejects it from then on, durably when it returns.
	// Many records take a while; those deleted before an error stay deleted. Deleting
	// twice is harmless.
	Delete(ctx context.Context, account string, d wire.Deletion) (wire.Deleted, error)

	// Rewrite calls change with the requests of up to limit records, newest first behind
	// after, and stores those that it changed, durably when it returns. change must be
	// quick and must not call the Store. Rewrite returns where it ended, nil at the end,
	// and how many changed; on an error of these records, the end that it would have
	// reached. Events that arrive meanwhile are not lost.
	Rewrite(
		ctx context.Context, account string, after *query.Position, limit int, change Change,
	) (end *query.Position, changed int, err error)

	// Edit calls change with these records, orphans included, and stores those that it
	// changed with everything derived from them, durably when it returns. It uses one
	// transaction, or several as Apply does. Of the bodies it stores those whose hash in
	// the history changed. The old content is erased as deleted records are. Records that
	// do not exist are left out. change may be called again for the same record.
	Edit(ctx context.Context, account string, ids []string, change Edit) (changed int, err error)

	// Orphans returns up to limit records of the account whose request has not arrived,
	// by request id behind after ("" for the beginning), and the tally of all of them, as
	// of one moment. A store that has to read the records may stop once they weigh
	// HeldBytesMax. more reports that others follow. With a limit of 0 it reads the tally
	// alone.
	Orphans(
		ctx context.Context, account, after string, limit int,
	) (rows []wire.Orphan, more bool, tally Orphans, err error)

	// Spans returns the places of up to limit records that are only a span (State.Bare),
	// newest first behind after.
	Spans(ctx context.Context, account string, after *query.Position, limit int) ([]query.Position, error)

	// Trace returns up to limit records that have a span of a trace, by request id behind
	// after ("" for the beginning). It may stop once they weigh HeldBytesMax. more reports
	// that others follow.
	Trace(
		ctx context.Context, account string, trace UUID, after string, limit int,
	) (states []State, more bool, err error)

	// SpanRecords returns the ids of the records that have a span of one of traces and end in
	// one of ends, those of a trace in order. Of each it looks at the first limit records.
	SpanRecords(
		ctx context.Context, account string, traces []UUID, ends []IDEnd, limit int,
	) (ids []UUID, err error)

	// Linked returns for each of keys the record whose State.Link it is, by key. Of several it
	// is the first by request id. Keys that no record has are left out.
	Linked(ctx context.Context, account string, keys []UUID) (map[UUID]UUID, error)
}

// Change may change what is derived from a request, and reports whether it did.
// accepted is the request's order time. body returns the request as it was sent, valid
// only until Change returns.
type Change func(accepted time.Time, r *Request, body func() ([]byte, error)) (changed bool, err error)

// Edit may change a record and the bodies kept of its events, by event id. It reports
// whether it did.
type Edit func(s *State, bodies map[string]json.RawMessage) (changed bool, err error)

// Versions knows which version of a template a selector meant at a moment: the registry.
type Versions interface {
	// VersionAt finds a template by its name or decimal id. It returns the template's
	// name and the version that the selector meant at that moment, 0 if it meant none.
	// The error is CodeNotFound for an unknown template; any other error means that there
	// is no answer now.
	VersionAt(
		ctx context.Context, account, ident string, selector wire.Selector, at time.Time,
	) (name string, version int, err error)
}
