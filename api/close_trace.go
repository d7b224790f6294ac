package api

import (
	"encoding/hex"
	"slices"

	"promptspool/api/edge"
	"promptspool/api/otlp"
	"promptspool/api/wire"
)

// closeTrace closes a trace. That is an event like a span, so a sidecar takes it while the server
// is away, and does not know of another one before.
func (a *API) closeTrace(c *call) error {
	trace, err := hex.DecodeString(c.ident)
	if err != nil || len(trace) != 16 {
		return wire.Errorf(wire.CodeNotFound, "There is no such trace: a trace id must have 32 hexadecimal digits.")
	}

	x := exported{a: a, c: c, signal: "spans"}
	e, err := x.event(wire.KindSpan, wire.CloseRecordID([16]byte(trace)), otlp.Close([16]byte(trace)))
	if err != nil {
		return err
	}
	// Two calls may come together. The recorder knows which one was first.
	results, err := a.recordAll(c, e)
	if err != nil {
		return err
	}
	if results[0].Code == wire.ResultDuplicate && a.c.ClosedTraces != nil {
		return errClosed(hex.EncodeToString(trace))
	}
	edge.WriteJSON(c.ctx, 201, wire.TraceClosed{
		Success: true,
		Message: "Trace closed.",
		TraceID: hex.EncodeToString(trace),
	})

	return nil
}

// errClosed is the 409 for traces that are closed.
func errClosed(traces ...string) error {
	e := wire.Errorf(wire.CodeConflict, "The trace is closed. Send spans with a new trace id.")
	e.TraceIDs = traces
	return e
}

// closedTracesMax is how many traces of a call are looked up. Who closes a trace sends few of them
// at a time, and a call must not cost a lookup for each of thousands.
const closedTracesMax = 4

// isClosed reports whether a trace was closed before the call.
func (x *exported) isClosed(trace [16]byte) (closed bool, err error) {
	if x.a.c.ClosedTraces == nil && !x.closing {
		return false, nil
	}
	if closed, known := x.traces[trace]; known {
		return closed, nil
	}

	if x.a.c.ClosedTraces != nil && len(x.traces) < closedTracesMax {
		closed, err = x.a.c.ClosedTraces.IsClosed(x.c.context, x.c.id, trace)
	}
	if x.traces == nil {
		x.traces = map[[16]byte]bool{}
	}
	// Beyond those that are looked up, only a call that closes its traces must know them.
	if len(x.traces) < closedTracesMax || x.closing {
		x.traces[trace] = closed
	}

	return closed, err
}

// closeTraces closes the traces of the call, if that is wanted. Its error is a conflict if all
// spans of the call were of closed traces.
func (x *exported) closeTraces() error {
	var closed []string
	for trace, was := range x.traces {
		if was {
			closed = append(closed, hex.EncodeToString(trace[:]))
		}
	}
	if !x.taken && len(closed) > 0 {
		slices.Sort(closed)
		return errClosed(closed...)
	}
	if !x.closing {
		return nil
	}

	for trace := range x.traces {
		if _, err := x.add(wire.KindSpan, wire.CloseRecordID(trace), otlp.Close(trace)); err != nil {
			return err
		}
	}

	return nil
}
