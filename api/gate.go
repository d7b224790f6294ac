package api

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"time"
)

// gate lets so much through at once and has the others wait. Keys get their turns by the cost of what they had let through (start-time
// fair queueing: Goyal, Vin and Cheng, 1996), however many wait of each: who sends little does not wait behind who sends much. Safe
// for concurrent use.
type gate struct {
	room  int64       // for the weights of what is through at once; one that is heavier goes alone
	most  int         // that may wait; a key may have as many there as are left
	waits func(n int) // is told how many wait; nil: nobody asks

	mu      sync.Mutex
	through int64            // under mu; weight
	waiting int              // under mu
	lines   map[string]*line // under mu; those with somebody in them
	order   lineHeap         // under mu; the same, by tag
	now     int64            // under mu; the tag of the line that was served last
}

// line is what waits of one key.
type line struct {
	key   string
	tag   int64 // cost, in the time of gate.now: the lowest is next
	turns []*turn
}

// turn is one call that waits.
type turn struct {
	weight, cost int64
	ready        chan struct{} // closed when it may go
	gone         bool          // under gate.mu; it waits no more
}

// These say why somebody did not get through.
var (
	errManyWait = errors.New("too many wait")
	errLongWait = errors.New("it waited too long")
)

// enter waits until the call is through, for as long as patience at most; then leave must be called with its weight. Its error is one
// of those above, or that ctx ended.
func (g *gate) enter(ctx context.Context, key string, weight, cost int64, patience time.Duration) error {
	g.mu.Lock()
	if g.waiting == 0 && (g.through+weight <= g.room || g.through == 0) {
		g.through += weight
		g.mu.Unlock()
		return nil
	}
	mine, err := g.queue(key, weight, cost)
	g.mu.Unlock()
	if err != nil {
		return err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-mine.ready:
		return nil
	case <-timer.C:
		err = errLongWait
	case <-ctx.Done():
		err = ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-mine.ready: // just now
		return nil
	default:
	}
	mine.gone = true // whoever serves the line steps over it
	return err
}

// queue puts a call into its key's line. Called with mu held.
func (g *gate) queue(key string, weight, cost int64) (*turn, error) {
	l := g.lines[key]
	if g.waiting >= g.most || l != nil && len(l.turns) >= g.most-g.waiting {
		return nil, errManyWait
	}
	if l == nil {
		l = &line{key: key, tag: g.now}
		if g.lines == nil {
			g.lines = map[string]*line{}
		}
		g.lines[key] = l
		heap.Push(&g.order, l)
	}
	w := &turn{weight: weight, cost: cost, ready: make(chan struct{})}
	l.turns = append(l.turns, w)
	g.wait(1)
	return w, nil
}

// wait counts who waits. Called with mu held.
func (g *gate) wait(more int) {
	g.waiting += more
	if g.waits != nil {
		g.waits(g.waiting)
	}
}

// leave gives the room back, to whose turn it is.
func (g *gate) leave(weight int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.through -= weight
	for len(g.order) > 0 {
		l := g.order[0]
		w := l.turns[0]
		if !w.gone && g.through+w.weight > g.room && g.through > 0 {
			break
		}
		l.turns[0] = nil
		l.turns = l.turns[1:]
		g.wait(-1)
		if !w.gone {
			g.through += w.weight
			g.now = l.tag
			l.tag += w.cost
			close(w.ready)
		}
		if len(l.turns) == 0 {
			heap.Pop(&g.order)
			delete(g.lines, l.key)
		} else {
			heap.Fix(&g.order, 0)
		}
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
