package archive

import (
	"context"
	"encoding/json"
	"time"

	"promptspool/api/wire"
)

// TotalMax is how far a search with a filter counts; beyond it the total is a lower bound.
const TotalMax = 10_000

// Store keeps states, bodies and rows by account and request id. All of it begins with the account: what belongs to
// another account is not there. Safe for concurrent use. Errors are wire errors; CodeUnavailable is worth a retry.
type Store interface {
	// Apply folds events (State.Take) in one transaction: all of them or, on an error, none. When it returns, they are
	// durable. Results stand in the order of events. The bodies of events with a Hash are kept. The store does not
	// keep references to events after it returned. Once begun it is not cancelled by ctx.
	Apply(ctx context.Context, account string, events []Event) ([]wire.Result, error)

	// Record returns a state and the body of its request; nil for an orphan. Both are the caller's. CodeNotFound when
	// there is none, CodeInternal when the stored body is damaged.
	Record(ctx context.Context, account, requestID string) (State, json.RawMessage, error)

	// Search returns the rows of the account that match, newest first by order time and request id, as of one
	// moment. Its memory is bounded by the page.
	Search(ctx context.Context, account string, q Query) (Page, error)
}

// Page is what a Store finds.
type Page struct {
	Rows  []wire.Row
	More  bool // rows follow the last one
	Total int  // of all that match, wherever the page begins
	// TotalIsLowerBound says that more than Total match; only with a filter, and then Total is TotalMax.
	TotalIsLowerBound bool
}

// Versions tells which version of a template a selector meant at a moment: the registry.
type Versions interface {
	// VersionAt finds a template by its name or its decimal id and says its name, and the version that sel meant at that
	// moment; 0 if it meant none. CodeNotFound if there is no such template. Other errors say that it could not answer.
	VersionAt(ctx context.Context, account, ident string, sel wire.Selector, at time.Time) (name string, version int, err error)
}
