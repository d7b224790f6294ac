package api

import (
	"context"
	"errors"
	"time"

	"promptspool/api/admission"
	"promptspool/api/wire"
	"promptspool/metrics"
)

const (
	recordingBytesMax = 16 << 20         // of writes that are recorded at the same time
	writeWaitMax      = 10 * time.Second // how long a write waits for its turn
	writesWaitingMax  = 8192
	eventCost         = 1 << 10 // what an event counts in addition to its body, for its keys and states
)

// WriteQueue is a Recorder that limits how many bytes another one records at the same time. The
// other writes wait. So a store that commits writes in groups has enough for a group, and no
// more.
//
// Keys take turns by the bytes that were recorded for them. Writes that would wait too long, or
// are too many, are refused. Safe for concurrent use.
type WriteQueue struct {
	next       Recorder
	metrics    *metrics.Metrics
	queue      *admission.Queue
	retryAfter admission.RetryAfter
}

// NewWriteQueue makes a WriteQueue in front of next.
func NewWriteQueue(next Recorder, m *metrics.Metrics) *WriteQueue {
	watch := func(waiting int) { m.WritesWaiting.Set(float64(waiting)) }

	return &WriteQueue{
		next:    next,
		metrics: m,
		queue:   admission.NewQueue(recordingBytesMax, writesWaitingMax, watch),
	}
}

// Record waits for the key's turn and hands the events on.
func (q *WriteQueue) Record(
	ctx context.Context, id wire.Identity, events []wire.Event,
) ([]wire.Result, error) {
	cost := int64(0)
	for i := range events {
		cost += int64(len(events[i].Body)) + eventCost
	}

	// The cost is both how much is let through at the same time and what the key pays for its
	// next turn.
	err := q.queue.Enter(ctx, id.KeyID, cost, cost, writeWaitMax)
	switch {
	case errors.Is(err, admission.ErrManyWait):
		return nil, q.refuse("queue")
	case errors.Is(err, admission.ErrLongWait):
		return nil, q.refuse("wait")
	case err != nil:
		return nil, admission.EndedError(ctx)
	}
	defer q.queue.Leave(cost)

	return q.next.Record(ctx, id, events)
}

func (q *WriteQueue) refuse(reason string) error {
	q.metrics.Shed.WithLabelValues(reason).Inc()

	return wire.Unavailable(q.retryAfter.Next(),
		"The server is overloaded: its write queue is full. Retry after the time in Retry-After.")
}
