package records

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
)

// repriceTime is how long one call of Reprice works before it reports how far it got.
const repriceTime = 2 * time.Second

// errRepriceStep ends a call of Reprice that has worked long enough.
var errRepriceStep = errors.New("enough for one call")

// Reprice prices the account's requests by today's table, each as of its time. It reads
// them again, newest first after the cursor of an earlier call ("" for the first), for
// about 2 s. Its result is durable, and repeating it changes nothing. With an error it
// reports what was changed before that.
func (svc *Service) Reprice(ctx context.Context, id wire.Identity, cursor string) (wire.Repriced, error) {
	change := func(accepted time.Time, r *archive.Request, body func() ([]byte, error)) (bool, error) {
		raw, err := body()
		if err != nil {
			return false, err
		}
		return svc.reread(accepted, r, raw), nil
	}

	var answer wire.Repriced
	end := svc.config.Now().Add(repriceTime)
	progress := func(seen, changed int, cursor string) error {
		// The step is durable, so it counts even if it is the last of this call.
		answer = wire.Repriced{
			Success: true,
			Seen:    seen,
			Changed: changed,
			Cursor:  cursor,
			Done:    cursor == "",
		}
		if svc.config.Now().After(end) {
			return errRepriceStep
		}
		return nil
	}

	err := svc.Rewrite(ctx, id, cursor, change, progress)
	if errors.Is(err, errRepriceStep) {
		err = nil
	}

	return answer, err
}

// reread derives again what comes from the call, and its price, so that records gain what
// a newer version can read.
func (svc *Service) reread(accepted time.Time, r *archive.Request, body json.RawMessage) (changed bool) {
	object, err := wire.ParseObject(body)
	if err != nil {
		// The record keeps what was read when the body arrived.
		return false
	}

	// Compared as they are stored: the same bytes need no write.
	before, _ := json.Marshal(r)
	r.ReadCall(object)
	r.SetPrice(svc.config.Prices, accepted)
	after, _ := json.Marshal(r)

	return string(before) != string(after)
}

// Rewrite calls change with every request of the account, newest first after cursor (""
// for the first), in steps. After each step it calls progress with how many it has seen
// and changed, and a cursor that continues after them, "" at the end. An error of
// progress ends it.
func (svc *Service) Rewrite(
	ctx context.Context, id wire.Identity, cursor string, change archive.Change,
	progress func(seen, changed int, cursor string) error,
) error {
	if err := checkAccount(id); err != nil {
		return err
	}
	var after *query.Position
	if cursor != "" {
		p, ok := query.ParseCursor(cursor)
		if !ok {
			return errCursor("cursor of an earlier answer")
		}
		after = &p
	}

	seen, changed := 0, 0
	counted := func(accepted time.Time, r *archive.Request, body func() ([]byte, error)) (bool, error) {
		seen++
		return change(accepted, r, body)
	}
	for {
		end, n, err := archive.Rewrite(ctx, svc.config.Store, id.Account, after, archive.ChangeStep, counted)
		if err != nil {
			return err
		}

		// The step is durable by now, so a cursor that progress
		// keeps skips no record after a crash.
		changed += n
		next := ""
		if end != nil {
			next = end.Cursor()
		}
		if err := progress(seen, changed, next); err != nil || end == nil {
			return err
		}
		after = end
	}
}
