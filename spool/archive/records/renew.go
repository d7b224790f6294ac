package records

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// The user, session and environment of a trace's first span are those of its calls, also of the
// calls that came before it. They are renewed when it comes: the first renewStep of them before its
// batch is answered, the others in the background. A trace that was just renewed waits for renewPause.

// renewPause is between two renewals of a trace, however often its first span is sent.
const renewPause = time.Second

// renewStep is how many records of a trace are looked at together.
const renewStep = 1000

// renewal is a trace of an account.
type renewal struct {
	account string
	trace   archive.UUID
}

// renewTraces renews the traces of whose first spans a batch that was just applied has some.
func (svc *Service) renewTraces(
	ctx context.Context, account string, events []archive.Event, results []wire.Result,
) error {
	seen := map[renewal]bool{}
	for i := range events {
		e := &events[i]
		if results[i].Code != wire.ResultAccepted {
			continue
		}
		trace, ok := e.TraceToRenew()
		of := renewal{account, trace}
		if !ok || seen[of] {
			continue
		}
		seen[of] = true
		if !svc.mayRenew(of) {
			continue
		}
		last, more, err := svc.renew(ctx, of, "")
		if err != nil {
			return err
		}
		if more {
			go svc.renewBehind(of, last)
		}
	}

	return nil
}

// mayRenew reports whether a trace may be renewed now. Otherwise it will be when its pause is over.
func (svc *Service) mayRenew(of renewal) bool {
	if _, paused := svc.renewed.LoadOrStore(of, false); paused {
		svc.renewed.Store(of, true)
		return false
	}
	time.AfterFunc(renewPause, func() {
		if again, _ := svc.renewed.LoadAndDelete(of); again == true && svc.mayRenew(of) {
			svc.renewBehind(of, "")
		}
	})

	return true
}

// renewBehind renews the records of a trace that follow after, in the background.
func (svc *Service) renewBehind(of renewal, after string) {
	for more := true; more; {
		var err error
		if after, more, err = svc.renew(context.Background(), of, after); err != nil {
			svc.config.Logger.Warn("calls do not show the user and session of their trace; sending its first "+
				"span again adds them", "project", of.account, "trace", of.trace.String(), "error", err)
			return
		}
	}
}

// renew has the calls among the next records of a trace take what it says.
func (svc *Service) renew(ctx context.Context, of renewal, after string) (next string, more bool, err error) {
	states, more, err := svc.config.Store.Trace(ctx, of.account, of.trace, after, renewStep)
	if err != nil || len(states) == 0 {
		return "", false, err
	}
	err = archive.RenewContexts(ctx, svc.config.Store, of.account, archive.Lacking(states))

	return states[len(states)-1].RequestID, more, err
}

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
