package admission

import (
	"container/heap"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics"
)

// Forever means: wait until the caller's request ends.
const Forever time.Duration = math.MaxInt64

// ErrManyWait and ErrLongWait say why a caller did not get its turn. They come with ErrShare if
// its key's other callers are the reason.
var (
	ErrManyWait = errors.New("too many wait")
	ErrLongWait = errors.New("it waited too long")
)

// EndedError returns the error of a request whose context ended while it waited for its turn. The
// reason is its deadline, its caller, or a server that stops.
func EndedError(ctx context.Context) error {
	return wire.Unavailable(2*time.Second,
		"The request ended while it waited for its turn: %w. Send it again.", ctx.Err())
}

// Queue lets callers through up to a weight, and makes the others wait for their turn.
// Keys get their turns by the cost of what they had let through (start-time fair
// queueing: Goyal, Vin and Cheng, 1996), however many callers wait of each: a key that
// sends little does not wait behind one that sends much. Safe for concurrent use.
type Queue struct {
	weightMax  int64
	waitingMax int // a key may have as many waiting as there are places left
	watch      func(more int)

	mu      sync.Mutex
	through int64            // under mu; weight
	waiting int              // under mu
	lines   map[string]*line // under mu; of the keys with callers that wait
	order   lineHeap         // under mu; the same, by tag
	now     int64            // under mu; the tag of the line that was served last
}

// line is what waits of one key.
type line struct {
	key   string
	tag   int64 // cost, in the time of Queue.now: the lowest is next
	turns []*turn

	served int // callers that had their turn, since the line began
}

// turn is one caller that waits.
type turn struct {
	weight, cost int64
	line         *line
	servedBefore int           // line.served when the caller came
	ready        chan struct{} // closed when the caller may continue
	gone         bool          // under Queue.mu; it does not wait any more
}

// NewQueue makes a Queue. At most weightMax is let through at the same time; a caller that weighs
// more goes alone. watch is called with how many more wait, whenever that has changed; it may be nil.
func NewQueue(weightMax int64, waitingMax int, watch func(more int)) *Queue {
	return &Queue{weightMax: weightMax, waitingMax: waitingMax, watch: watch, lines: map[string]*line{}}
}

// Enter waits for the caller's turn, for at most patience. Then the caller must call Leave with
// its weight. The error has ErrManyWait or ErrLongWait in its chain, or is that of ctx.
func (q *Queue) Enter(ctx context.Context, key string, weight, cost int64, patience time.Duration) error {
	q.mu.Lock()
	if q.waiting == 0 && q.fitsLocked(weight) {
		q.through += weight
		q.mu.Unlock()
		return nil
	}
	mine, err := q.joinLocked(key, weight, cost)
	q.mu.Unlock()
	if err != nil {
		return err
	}

	// The turn may come at any moment, also while we give up.
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-mine.ready:
		return nil
	case <-timer.C:
		err = ErrLongWait
	case <-ctx.Done():
		err = ctx.Err()
	}

	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-mine.ready: // just now
		return nil
	default:
	}

	// Its key had turns meanwhile: the caller waited for those before it.
	if err == ErrLongWait && mine.line.served > mine.servedBefore {
		err = errors.Join(err, ErrShare)
	}

	// Others may have waited for this one alone.
	mine.gone = true
	q.serveLocked()

	return err
}

// Leave gives a caller's weight back to those whose turn it is.
func (q *Queue) Leave(weight int64) {
	q.mu.Lock()
	defer q.mu.Unlock()

	q.through -= weight
	q.serveLocked()
}

// fitsLocked reports whether so much more may be let through.
func (q *Queue) fitsLocked(weight int64) bool {
	return q.through == 0 || q.through+weight <= q.weightMax
}

// joinLocked puts a caller into its key's line.
func (q *Queue) joinLocked(key string, weight, cost int64) (*turn, error) {
	l := q.lines[key]
	switch {
	case q.waiting >= q.waitingMax:
		return nil, ErrManyWait
	case l != nil && len(l.turns) >= q.waitingMax-q.waiting:
		return nil, errors.Join(ErrManyWait, ErrShare)
	}

	// A key that comes again begins where the others are: it neither catches up nor waits longer.
	if l == nil {
		l = &line{key: key, tag: q.now}
		q.lines[key] = l
		heap.Push(&q.order, l)
	}
	t := &turn{
		weight:       weight,
		cost:         cost,
		line:         l,
		servedBefore: l.served,
		ready:        make(chan struct{}),
	}
	l.turns = append(l.turns, t)
	q.countLocked(1)

	return t, nil
}

// serveLocked lets callers through in turn, as long as they fit.
func (q *Queue) serveLocked() {
	for len(q.order) > 0 {
		l := q.order[0]
		t := l.turns[0]
		if !t.gone && !q.fitsLocked(t.weight) {
			return
		}

		// The line stays the next one until it is put in order again below.
		l.turns[0] = nil
		l.turns = l.turns[1:]
		q.countLocked(-1)
		if !t.gone {
			q.through += t.weight
			l.served++
			q.now = l.tag
			l.tag += t.cost
			close(t.ready)
		}

		if len(l.turns) == 0 {
			heap.Pop(&q.order)
			delete(q.lines, l.key)
		} else {
			heap.Fix(&q.order, 0)
		}
	}
}

// countLocked changes how many wait.
func (q *Queue) countLocked(more int) {
	q.waiting += more
	if q.watch != nil {
		q.watch(more)
	}
}

// lineHeap orders lines by tag, for container/heap.
type lineHeap []*line

func (h lineHeap) Len() int           { return len(h) }
func (h lineHeap) Less(i, j int) bool { return h[i].tag < h[j].tag }
func (h lineHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *lineHeap) Push(x any)        { *h = append(*h, x.(*line)) }
func (h *lineHeap) Pop() any {
	old := *h
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return l
}

const (
	recordingBytesMax = 16 << 20         // of small writes that are recorded at the same time, and of large ones
	largeWriteBytes   = 1 << 20          // from which a write is large
	writeWaitMax      = 10 * time.Second // how long a write waits for its turn
	writesWaitingMax  = 8192
	eventCost         = 1 << 10 // what an event counts in addition to its body, for its keys and states
)

// WriteQueue is a Recorder that limits how many bytes another one records at the same time. The
// other writes wait. So a store that commits writes in groups has enough for a group, and no
// more.
//
// Large writes wait for each other only: to decode, read and pack a body of many megabytes takes
// seconds, in which small writes pass. Keys take turns by the bytes that were recorded for them.
// Writes that would wait too long, or are too many, are refused. Safe for concurrent use.
type WriteQueue struct {
	next       wire.Recorder
	metrics    *metrics.Metrics
	small      *Queue
	large      *Queue
	retryAfter RetryAfter
}

// NewWriteQueue makes a WriteQueue in front of next.
func NewWriteQueue(next wire.Recorder, m *metrics.Metrics) *WriteQueue {
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
