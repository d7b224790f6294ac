package records

import (
	"context"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// The user, session and environment of a trace's first span are those of its calls, also of the
// calls that came before it. They are renewed when it comes: at once or, if the trace was just
// renewed, in the background after renewPause.

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
		if e.Span == nil || !e.SaysForTrace() || results[i].Code != wire.ResultAccepted {
			continue
		}
		trace, ok := archive.ParseTrace(e.Span.TraceID)
		of := renewal{account, trace}
		if !ok || seen[of] {
			continue
		}
		seen[of] = true
		if !svc.mayRenew(of) {
			continue
		}
		if err := svc.renew(ctx, of); err != nil {
			return err
		}
	}

	return nil
}

// mayRenew reports whether a trace may be renewed now. Otherwise it will be when its pause is over.
func (svc *Service) mayRenew(of renewal) bool {
	waits, paused := svc.renewed.Load(of)
	switch {
	case paused && waits == true:
		return false
	case paused:
		svc.renewed.Store(of, true)
		return false
	}

	svc.renewed.Store(of, false)
	time.AfterFunc(renewPause, func() {
		if again, _ := svc.renewed.LoadAndDelete(of); again != true {
			return
		}
		if svc.mayRenew(of) {
			if err := svc.renew(context.Background(), of); err != nil {
				svc.config.Logger.Warn("calls do not show the user and session of their trace; sending its first "+
					"span again adds them", "account", of.account, "trace", of.trace.String(), "error", err)
			}
		}
	})

	return true
}

// renew has the calls of a trace take what it says.
func (svc *Service) renew(ctx context.Context, of renewal) error {
	for after, more := "", true; more; {
		var states []archive.State
		var err error
		states, more, err = svc.config.Store.Trace(ctx, of.account, of.trace, after, renewStep)
		if err != nil || len(states) == 0 {
			return err
		}
		after = states[len(states)-1].RequestID
		if err := archive.RenewContexts(ctx, svc.config.Store, of.account, archive.Lacking(states)); err != nil {
			return err
		}
	}

	return nil
}
