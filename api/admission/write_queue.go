package admission

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics"
)

const (
	recordingBytesMax = 16 << 20         // of small writes that are recorded at the same time, and of large ones
	largeWriteBytes   = 1 << 20          // from which a write is large
	writeWaitMax      = 10 * time.Second // how long a write waits for its turn
	writesWaitingMax  = 8192
	eventCost         = 1 << 10 // what an event counts in addition to its body, for its keys and states
)

// Recorder records writes, as the Recorder of package api does.
type Recorder interface {
	Record(ctx context.Context, id wire.Identity, events []wire.Event) ([]wire.Result, error)
}

// WriteQueue is a Recorder that limits how many bytes another one records at the same time. The
// other writes wait. So a store that commits writes in groups has enough for a group, and no
// more.
//
// Large writes wait for each other only: to decode, read and pack a body of many megabytes takes
// seconds, in which small writes pass. Keys take turns by the bytes that were recorded for them.
// Writes that would wait too long, or are too many, are refused. Safe for concurrent use.
type WriteQueue struct {
	next       Recorder
	metrics    *metrics.Metrics
	small      *Queue
	large      *Queue
	retryAfter RetryAfter
}

// NewWriteQueue makes a WriteQueue in front of next.
func NewWriteQueue(next Recorder, m *metrics.Metrics) *WriteQueue {
	q := &WriteQueue{next: next, metrics: m}
	var waiting [2]atomic.Int64
	queue := func(n int) *Queue {
		return NewQueue(recordingBytesMax, writesWaitingMax, func(now int) {
			waiting[n].Store(int64(now))
			m.WritesWaiting.Set(float64(waiting[0].Load() + waiting[1].Load()))
		})
	}
	q.small, q.large = queue(0), queue(1)

	return q
}

// Record waits for the key's turn and hands the events on.
func (q *WriteQueue) Record(
	ctx context.Context, id wire.Identity, events []wire.Event,
) ([]wire.Result, error) {
	cost := int64(0)
	for i := range events {
		cost += int64(len(events[i].Body)) + eventCost
	}

	queue := q.small
	if cost >= largeWriteBytes {
		queue = q.large
	}

	// The cost is both how much is let through at the same time and what the key pays for its
	// next turn.
	err := queue.Enter(ctx, id.KeyID, cost, cost, writeWaitMax)
	switch {
	case errors.Is(err, ErrManyWait):
		return nil, q.refuse("queue", err)
	case errors.Is(err, ErrLongWait):
		return nil, q.refuse("wait", err)
	case err != nil:
		return nil, EndedError(ctx)
	}
	defer queue.Leave(cost)

	return q.next.Record(ctx, id, events)
}

// refuse returns the answer to a write that err kept from its turn.
func (q *WriteQueue) refuse(reason string, err error) error {
	q.metrics.Shed.WithLabelValues(reason).Inc()
	if !errors.Is(err, ErrShare) {
		return wire.Unavailable(q.retryAfter.Next(),
			"The server is overloaded: its write queue is full. Retry after the time in Retry-After.")
	}

	e := wire.Unavailable(q.retryAfter.Next(), "This key sends more than the server can write for it now. "+
		"Retry after the time in Retry-After, and send fewer writes at the same time.")
	e.Affects = wire.AffectsKey

	return e
}
