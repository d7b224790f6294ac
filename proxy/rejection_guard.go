package proxy

import "sync"

const (
	rowMax        = 5      // rejections in a row before the contract itself is suspected
	judgedRecent  = 10_000 // events judged before; among them ...
	refusedRecent = 100    // ... so many may be rejected
	judgedParts   = 10     // judgedRecent is counted in so many parts
)

// rejectionGuard tells a few bad events from a server that rejects everything. Burying
// what such a server rejects would empty the spool into the dead letters because of a
// fault that is not the events'. It watches each key, and what comes in a row over all
// keys. Safe for concurrent use.
//
// Doubt ends. The key pauses, and single events that come after the doubted ones are
// tried (queue.passDoubted). Once the server has taken one, it is believed about those
// before it, which are sent again. That is safe: a server that rejects everything takes
// nothing. One that rejects a part costs a pause and the alarm each time, and the more it
// rejects, the longer it takes to find an event that it takes. Nothing is lost by it: a
// dead letter can be replayed, and the lanes bound how many there are.
type rejectionGuard struct {
	mu   sync.Mutex
	row  int                    // under mu; rejections in a row, of all keys
	keys map[uint32]*keyHistory // under mu
}

// keyHistory is what the server said of one key's events.
type keyHistory struct {
	row      int
	judged   [judgedParts]int // the newest part first
	refused  [judgedParts]int
	doubted  uint64 // the last sequence whose rejection is doubted; 0 for none
	believed uint64 // rejections up to this sequence are believed
}

func newRejectionGuard() *rejectionGuard { return &rejectionGuard{keys: map[uint32]*keyHistory{}} }

// historyLocked returns that of a key.
func (g *rejectionGuard) historyLocked(key uint32) *keyHistory {
	h := g.keys[key]
	if h == nil {
		if len(g.keys) >= keysMax {
			// The memory is bounded. A bad server is soon suspected again.
			clear(g.keys)
		}
		h = new(keyHistory)
		g.keys[key] = h
	}

	return h
}

// taken notes that the server took events, and the last of them.
func (g *rejectionGuard) taken(key uint32, events int, last uint64) {
	if events == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()

	h := g.historyLocked(key)
	g.row, h.row = 0, 0
	h.count(events, 0)

	if h.doubted > 0 {
		h.believed = max(h.believed, last)
	}
	if last > h.doubted {
		h.doubted = 0
	}
}

// refused notes that the server rejected an event for its content, and reports
// whether to believe it. A rejection that is not believed does not count: the event
// will be sent again.
func (g *rejectionGuard) refused(key uint32, seq uint64) (believed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()

	h := g.historyLocked(key)
	if seq <= h.believed {
		return true
	}

	// This one counts, too: refusedRecent is how many may be refused, not how
	// many may precede.
	recent := 1
	for _, n := range h.refused {
		recent += n
	}
	if g.row >= rowMax || h.row >= rowMax || recent > refusedRecent {
		h.doubted = max(h.doubted, seq)
		return false
	}

	g.row++
	h.row++
	h.count(1, 1)

	return true
}

func (h *keyHistory) count(judged, refused int) {
	// A full part makes space for a new one; the oldest is forgotten.
	if h.judged[0] >= judgedRecent/judgedParts {
		copy(h.judged[1:], h.judged[:])
		copy(h.refused[1:], h.refused[:])
		h.judged[0], h.refused[0] = 0, 0
	}

	h.judged[0] += judged
	h.refused[0] += refused
}
