package admission

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
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
	watch := func(more int) { m.WritesWaiting.Add(float64(more)) }

	return &WriteQueue{
		next:    next,
		metrics: m,
		small:   NewQueue(recordingBytesMax, writesWaitingMax, watch),
		large:   NewQueue(recordingBytesMax, writesWaitingMax, watch),
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

const (
	retriesPerSecond = 200 // that the delays aim at
	retrySpanMin     = 2 * time.Second
	retrySpanMax     = 30 * time.Second
	refusedFade      = 10 * time.Second
)

// RetryAfter chooses when callers who were refused should come back. Each gets another delay,
// within a span that grows with their number, so that they do not return as one crowd. The zero
// value is ready. Safe for concurrent use.
type RetryAfter struct {
	mu      sync.Mutex
	refused float64   // under mu; requests refused lately, fading with refusedFade
	at      time.Time // under mu; of the last one
}

// Next returns the delay for a request that is refused now.
func (r *RetryAfter) Next() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()

	now := time.Now()
	r.refused = 1 + r.refused*max(0, 1-float64(now.Sub(r.at))/float64(refusedFade))
	r.at = now
	span := time.Duration(r.refused / retriesPerSecond * float64(time.Second))

	return time.Second/2 + rand.N(min(max(span, retrySpanMin), retrySpanMax))
}
