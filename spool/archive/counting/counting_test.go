package counting_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive/counting"
)

var counter = wire.Identity{Account: "a"}

const waiting = 80 * time.Millisecond

// ofModel asks for the requests of a model. The filter makes a store look at each record.
func ofModel(model string) wire.StatisticsQuery {
	filter := &wire.Filter{Field: "model", Operator: "is", Value: fmt.Appendf(nil, "%q", model)}

	return wire.StatisticsQuery{FilterGroup: filter, Budget: waiting, Key: model}
}

// withCounting runs a test over a slow store, within synctest.
func withCounting(t *testing.T, s *slowStore, test func(t *testing.T, c *counting.Service)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := counting.New(s.archive())
		defer c.Close()
		test(t, c)
	})
}

func analyze(t testing.TB, c *counting.Service, id wire.Identity, q wire.StatisticsQuery) wire.Analytics {
	t.Helper()
	w, err := c.Analyze(t.Context(), id, q)
	if err != nil {
		t.Fatal(err)
	}

	return w
}

// Even the first answer is in time. A whole one stays until a newer one is whole.
func TestTotalsWithoutAFilterAreInTime(t *testing.T) {
	s := &slowStore{rows: 2000, each: time.Millisecond}
	withCounting(t, s, func(t *testing.T, c *counting.Service) {
		all := wire.StatisticsQuery{Budget: waiting, Key: "all"}
		inTime := func() wire.Analytics {
			begun := time.Now()
			w := analyze(t, c, counter, all)
			if took := time.Since(begun); took > 2*waiting {
				t.Errorf("%d are counted in %s", w.TotalRequests, took)
			}
			return w
		}
		if w := inTime(); w.TotalRequests == 0 || !w.Incomplete || !w.Counting {
			t.Errorf("at first %d are counted, %+v", w.TotalRequests, w.Progress)
		}
		time.Sleep(4 * time.Second)
		if w := inTime(); w.TotalRequests != 2000 || w.Incomplete {
			t.Errorf("%d of 2000 are counted in the end, %+v", w.TotalRequests, w.Progress)
		}

		s.rows = 3000
		time.Sleep(time.Minute)
		if w := inTime(); w.TotalRequests != 2000 || w.Incomplete || !w.Counting {
			t.Errorf("later, %d are counted, %+v", w.TotalRequests, w.Progress)
		}
		time.Sleep(4 * time.Second)
		if w := inTime(); w.TotalRequests != 3000 || w.Counting {
			t.Errorf("in the end, %d are counted, %+v", w.TotalRequests, w.Progress)
		}
	})
}

func TestACountGoesOnBehindItsAnswer(t *testing.T) {
	s := &slowStore{rows: 2000, each: time.Millisecond}
	withCounting(t, s, func(t *testing.T, c *counting.Service) {
		first := analyze(t, c, counter, ofModel("m"))
		if n := first.TotalRequests; n < 60 || n > 200 || !first.Incomplete || !first.Counting {
			t.Errorf("at first %d are counted, %+v", n, first.Progress)
		}
		want := time.Unix(1_800_000_000, 0).Add(-time.Duration(first.TotalRequests-1) * time.Second)
		if !first.Since.Equal(want) {
			t.Errorf("the numbers are those since %s, want %s", first.Since, want)
		}

		last := first.TotalRequests
		for w := first; w.Counting; last = w.TotalRequests {
			time.Sleep(300 * time.Millisecond)
			if w = analyze(t, c, counter, ofModel("m")); w.TotalRequests < last {
				t.Fatalf("%d are counted after %d", w.TotalRequests, last)
			}
		}
		if last != 2000 || s.walks != 1 {
			t.Errorf("%d are counted in the end, by %d walks", last, s.walks)
		}
	})
}

func TestAWholeCountServesUntilANewerOneIsWhole(t *testing.T) {
	s := &slowStore{rows: 1000, each: time.Millisecond}
	withCounting(t, s, func(t *testing.T, c *counting.Service) {
		whole := ofModel("m")
		whole.Budget = time.Minute
		if w := analyze(t, c, counter, whole); w.TotalRequests != 1000 || w.Progress != (wire.Progress{}) {
			t.Fatalf("%d are counted, %+v", w.TotalRequests, w.Progress)
		}
		if w := analyze(t, c, counter, ofModel("m")); w.TotalRequests != 1000 ||
			w.Incomplete || w.Counting || w.AsOf.IsZero() || s.walks != 1 {
			t.Errorf("right after it, %d are counted by %d walks, %+v", w.TotalRequests, s.walks, w.Progress)
		}

		s.rows = 1500
		time.Sleep(time.Minute)
		if w := analyze(t, c, counter, ofModel("m")); w.TotalRequests != 1000 || w.Incomplete || !w.Counting {
			t.Errorf("later, %d are counted, %+v", w.TotalRequests, w.Progress)
		}
		time.Sleep(2 * time.Second)
		if w := analyze(t, c, counter, ofModel("m")); w.TotalRequests != 1500 || w.Counting {
			t.Errorf("in the end, %d are counted, %+v", w.TotalRequests, w.Progress)
		}
	})
}

func TestWhatIsCountedQuicklyIsNeverOld(t *testing.T) {
	s := &slowStore{rows: 10, each: time.Millisecond}
	withCounting(t, s, func(t *testing.T, c *counting.Service) {
		analyze(t, c, counter, ofModel("m"))
		s.rows = 20
		if w := analyze(t, c, counter, ofModel("m")); w.TotalRequests != 20 || w.Progress != (wire.Progress{}) {
			t.Errorf("%d of 20 are counted, %+v", w.TotalRequests, w.Progress)
		}
	})
}

func TestACountThatNobodyAsksForEnds(t *testing.T) {
	s := &slowStore{rows: 1_000_000, each: time.Millisecond}
	withCounting(t, s, func(t *testing.T, c *counting.Service) {
		before := analyze(t, c, counter, ofModel("m"))
		time.Sleep(15 * time.Second) // it ends meanwhile, which frees its place for another
		synctest.Wait()

		other := ofModel("other")
		analyze(t, c, counter, other)
		time.Sleep(time.Second)
		if w := analyze(t, c, counter, other); w.TotalRequests < 1000 {
			t.Errorf("another question of the account does not run: %d are counted", w.TotalRequests)
		}

		// What was counted until then is kept.
		w := analyze(t, c, counter, ofModel("m"))
		if w.TotalRequests < 9000 || w.TotalRequests < before.TotalRequests || !w.Counting {
			t.Errorf("%d are counted after %d, %+v", w.TotalRequests, before.TotalRequests, w.Progress)
		}
	})
}

func TestACountThatTakesTooLongEnds(t *testing.T) {
	s := &slowStore{rows: 1_000_000, each: time.Millisecond}
	withCounting(t, s, func(t *testing.T, c *counting.Service) {
		w := analyze(t, c, counter, ofModel("m"))
		for range 25 {
			time.Sleep(time.Second)
			w = analyze(t, c, counter, ofModel("m"))
		}
		if w.Counting || !w.Incomplete || w.TotalRequests < 19_000 || s.walks != 1 {
			t.Errorf("%d are counted by %d walks, %+v", w.TotalRequests, s.walks, w.Progress)
		}
	})
}

func TestFewCountAtATime(t *testing.T) {
	s := &slowStore{rows: 5000, each: time.Millisecond}
	withCounting(t, s, func(t *testing.T, c *counting.Service) {
		ask := func(account, model string) int64 {
			return analyze(t, c, wire.Identity{Account: account}, ofModel(model)).TotalRequests
		}
		for _, account := range []string{"a", "b", "c"} {
			ask(account, "m")
			ask(account, "n")
		}
		time.Sleep(2 * time.Second)

		for _, want := range []struct {
			account, model string
			goesOn         bool
		}{{"a", "m", true}, {"a", "n", false}, {"b", "m", true}, {"b", "n", false}, {"c", "m", false}} {
			if n := ask(want.account, want.model); n > 2000 != want.goesOn {
				t.Errorf("%s of account %s has counted %d", want.model, want.account, n)
			}
		}

		// Each completes while clients keep asking for it.
		for range 40 {
			time.Sleep(time.Second)
			ask("c", "m")
		}
		if n := ask("c", "m"); n != 5000 {
			t.Errorf("the one that had to wait has counted %d", n)
		}
	})
}

func TestManyQuestionsAreNotKeptForEver(t *testing.T) {
	s := &slowStore{rows: 500, each: time.Millisecond}
	withCounting(t, s, func(t *testing.T, c *counting.Service) {
		whole := func(model string) {
			q := ofModel(model)
			q.Budget = time.Minute
			analyze(t, c, counter, q)
		}
		whole("first")
		for i := range 100 {
			whole(fmt.Sprint(i))
		}
		if n, bytes := c.Kept(); n > 64 || bytes > 8<<20 {
			t.Errorf("%d answers of %d bytes are kept", n, bytes)
		}
	})
}

func TestWhatEndsACountWithAFaultIsTold(t *testing.T) {
	s := &slowStore{rows: 100, each: time.Millisecond, err: errors.New("the disk is broken")}
	withCounting(t, s, func(t *testing.T, c *counting.Service) {
		q := ofModel("m")
		q.Budget = time.Second
		if _, err := c.Analyze(t.Context(), counter, q); !errors.Is(err, s.err) {
			t.Errorf("Analyze returns %v, want %v", err, s.err)
		}
	})
}

// Whenever a question is asked, its numbers do not shrink while nothing is deleted.
func TestNumbersDoNotShrink(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rows := rapid.IntRange(1, 800).Draw(r, "rows")
		steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) [2]int {
			return [2]int{
				rapid.IntRange(0, 2).Draw(r, "question"),
				rapid.SampledFrom([]int{0, 1, 50, 500, 5000, 30_000}).Draw(r, "pause"),
			}
		}), 1, 15).Draw(r, "steps")

		withCounting(t, &slowStore{rows: rows, each: time.Millisecond}, func(t *testing.T, c *counting.Service) {
			last := map[int]int64{}
			for i, step := range steps {
				w := analyze(t, c, counter, ofModel(fmt.Sprint(step[0])))
				if w.TotalRequests < last[step[0]] || w.TotalRequests > int64(rows) {
					t.Fatalf("step %d of %v: %d of %d are counted after %d",
						i, steps, w.TotalRequests, rows, last[step[0]])
				}
				if !w.Incomplete && w.TotalRequests != int64(rows) {
					t.Fatalf("step %d of %v: the answer is complete with %d of %d", i, steps, w.TotalRequests, rows)
				}
				last[step[0]] = w.TotalRequests
				time.Sleep(time.Duration(step[1]) * time.Millisecond)
			}
		})
	})
}
