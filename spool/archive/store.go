package archive

import (
	"context"
	"encoding/json"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// Store keeps states, bodies and rows by account and request id. All of it begins with the account: what belongs to
// another account is not there. Safe for concurrent use. Errors are wire errors; CodeUnavailable is worth a retry.
type Store interface {
	// Apply folds events (State.Take) in one transaction: all of them or, on an error, none; only where their records weigh
	// more than HeldBytesMax together, in several. When it returns, they are
	// durable. Results stand in the order of events. An event that would have to wait for its request while the account's
	// orphans are full (Orphans.Full) is answered OrphanLater. The bodies of events with a Hash are kept. The store does not
	// keep references to events after it returned. Once begun it is not cancelled by ctx.
	Apply(ctx context.Context, account string, events []Event) ([]wire.Result, error)

	// Record returns a state, in which the long values that the record shows are restored (State.Restore), and the body of its
	// request; nil for an orphan. Both are the caller's. CodeNotFound when there is none, CodeInternal when a stored body is
	// damaged.
	Record(ctx context.Context, account, requestID string) (State, json.RawMessage, error)

	// Bodies returns a state as it is stored, also that of an orphan, and the bodies of its events that were kept, by event id.
	// Errors are those of Record.
	Bodies(ctx context.Context, account, requestID string) (State, map[string]json.RawMessage, error)

	// Search returns the page of q as of one moment: what Query.Select makes of all rows of the account. Its memory is
	// bounded by the page, and for an order other than time by Offset + Limit.
	Search(ctx context.Context, account string, q query.Query) (query.Page, error)

	// Scan gives fn every row that matches, newest first, as of one moment, whatever q says of pages and order, but behind
	// q.After. Of the row only the columns in want, and those that q looks at, are sure to be filled in. fn must not keep
	// the row, nor what it points to, and must not ask the store. Scan ends when fn returns false or an error, which it returns. stopped is where it
	// ended because q.Budget was spent; nil if it was not.
	Scan(ctx context.Context, account string, q query.Query, want rowcode.Columns, fn func(row *wire.Row) (more bool, err error)) (stopped *query.Position, err error)

	// Sum gives sums every row that matches q, newest first, as of one moment: by itself, with the columns in want, or as one of those
	// of which it has a summary that Summarize made. q must be Spanned. Sum ends when sums returns an error, which it returns.
	Sum(ctx context.Context, account string, q query.Query, want rowcode.Columns, sums query.Sums) error

	// Delete deletes what d says and keeps it out from then on, durably when it returns. It takes a while for many records;
	// those that it deleted before an error stay deleted. Deleting again does no harm.
	Delete(ctx context.Context, account string, d wire.Deletion) (wire.Deleted, error)

	// Rewrite gives change the requests of up to limit records, newest first behind after, and stores those of which it says
	// that it changed them, durably when it returns. change must be quick, and must not call the Store. It returns
	// where it ended, nil at the end, and how many changed. Events that come meanwhile are not lost.
	Rewrite(ctx context.Context, account string, after *query.Position, limit int, change Change) (end *query.Position, changed int, err error)

	// Edit gives change these records, orphans too, in one transaction, or in several as Apply does, and stores those that it says it changed, with all
	// that is made of them, durably when it returns. Of the bodies it stores those whose hash in the history changed. What
	// was there before is erased as deleted records are. A record that does not exist is left out. change may be called
	// again for the same record.
	Edit(ctx context.Context, account string, ids []string, change Edit) (changed int, err error)

	// Orphans returns up to limit records of the account whose request has not come, by request id, from the first
	// behind after ("" for the first of all), and the tally of all of them, as of one moment.
	// Where it has to read the records it may stop once they weigh HeldBytesMax. more reports
	// that others follow.
	Orphans(ctx context.Context, account, after string, limit int) (rows []wire.Orphan, more bool, tally Orphans, err error)
}

// Change may change what is derived of a request that was accepted at that moment, and says whether it did. body is the request as it was sent, only to be
// read before Change returns.
type Change func(accepted time.Time, r *Request, body func() ([]byte, error)) (changed bool, err error)

// Edit may change a record and the bodies that are kept of its events, by event id, and reports whether it did.
type Edit func(s *State, bodies map[string]json.RawMessage) (changed bool, err error)

// Versions tells which version of a template a selector meant at a moment: the registry.
type Versions interface {
	// VersionAt finds a template by its name or its decimal id and says its name, and the version that sel meant at that
	// moment; 0 if it meant none. CodeNotFound if there is no such template. Other errors say that it could not answer.
	VersionAt(ctx context.Context, account, ident string, sel wire.Selector, at time.Time) (name string, version int, err error)
}
