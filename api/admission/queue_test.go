package admission

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAQueueForgetsCallersThatGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiting := 0
		q := NewQueue(10, 3, func(more int) { waiting += more })
		leaving, leave := context.WithCancel(t.Context())
		if err := q.Enter(t.Context(), "a", 6, 6, Forever); err != nil {
			t.Fatal(err)
		}

		enter := func(ctx context.Context, key string, weight int64, patience time.Duration) <-chan error {
			ended := make(chan error, 1)
			go func() { ended <- q.Enter(ctx, key, weight, weight, patience) }()
			synctest.Wait()
			return ended
		}
		leaver := enter(leaving, "b", 8, Forever)
		impatient := enter(t.Context(), "c", 8, time.Second)
		if err := q.Enter(t.Context(), "c", 1, 1, Forever); !errors.Is(err, ErrManyWait) ||
			!errors.Is(err, ErrShare) || waiting != 2 {
			t.Errorf("a key that has as many waiting as there are places left: %v, %d wait", err, waiting)
		}
		// It fits beside the first, when only that is in front of it.
		patient := enter(t.Context(), "d", 4, Forever)

		leave()
		if err := <-leaver; !errors.Is(err, context.Canceled) {
			t.Errorf("who left: %v", err)
		}
		if err := <-impatient; !errors.Is(err, ErrLongWait) || errors.Is(err, ErrShare) {
			t.Errorf("who waited too long: %v", err)
		}
		if err := <-patient; err != nil {
			t.Errorf("who waited behind them: %v", err)
		}

		q.Leave(6)
		q.Leave(4)
		if q.through != 0 || q.waiting != 0 || waiting != 0 || len(q.lines) != 0 || len(q.order) != 0 {
			t.Errorf("something is left: %+v", q)
		}
	})
}
