package proxy

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func admitted(t *testing.T, c *circuit) pass {
	t.Helper()
	p, err := c.admit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// admitLater admits in the background; the channel gets the pass.
func admitLater(c *circuit) <-chan pass {
	got := make(chan pass, 1)
	go func() {
		if p, err := c.admit(context.Background()); err == nil {
			got <- p
		}
	}()
	return got
}

func waits(t *testing.T, got <-chan pass) {
	t.Helper()
	synctest.Wait()
	if len(got) > 0 {
		t.Fatal("a call was let through; want it to wait")
	}
}

func TestAClosedCircuitLetsAllThrough(t *testing.T) {
	c := newCircuit()
	for range 10 {
		defer admitted(t, c).answered()
	}
}

func TestTheBackoffGrowsWithJitterToItsBound(t *testing.T) {
	for failures, most := range []time.Duration{100e6, 200e6, 400e6, 800e6, 1600e6, 3200e6, 5e9, 5e9} {
		var low, high int
		for range 200 {
			d := backoff(failures)
			if d <= 0 || d > most {
				t.Fatalf("after %d failures the delay is %v; want at most %v", failures, d, most)
			}
			if d < most/2 {
				low++
			} else {
				high++
			}
		}

		if low == 0 || high == 0 {
			t.Errorf("after %d failures %d delays are in the lower half and %d in the upper; want both",
				failures, low, high)
		}
	}

	if d := backoff(1 << 40); d > retryDelayMax {
		t.Errorf("after many failures the delay is %v", d)
	}
}

func TestASuccessWakesAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCircuit()
		admitted(t, c).failed(time.Minute)
		start := time.Now()
		probe := admitted(t, c)
		if waited := time.Since(start); waited != time.Minute {
			t.Errorf("the probe went out after %v; the server asked for a minute", waited)
		}

		var waiting []<-chan pass
		for range 5 {
			waiting = append(waiting, admitLater(c))
			waits(t, waiting[len(waiting)-1])
		}

		probe.answered()
		for _, got := range waiting {
			(<-got).answered()
		}
		if waited := time.Since(start); waited != time.Minute {
			t.Errorf("they waited until %v; want them to go with the probe's success", waited)
		}
	})
}

func TestCallsThatFailTogetherAreOneFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCircuit()
		calls := []pass{admitted(t, c), admitted(t, c), admitted(t, c), admitted(t, c)}
		for _, p := range calls {
			p.failed(0)
		}
		start := time.Now()
		admitted(t, c).answered()
		if waited := time.Since(start); waited > retryDelayMin {
			t.Errorf("the first probe went out after %v; want %v at most", waited, retryDelayMin)
		}
	})
}

func TestALateFailureLetsNoSecondProbeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCircuit()
		first, late := admitted(t, c), admitted(t, c)
		first.failed(0)
		probe := admitted(t, c)
		late.failed(0)
		time.Sleep(2 * retryDelayMax)
		second := admitLater(c)
		waits(t, second)
		probe.answered()
		(<-second).answered()
	})
}

func TestALateFailureKeepsWhatTheServerAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCircuit()
		first, late := admitted(t, c), admitted(t, c)
		first.failed(time.Minute)
		late.failed(time.Second)
		start := time.Now()
		admitted(t, c).answered()
		if waited := time.Since(start); waited != time.Minute {
			t.Errorf("the probe went out after %v; want a minute", waited)
		}
	})
}

func TestAnAbandonedProbeMakesRoomForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCircuit()
		admitted(t, c).failed(0)
		probe := admitted(t, c)
		next := admitLater(c)
		waits(t, next)
		probe.abandoned()
		p := <-next
		if !p.probe {
			t.Error("an abandoned call closed the circuit")
		}
		p.answered()
	})
}

func TestWaitingForTheCircuitEndsWithTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCircuit()
		admitted(t, c).failed(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := c.admit(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("it ended after %v with %v", time.Since(start), err)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newCircuit().admit(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that is gone was let through: %v", err)
	}
}
