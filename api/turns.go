package api

import (
	"container/heap"
	"context"
	"sync"
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
// store which groups what waits has enough to group, and no more. Keys get their turns by the bytes that they had (start-time
// fair queueing), however many calls each of them makes: who sends little does not wait behind who sends much. Who would wait too
// long, or is too many, is turned away with a moment to come back. Safe for concurrent use.
type Turns struct {
	next    Recorder
	metrics *metrics.Metrics
	comeback

	mu      sync.Mutex
	running int64            // under mu; bytes
	waiting int              // under mu; turns in lines
	lines   map[string]*line // under mu; those with somebody in them
	order   lineHeap         // under mu; the same, by tag
	now     int64            // under mu; the tag of the line that was served last
}

// NewTurns makes Turns before next.
func NewTurns(next Recorder, m *metrics.Metrics) *Turns {
	return &Turns{next: next, metrics: m, lines: map[string]*line{}}
}

// line is what waits of one key.
type line struct {
	key   string
	tag   int64 // bytes, in the time of Turns.now: the lowest is next
	turns []*turn
}

// turn is one write that waits.
type turn struct {
	cost  int64
	ready chan struct{} // closed when it may go
	gone  bool          // under Turns.mu; it waits no more
}

// Record waits for the key's turn and hands the events on.
func (t *Turns) Record(ctx context.Context, id wire.Identity, events []wire.Event) ([]wire.Result, error) {
	cost := int64(0)
	for i := range events {
		cost += int64(len(events[i].Body)) + turnEventCost
	}
	cost = min(cost, turnBytesMax) // a larger write goes alone
	if err := t.enter(ctx, id.KeyID, cost); err != nil {
		return nil, err
	}
	defer t.leave(cost)
	return t.next.Record(ctx, id, events)
}

func (t *Turns) enter(ctx context.Context, key string, cost int64) error {
	t.mu.Lock()
	if t.waiting == 0 && t.running+cost <= turnBytesMax {
		t.running += cost
		t.mu.Unlock()
		return nil
	}
	mine, err := t.queue(key, cost)
	t.mu.Unlock()
	if err != nil {
		return err
	}
	patience := time.NewTimer(turnWaitMax)
	defer patience.Stop()
	select {
	case <-mine.ready:
		return nil
	case <-patience.C:
		err = t.refuse("wait")
	case <-ctx.Done():
		err = stopping(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-mine.ready: // just now
		return nil
	default:
	}
	mine.gone = true // whoever serves the line steps over it
	return err
}

// queue puts a write into its key's line. A key may have as many there as there is room left. Called with mu held.
func (t *Turns) queue(key string, cost int64) (*turn, error) {
	l := t.lines[key]
	if t.waiting >= turnsMax || l != nil && len(l.turns) >= turnsMax-t.waiting {
		return nil, t.refuse("queue")
	}
	if l == nil {
		l = &line{key: key, tag: t.now}
		t.lines[key] = l
		heap.Push(&t.order, l)
	}
	w := &turn{cost: cost, ready: make(chan struct{})}
	l.turns = append(l.turns, w)
	t.waiting++
	t.metrics.WritesWaiting.Set(float64(t.waiting))
	return w, nil
}

func (t *Turns) leave(cost int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running -= cost
	for len(t.order) > 0 {
		l := t.order[0]
		w := l.turns[0]
		if !w.gone && t.running+w.cost > turnBytesMax && t.running > 0 {
			break
		}
		l.turns[0] = nil
		l.turns = l.turns[1:]
		t.waiting--
		if !w.gone {
			t.running += w.cost
			t.now = l.tag
			l.tag += w.cost
			close(w.ready)
		}
		if len(l.turns) == 0 {
			heap.Pop(&t.order)
			delete(t.lines, l.key)
		} else {
			heap.Fix(&t.order, 0)
		}
	}
	t.metrics.WritesWaiting.Set(float64(t.waiting))
}

func (t *Turns) refuse(reason string) error {
	t.metrics.Shed.WithLabelValues(reason).Inc()
	return wire.Unavailable(t.delay(), "The server has more to write than it can at this moment. Send this again later.")
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
