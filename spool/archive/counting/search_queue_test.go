package counting_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/counting"
	"promptspool/spool/archive/query"
)

// busyStore is a Store whose searches each work for a while on a few processors. Use it within synctest.
type busyStore struct {
	archive.Store
	processors chan struct{}
}

// searchSteps is how many steps of a millisecond a search of a busyStore takes.
const searchSteps = 10

func (s busyStore) Search(_ context.Context, _ string, q query.Query) (page query.Page, err error) {
	end := time.Now().Add(q.Budget)
	for range searchSteps {
		s.processors <- struct{}{}
		time.Sleep(time.Millisecond)
		<-s.processors
		if q.Budget > 0 && time.Now().After(end) {
			page.Stopped = &query.Position{}
			return page, nil
		}
	}

	return page, nil
}

// searchAtOnce returns how many of so many searches were not complete, and how many were refused.
func searchAtOnce(store archive.Store, n int, q query.Query) (stopped, refused int64) {
	var callers sync.WaitGroup
	for range n {
		callers.Go(func() {
			page, err := store.Search(context.Background(), "a", q)
			switch {
			case wire.IsCode(err, wire.CodeUnavailable) && wire.AsError(err).RetryAfter > 0:
				atomic.AddInt64(&refused, 1)
			case err != nil || page.Stopped != nil:
				atomic.AddInt64(&stopped, 1)
			}
		})
	}
	callers.Wait()

	return stopped, refused
}

func TestManySearchesAtOnceAreEachAnswered(t *testing.T) {
	synctest.Test(t, manySearches)
}

func manySearches(t *testing.T) {
	processors := runtime.GOMAXPROCS(0)
	busy := busyStore{processors: make(chan struct{}, processors)}
	q := query.Query{Budget: 15 * searchSteps * time.Millisecond}
	n := min(100*processors, 500)

	// All at once they would take turns on the processors until the time of each has passed.
	if stopped, _ := searchAtOnce(busy, 100*processors, q); stopped == 0 {
		t.Error("without the queue each search ends in its time, so that this tests nothing")
	}
	if stopped, refused := searchAtOnce(counting.NewSearchQueue(busy), n, q); stopped+refused > 0 {
		t.Errorf("%d searches of %d are not complete, and %d are refused", stopped, n, refused)
	}
}

func TestSearchesBeyondTheQueueAreToldToComeBack(t *testing.T) {
	synctest.Test(t, searchesBeyond)
}

func searchesBeyond(t *testing.T) {
	idle := busyStore{processors: make(chan struct{}, 10_000)}
	if _, refused := searchAtOnce(counting.NewSearchQueue(idle), 2000, query.Query{Budget: time.Hour}); refused < 100 {
		t.Errorf("%d of 2000 are refused", refused)
	}
	// What is found by rows alone does not wait.
	if _, refused := searchAtOnce(counting.NewSearchQueue(idle), 2000, query.Query{}); refused > 0 {
		t.Errorf("%d that need no turn are refused", refused)
	}
}
