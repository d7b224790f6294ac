package api

import (
	"context"
	"errors"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics"
)

const (
	turnBytesMax  = 16 << 20         // of writes that are recorded at once
	turnWaitMax   = 10 * time.Second // how long a write waits for its turn
	turnsMax      = 8192             // writes that wait
	turnEventCost = 1 << 10          // bytes that an event counts beside its body, for its keys and states
)

// Turns is a Recorder before another that hands it so many bytes of writes at once and lets the others wait, so that a
// store which groups what waits has enough to group, and no more. Keys get their turns by the bytes that they had, however many calls
// each of them makes. Who would wait too long, or is too many, is turned away with a moment to come back. Safe for concurrent use.
type Turns struct {
	next    Recorder
	metrics *metrics.Metrics
	gate    gate
	comeback
}

// NewTurns makes Turns before next.
func NewTurns(next Recorder, m *metrics.Metrics) *Turns {
	return &Turns{next: next, metrics: m, gate: gate{room: turnBytesMax, most: turnsMax, waits: func(n int) { m.WritesWaiting.Set(float64(n)) }}}
}

// Record waits for the key's turn and hands the events on.
func (t *Turns) Record(ctx context.Context, id wire.Identity, events []wire.Event) ([]wire.Result, error) {
	cost := int64(0)
	for i := range events {
		cost += int64(len(events[i].Body)) + turnEventCost
	}
	switch err := t.gate.enter(ctx, id.KeyID, cost, cost, turnWaitMax); {
	case errors.Is(err, errManyWait):
		return nil, t.refuse("queue")
	case errors.Is(err, errLongWait):
		return nil, t.refuse("wait")
	case err != nil:
		return nil, stopping(ctx)
	}
	defer t.gate.leave(cost)
	return t.next.Record(ctx, id, events)
}

func (t *Turns) refuse(reason string) error {
	t.metrics.Shed.WithLabelValues(reason).Inc()
	return wire.Unavailable(t.delay(), "The server has more to write than it can at this moment. Send this again later.")
}
