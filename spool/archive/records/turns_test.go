package records_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/records"
	"promptspool/spool/archive/rowcode"
)

var counter = wire.Identity{Account: "a"}

func serviceOver(store archive.Store) *records.Service {
	return records.New(records.Config{Store: store, Metrics: metrics.New("server", "test")})
}

// slowStore has rows that all match, and takes a while for each. Use it within synctest, where
// that time passes immediately.
type slowStore struct {
	archive.Store
	rows int
	each time.Duration
	err  error // after the last row
}

func (s *slowStore) row(ctx context.Context, i int) (*wire.Row, error) {
	select {
	case <-time.After(s.each):
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	return &wire.Row{
		RequestID: fmt.Sprintf("0195529c-1c00-7000-8000-%012d", i),
		ListTime:  time.Unix(1_800_000_000, 0).UTC().Add(-time.Duration(i) * time.Second),
		Engine:    "gpt-4o",
		Status:    "SUCCESS",
	}, nil
}

func (s *slowStore) Sum(ctx context.Context, _ string, _ query.Query, _ rowcode.Columns, sums query.Sums) error {
	for i := range s.rows {
		row, err := s.row(ctx, i)
		if err == nil {
			err = sums.Add(row)
		}
		if err != nil {
			return err
		}
	}

	return s.err
}

func (s *slowStore) Scan(ctx context.Context, _ string, _ query.Query, _ rowcode.Columns,
	fn func(*wire.Row) (bool, error)) (*query.Position, error) {
	for i := range s.rows {
		row, err := s.row(ctx, i)
		if err != nil {
			return nil, err
		}
		if more, err := fn(row); err != nil || !more {
			return nil, err
		}
	}

	return nil, s.err
}

// ofModel makes a store look at each record.
var ofModel = &wire.Filter{Field: "model", Operator: "is", Value: []byte(`"gpt-4o"`)}

func TestNoMoreIsCountedThanThereIsTimeFor(t *testing.T) {
	for _, filter := range []*wire.Filter{nil, ofModel} {
		synctest.Test(t, func(t *testing.T) {
			s := serviceOver(&slowStore{rows: 2000, each: time.Millisecond})
			q := wire.StatisticsQuery{FilterGroup: filter, Budget: 80 * time.Millisecond}
			begun := time.Now()
			w, err := s.Analyze(t.Context(), counter, q)
			if err != nil {
				t.Fatal(err)
			}
			n := w.TotalRequests
			if n < 60 || n > 80 || !w.Incomplete || time.Since(begun) > q.Budget {
				t.Errorf("%d are counted in %s, %+v", n, time.Since(begun), w.Progress)
			}
			if want := time.Unix(1_800_000_000, 0).Add(-time.Duration(n-1) * time.Second); !w.Since.Equal(want) {
				t.Errorf("the numbers are those since %s, want %s", w.Since, want)
			}

			parts, err := s.Statistics(t.Context(), counter, wire.PartsQuery{StatisticsQuery: q, By: "model"})
			if err != nil || len(parts.Items) != 1 || parts.Items[0].Requests < 60 || !parts.Incomplete {
				t.Errorf("by model, %d values are counted, %+v, %v", len(parts.Items), parts.Progress, err)
			}

			q.Budget = time.Minute
			if w, err := s.Analyze(t.Context(), counter, q); err != nil || w.TotalRequests != 2000 || w.Incomplete {
				t.Errorf("with time for all, %d are counted, %+v, %v", w.TotalRequests, w.Progress, err)
			}
		})
	}
}

func TestWhatEndsACountWithAFaultIsTold(t *testing.T) {
	broken := errors.New("the disk is broken")
	synctest.Test(t, func(t *testing.T) {
		s := serviceOver(&slowStore{rows: 100, each: time.Millisecond, err: broken})
		q := wire.StatisticsQuery{FilterGroup: ofModel, Budget: time.Second}
		if _, err := s.Analyze(t.Context(), counter, q); !errors.Is(err, broken) {
			t.Errorf("Analyze returns %v, want %v", err, broken)
		}
	})
}

// Of the counts that may take long, few run at a time, and no account's keep the others from theirs.
func TestFewCountAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serviceOver(&slowStore{rows: 1000, each: time.Millisecond})
		begun := time.Now()
		var callers sync.WaitGroup
		var last sync.Map // when the last count of an account ended
		ask := func(account string) {
			callers.Go(func() {
				q := wire.StatisticsQuery{FilterGroup: ofModel, Budget: 20 * time.Second}
				w, err := s.Analyze(t.Context(), wire.Identity{Account: account}, q)
				if err != nil || w.TotalRequests != 1000 {
					t.Errorf("%d are counted, %v", w.TotalRequests, err)
				}
				last.Store(account, time.Since(begun).Round(time.Second))
			})
		}
		for range 8 {
			ask("many")
		}
		synctest.Wait()
		ask("one")
		callers.Wait()

		for account, want := range map[string]time.Duration{"many": 5 * time.Second, "one": 2 * time.Second} {
			if took, _ := last.Load(account); took != want {
				t.Errorf("account %s has its counts after %v, want %s", account, took, want)
			}
		}
	})
}

// busyStore is a Store whose searches each work for a while on a few processors. Use it within synctest.
type busyStore struct {
	archive.Store
	processors chan struct{}
}

// searchSteps is how many steps of a millisecond a search of a busyStore takes.
const searchSteps = 300

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

// inTexts looks into prompts and responses.
var inTexts = wire.Search{FilterGroup: &wire.Filter{Field: "text", Operator: "contains", Value: []byte(`"x"`)}}

// atOnce returns how many of so many searches were not complete, and how many were refused.
func atOnce(n int, search func() (complete bool, err error)) (stopped, refused int64) {
	var callers sync.WaitGroup
	for range n {
		callers.Go(func() {
			complete, err := search()
			switch {
			case wire.IsCode(err, wire.CodeUnavailable) && wire.AsError(err).RetryAfter > 0:
				atomic.AddInt64(&refused, 1)
			case err != nil || !complete:
				atomic.AddInt64(&stopped, 1)
			}
		})
	}
	callers.Wait()

	return stopped, refused
}

func searchesOf(s *records.Service, search wire.Search) func() (complete bool, err error) {
	return func() (bool, error) {
		page, err := s.Search(context.Background(), counter, search)
		return page.Complete, err
	}
}

func TestManySearchesAtOnceAreEachAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		processors := runtime.GOMAXPROCS(0)
		busy := busyStore{processors: make(chan struct{}, processors)}
		n := min(50*processors, 500)

		// All at once they would take turns on the processors until the time of each has passed.
		q, err := query.Compile(inTexts)
		if err != nil {
			t.Fatal(err)
		}
		stopped, _ := atOnce(n, func() (bool, error) {
			page, err := busy.Search(context.Background(), counter.Account, q)
			return page.Stopped == nil, err
		})
		if stopped == 0 {
			t.Error("without turns each search ends in its time, so that this tests nothing")
		}
		if stopped, refused := atOnce(n, searchesOf(serviceOver(busy), inTexts)); stopped+refused > 0 {
			t.Errorf("%d searches of %d are not complete, and %d are refused", stopped, n, refused)
		}
	})
}

func TestSearchesBeyondTheQueueAreToldToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idle := serviceOver(busyStore{processors: make(chan struct{}, 10_000)})
		if _, refused := atOnce(2000, searchesOf(idle, inTexts)); refused < 100 {
			t.Errorf("%d of 2000 are refused", refused)
		}
		// What is found by rows alone does not wait.
		if _, refused := atOnce(2000, searchesOf(idle, wire.Search{})); refused > 0 {
			t.Errorf("%d that need no turn are refused", refused)
		}
	})
}
