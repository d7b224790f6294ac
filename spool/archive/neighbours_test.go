package archive_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// scans finds nothing, and records the end of the span of each scan.
type scans struct {
	archive.Store

	until   []time.Time
	scanned func()
	stopped *query.Position
}

func (s *scans) Scan(
	ctx context.Context, _ string, q query.Query, _ rowcode.Columns, _ func(*wire.Row) (bool, error),
) (*query.Position, error) {
	_, to := q.Span()
	s.until = append(s.until, to)
	if s.scanned != nil {
		s.scanned()
	}

	return s.stopped, ctx.Err()
}

func TestTheNeighboursOfAnyRecordAreFoundInFewScans(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	for _, listed := range []string{
		"0001-01-02T00:00:00Z", "1700-01-01T00:00:00Z", "1980-01-01T00:00:00Z", "2026-07-31T00:00:00Z",
		"2026-08-01T11:59:59Z", "2026-08-01T12:00:00Z", "2026-08-01T12:05:00Z", "9999-12-31T00:00:00Z",
	} {
		at, err := time.Parse(time.RFC3339, listed)
		if err != nil {
			t.Fatal(err)
		}

		s := &scans{}
		if _, _, err := neighboursIn(t.Context(), s, now, wire.Search{}, at); err != nil {
			t.Errorf("listed at %s: %v", listed, err)
		}
		// The last one has no end: a clock that runs ahead puts records behind now.
		if n := len(s.until); n < 3 || n > 14 || !s.until[n-1].IsZero() {
			t.Errorf("listed at %s: the scans ended at %v", listed, s.until)
		}
		// Records of one microsecond are sorted otherwise, so that no scan may divide them.
		for _, until := range s.until[:len(s.until)-1] {
			if until.Nanosecond()%1000 != 999 {
				t.Errorf("listed at %s: a scan ended within a microsecond, at %v", listed, until)
			}
		}
	}
}

// neighboursIn looks for the neighbours of a record in a store.
func neighboursIn(
	ctx context.Context, s archive.Store, now time.Time, w wire.Search, at time.Time,
) (before, behind string, err error) {
	a := archive.New(archive.Config{
		Store: s, Metrics: metrics.New("server", "test"), Now: func() time.Time { return now },
	})

	return a.Neighbours(ctx, wire.Identity{Account: "a"}, w, wire.NewID(), at)
}

func TestTheSearchForNeighboursEndsWithItsCallOrItsBudget(t *testing.T) {
	now := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	s := &scans{scanned: cancel}
	_, _, err := neighboursIn(ctx, s, now, wire.Search{}, now.AddDate(-1, 0, 0))
	if !errors.Is(err, context.Canceled) || len(s.until) != 1 {
		t.Errorf("after its call: %d scans, %v", len(s.until), err)
	}

	// Among those of the same time there may be nearer ones than any other.
	s = &scans{stopped: &query.Position{}}
	before, behind, err := neighboursIn(t.Context(), s, now, wire.Search{Q: "word"}, now.AddDate(-1, 0, 0))
	if before != "" || behind != "" || err != nil || len(s.until) != 1 {
		t.Errorf("after its budget: %d scans, %q, %q, %v", len(s.until), before, behind, err)
	}
}

// endless finds a row, and then others until its call ends.
type endless struct {
	archive.Store
	scans int
}

func (e *endless) Scan(
	ctx context.Context, _ string, _ query.Query, _ rowcode.Columns, fn func(*wire.Row) (bool, error),
) (*query.Position, error) {
	e.scans++
	for {
		if more, err := fn(&wire.Row{RequestID: wire.NewID(), Status: "SUCCESS"}); err != nil || !more {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, wire.Unavailable(0, "the call ended: %w", ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

func TestAListThatIsNotSortedByTimeIsReadForABoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		byStatus := wire.Search{SortBy: "status"}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		e := &endless{}
		before, behind, err := neighboursIn(ctx, e, time.Now(), byStatus, time.Now())
		if before != "" || behind != "" || err != nil || e.scans != 2 {
			t.Errorf("%d scans, %q, %q, %v", e.scans, before, behind, err)
		}

		ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, _, err := neighboursIn(ctx, &endless{}, time.Now(), byStatus, time.Now()); err == nil {
			t.Error("after the end of its call: no error")
		}
	})
}
