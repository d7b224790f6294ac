package archive

import (
	"context"
	"encoding/json"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rollup"
	"promptspool/spool/archive/rowcode"
)

// Store keeps states, bodies and rows by account and request id. Every key begins with
// the account, so another account's data does not exist for a caller. An empty account
// is wire.CodeInternal: a caller that passes one has lost it. It is safe for
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

	// Search returns the page of q as of one moment, as databasetest.Select makes it of all
	// rows of the account. Its memory is bounded by the page or, for an order other than time,
	// by Offset + Limit.
	Search(ctx context.Context, account string, q query.Query) (query.Page, error)

	// Scan calls fn for every row after q.After that matches, newest first, as of one
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

	// Change loads records of an account, orphans included, calls decide with them, and writes
	// what that made of them with everything derived from it, in one transaction that is
	// durable when Change returns. decide may be called again, with the records loaded again.
	// It must not call the Store. Change fails with ErrHeavy if the records weigh too much
	// together, and then nothing is written.
	//
	// With alone set, no event is folded into any record of the account meanwhile.
	Change(
		ctx context.Context, account string, ids []string, alone bool, decide func(*Group, Loader) error,
	) error

	// Forget keeps out from now on what has one of these metadata values (wire.Deletion.Key),
	// durably when it returns. Then every record that was written without regard to that can be
	// found.
	Forget(ctx context.Context, account string, values ...wire.Deletion) error

	// Having returns the ids of the next records in lists that have, or had, a metadata value,
	// and perhaps of others. It continues after its argument after, which is "" or what it returned as next;
	// that is "" at the end.
	Having(ctx context.Context, account string, d wire.Deletion, after string) (ids []string, next string, err error)

	// States returns up to limit records of a part of the account after after: "", or what it
	// returned as next, which is "" at the end and else, but of TaggedSpans, the id of the last
	// record. It may return fewer, and does once they weigh HeldBytesMax.
	States(
		ctx context.Context, account string, of Part, after string, limit int,
	) (states []State, next string, err error)

	// IDs returns up to limit ids of records of an account, of all kinds, the highest first, after
	// after: "", or the last of an earlier answer.
	IDs(ctx context.Context, account, after string, limit int) ([]string, error)

	// Counts returns what the account has, as of one moment.
	Counts(ctx context.Context, account string) (Counts, error)

	// Oldest returns up to limit ids of the account's records and spans with the lowest order
	// times, if these are before a moment (zero: any), the oldest first.
	Oldest(ctx context.Context, account string, before time.Time, limit int) (ids []string, err error)

	// DropBefore deletes what it can delete at little cost of what was before a moment: whole
	// weeks. It returns how many records those had, and before when the others can be
	// deleted one by one.
	DropBefore(ctx context.Context, cutoff time.Time) (dropped int64, rest time.Time, err error)

	// Accounts returns the ids of all accounts that have records or tombstones.
	Accounts(ctx context.Context) ([]string, error)

	// GoneBy returns when the bytes of what is deleted now will have left the disk; zero if
	// the store cannot tell.
	GoneBy() time.Time

	// Rollups returns the page of a search for sessions, traces or users, as rollup.Finder makes
	// it of all of the account, as of one moment.
	Rollups(ctx context.Context, account string, q rollup.Query) (rollup.Page, error)
}

// RecordReader reads a record and the bodies of its events: all, or those needed to show it. It
// gives a Store the methods that read one record.
type RecordReader func(
	ctx context.Context, account, requestID string, shown bool,
) (State, map[string]json.RawMessage, error)

// Record returns a state and the body that it shows; see Store.
func (read RecordReader) Record(ctx context.Context, account, requestID string) (State, json.RawMessage, error) {
	state, bodies, err := read(ctx, account, requestID, true)
	if err != nil {
		return State{}, nil, err
	}

	// Long values are in the bodies only; the state has the beginning of each.
	state.Restore(bodies)
	return state, state.ShownBody(bodies), nil
}

// Bodies returns a state and the bodies of its events; see Store.
func (read RecordReader) Bodies(
	ctx context.Context, account, requestID string,
) (State, map[string]json.RawMessage, error) {
	return read(ctx, account, requestID, false)
}

// Part says which records of an account States returns.
type Part struct {
	Trace  UUID // those that have a span of this trace, by id
	Tagged bool // those that are only a span, and have metadata
}

// The parts of what no list shows.
var (
	Orphaned    = Part{} // their request has not arrived; by id
	TaggedSpans = Part{Tagged: true}
)

// eachPage calls fn with the records of a part, some at a time.
func eachPage(ctx context.Context, s Store, account string, of Part, fn func(page []State) error) error {
	for after := ""; ; {
		page, next, err := s.States(ctx, account, of, after, ChangeStep)
		if err == nil {
			err = fn(page)
		}
		after = next
		if err != nil || after == "" {
			return err
		}
	}
}
