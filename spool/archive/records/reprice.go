package records

import (
	"bytes"
	"context"
	"encoding/json"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Reprice prices the account's requests by today's table, each as of its time. It reads
// them again, newest first after the cursor of an earlier call ("" for the first), for
// about 2 s. Its result is durable, and repeating it changes nothing. With an error it
// reports what was changed before that.
func (svc *Service) Reprice(ctx context.Context, id wire.Identity, cursor string) (wire.Repriced, error) {
	if err := checkAccount(id); err != nil {
		return wire.Repriced{}, err
	}

	answer := wire.Repriced{Success: true}
	e := edits{store: svc.config.Store, account: id.Account, change: svc.reprice}
	w := svc.newWalk(id, cursor, func(ctx context.Context, requestID string) error {
		state, body, err := svc.config.Store.Record(ctx, id.Account, requestID)
		if wire.IsCode(err, wire.CodeNotFound) || err == nil && state.Request == nil {
			return nil
		}
		if err != nil {
			return err
		}

		answer.Seen++
		// Tried outside the transaction, for which writers wait: most stay as they were.
		changed, err := svc.reprice(&state, map[string]json.RawMessage{state.Request.ID: body})
		if err != nil || !changed {
			return err
		}
		return e.add(ctx, &state)
	})
	err := w.run(ctx)
	if err == nil {
		err = e.flush(ctx)
	}
	answer.Changed, answer.Cursor, answer.Done = e.changed, w.cursor, w.done

	return answer, err
}

// reprice derives again what comes from the call, and its price, so that records gain what
// a newer version can read. It is an archive.EditFunc.
func (svc *Service) reprice(s *archive.State, bodies map[string]json.RawMessage) (changed bool, err error) {
	if s.Request == nil {
		return false, nil
	}
	object, err := wire.ParseObject(bodies[s.Request.ID])
	if err != nil {
		// The record keeps what was read when the body arrived.
		return false, nil
	}

	// Compared as they are stored: the same bytes need no write.
	r := &s.Request.Value
	before, _ := json.Marshal(r)
	r.ReadCall(object)
	r.SetPrice(svc.config.Prices, s.Request.At)
	after, _ := json.Marshal(r)

	return !bytes.Equal(before, after), nil
}
