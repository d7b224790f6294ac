package counting

import (
	"context"
	"runtime"
	"time"

	"promptspool/api/admission"
	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
)

// Bounds of searches that wait. An account may have half of them waiting.
const (
	searchesWaitingMax = 1024
	searchPatience     = 25 * time.Second // most callers leave after half a minute
)

// SearchQueue is a Store that answers searches through prompts and responses in turn, a few at a time:
// a query's Budget is for its own work. If all were under way together, it would end while they wait for
// each other, and none would find anything. Accounts take turns.
type SearchQueue struct {
	archive.Store
	queue      *admission.Queue
	retryAfter admission.RetryAfter
}

// NewSearchQueue makes a SearchQueue in front of next.
func NewSearchQueue(next archive.Store) *SearchQueue {
	// Half of those under way may wait for the disk.
	queue := admission.NewQueue(int64(2*runtime.GOMAXPROCS(0)), searchesWaitingMax, nil)
	return &SearchQueue{Store: next, queue: queue}
}

// Search waits for the account's turn, unless rows alone tell what matches.
func (s *SearchQueue) Search(ctx context.Context, account string, q query.Query) (query.Page, error) {
	if q.Budget == 0 {
		return s.Store.Search(ctx, account, q)
	}

	if err := s.queue.Enter(ctx, account, 1, 1, searchPatience); err != nil {
		if ctx.Err() != nil {
			return query.Page{}, admission.EndedError(ctx)
		}
		return query.Page{}, wire.Unavailable(s.retryAfter.Next(), "The server has more searches through prompts "+
			"and responses than it can answer now. Retry after the time in Retry-After.")
	}
	defer s.queue.Leave(1)

	return s.Store.Search(ctx, account, q)
}
