package records

import (
	"context"
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
