package tracetree

import (
	"sync"
	"weak"

	"promptspool/api/wire"
)

// Whole is a tree with all of its rows. Its readers must not change it.
type Whole struct {
	wire.TraceTree

	Rows []Row

	first *wire.TraceSpan // of those that it was made of
}

// Shared makes the trees of long traces one at a time, and shares the last one among its readers.
//
// Such a tree takes more memory and time than what a page shows of it. It is kept as long as a reader
// has it. The zero value is ready. Safe for concurrent use.
type Shared struct {
	mu   sync.Mutex
	last weak.Pointer[Whole] // under mu
}

// longTrace is from how many spans on a tree is shared.
const longTrace = 1000

// Of returns the tree of a trace. It is shared by those who were given the same spans.
func (s *Shared) Of(t wire.Trace) *Whole {
	made := &Whole{}
	if len(t.Spans) >= longTrace {
		s.mu.Lock()
		defer s.mu.Unlock()

		// As long as there is a tree, its spans are in no other memory.
		made.first = &t.Spans[0]
		if last := s.last.Value(); last != nil && last.first == made.first {
			return last
		}
		s.last = weak.Make(made)
	}
	made.TraceTree = Of(t)
	made.Rows = Rows(&made.TraceTree, nil)

	return made
}
