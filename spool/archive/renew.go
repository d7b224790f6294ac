package archive

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/calls"
	"promptspool/spool/archive/query"
)

// Renewable is a Store that brings the records of earlier versions up to date.
type Renewable interface {
	Store

	// Renew calls RenewState with up to limit records, and lists those that it changed at
	// their State.ListTime. Otherwise it is Rewrite.
	Renew(
		ctx context.Context, account string, after *query.Position, limit int,
	) (end *query.Position, err error)

	// Accounts returns the ids of all accounts that have records.
	Accounts(ctx context.Context) ([]string, error)

	// Renewal returns what SetRenewal kept last, the zero Renewal at first.
	Renewal(ctx context.Context) (Renewal, error)

	// SetRenewal keeps a Renewal, durably when it returns.
	SetRenewal(ctx context.Context, r Renewal) error
}

// Renewal is how far the records of a Store have been brought up to date. Accounts are
// renewed in the order of their ids, and each account from its newest record on.
type Renewal struct {
	Form    int    `json:"form"`              // of the records when it is done; see FormNow
	Account string `json:"account,omitempty"` // the one that is being renewed
	Cursor  string `json:"cursor,omitempty"`  // continues within that account
	Done    bool   `json:"done,omitempty"`
}

// FormNow is the State.Form of what this version writes. It counts what was added to the
// records of earlier versions:
//
//	1   excerpts
//	2   the place in lists is by list time; see State.ListedAt
//
// What is added next increments it. Then all records are walked again.
const FormNow = 2

// renewalStep is how many records one transaction renews. Writers wait for it.
const renewalStep = 100

// Renew adds what this version derives from requests to the records of earlier versions,
// for about as long as budget. It continues where an earlier call ended, also one in a
// process that was killed. Repeating it changes nothing. Only one call may run at a time.
//
// Records that arrive meanwhile have everything already. A damaged one is logged and left
// as it is.
func Renew(ctx context.Context, s Renewable, budget time.Duration, logger *slog.Logger) error {
	r, err := s.Renewal(ctx)
	if err != nil || r.Done && r.Form >= FormNow {
		return err
	}
	if r.Form != FormNow {
		r = Renewal{Form: FormNow}
	}

	accounts, err := s.Accounts(ctx)
	if err != nil {
		return err
	}
	slices.Sort(accounts)

	end := time.Now().Add(budget)
	for _, account := range accounts {
		if account < r.Account {
			continue
		}
		if account != r.Account {
			r.Account, r.Cursor = account, ""
		}
		if err := renewAccount(ctx, s, &r, end, logger); err != nil {
			return err
		}

		// An account of less than a step is renewed again, which changes nothing.
		if isOver(ctx, end) {
			return s.SetRenewal(ctx, r)
		}
	}

	return s.SetRenewal(ctx, Renewal{Form: FormNow, Done: true})
}

// renewing reports whether records of earlier versions may still be moved by Renew.
func (a *Archive) renewing(ctx context.Context) bool {
	s, ok := a.config.Store.(Renewable)
	if !ok {
		return false
	}
	r, err := s.Renewal(ctx)

	return err != nil || !r.Done || r.Form < FormNow
}

// renewAccount renews the records of one account until the time is over.
func renewAccount(
	ctx context.Context, s Renewable, r *Renewal, end time.Time, logger *slog.Logger,
) (err error) {
	var after *query.Position
	if p, ok := query.ParseCursor(r.Cursor); ok {
		after = &p
	}

	for {
		var next *query.Position
		next, err = s.Renew(ctx, r.Account, after, renewalStep)
		if wire.IsCode(err, wire.CodeInternal) {
			next, err = renewEach(ctx, s, r.Account, after, logger)
		}
		if after = next; err != nil || after == nil {
			return err
		}

		// The step is durable by now, so none is left out after a crash.
		r.Cursor = after.Cursor()
		if err := s.SetRenewal(ctx, *r); err != nil || isOver(ctx, end) {
			return err
		}
	}
}

// renewEach renews a step whose records cannot be renewed together, each on its own. A
// damaged one must not keep all others from being renewed.
func renewEach(
	ctx context.Context, s Renewable, account string, after *query.Position, logger *slog.Logger,
) (*query.Position, error) {
	for range renewalStep {
		next, err := s.Renew(ctx, account, after, 1)
		if next != nil && wire.IsCode(err, wire.CodeInternal) {
			logger.Error("a damaged record could not be brought up to date; it stays as it is",
				"account", account, "request_id", next.RequestID, "error", err)
			err = nil
		}
		if after = next; err != nil || after == nil {
			return after, err
		}
	}

	return after, nil
}

func isOver(ctx context.Context, end time.Time) bool {
	return ctx.Err() != nil || time.Now().After(end)
}

// RenewState brings a record up to date, and reports whether it has to be written. body
// returns its request as it was sent.
func RenewState(s *State, body func() ([]byte, error)) (changed bool, err error) {
	r := &s.Request.Value
	moves := s.Form < listedByStart
	if r.InputExcerpt != "" || r.OutputExcerpt != "" {
		return moves, nil
	}

	// A write in between brings the place up to date, not the excerpts.
	raw, err := body()
	switch {
	// A damaged body must not keep all other records from being renewed.
	case wire.IsCode(err, wire.CodeInternal):
		return moves, nil
	case err != nil:
		return false, err
	}
	changed = r.readExcerpts(raw)

	return changed || moves, nil
}

// readExcerpts derives the excerpts from the request's body, and reports whether
// they changed.
func (r *Request) readExcerpts(body json.RawMessage) (changed bool) {
	call := calls.Read(body)
	in, out := call.Excerpts()
	changed = in != r.InputExcerpt || out != r.OutputExcerpt
	r.InputExcerpt, r.OutputExcerpt = in, out

	return changed
}
