package proxy

import "sync"

const (
	rowMax        = 5      // refusals in a row before the contract itself is suspected
	judgedRecent  = 10_000 // events judged before, of which ...
	refusedRecent = 100    // ... so many may be refused
	judgedParts   = 10     // judgedRecent is counted in so many parts
)

// suspicion tells a few bad events from a server that refuses everything, to bury which would empty the spool into the dead letters
// for a fault that is not theirs. It watches each key, and what comes in a row over all keys. Safe for concurrent use.
type suspicion struct {
	mu   sync.Mutex
	row  int // refused in a row, of all keys
	keys map[uint32]*record
}

// record is what the server said of one key's events.
type record struct {
	row     int
	judged  [judgedParts]int // the newest part first
	refused [judgedParts]int
}

func newSuspicion() *suspicion { return &suspicion{keys: map[uint32]*record{}} }

func (s *suspicion) of(key uint32) *record {
	r := s.keys[key]
	if r == nil {
		if len(s.keys) >= keysMax {
			clear(s.keys)
		}
		r = new(record)
		s.keys[key] = r
	}
	return r
}

// taken notes that the server took events.
func (s *suspicion) taken(key uint32, events int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.of(key)
	s.row, r.row = 0, 0
	r.count(events, 0)
}

// refused notes that the server refused an event for its content, and says whether to believe it. What is not believed does not
// count: it will be sent again.
func (s *suspicion) refused(key uint32) (believed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.of(key)
	recent := 1
	for _, n := range r.refused {
		recent += n
	}
	if s.row >= rowMax || r.row >= rowMax || recent > refusedRecent {
		return false
	}
	s.row++
	r.row++
	r.count(1, 1)
	return true
}

func (r *record) count(judged, refused int) {
	if r.judged[0] >= judgedRecent/judgedParts {
		copy(r.judged[1:], r.judged[:])
		copy(r.refused[1:], r.refused[:])
		r.judged[0], r.refused[0] = 0, 0
	}
	r.judged[0] += judged
	r.refused[0] += refused
}
