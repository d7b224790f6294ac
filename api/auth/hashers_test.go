package auth

import (
	"runtime"
	"sync"
	"testing"

	"promptspool/api/wire"
)

func TestOnlyStrangersAreRefusedBeyondTheQueue(t *testing.T) {
	h := newHashers()
	release := make(chan struct{})

	var waiting sync.WaitGroup
	work := func() {
		if err := h.run(t.Context(), false, func() { <-release }); err != nil {
			t.Errorf("a stranger within the queue: %v", err)
		}
	}
	for range strangersMax {
		waiting.Go(work)
	}
	for len(h.queue) < strangersMax || len(h.turns) < hashersMax {
		runtime.Gosched()
	}

	err := h.run(t.Context(), false, func() { t.Error("a stranger beyond the queue had a turn") })
	if e := wire.AsError(err); e.Code != wire.CodeUnavailable || e.RetryAfter <= 0 {
		t.Errorf("a stranger beyond the queue got %v", err)
	}

	known := make(chan error, 1)
	waiting.Go(func() { known <- h.run(t.Context(), true, func() {}) })
	close(release)
	if err := <-known; err != nil {
		t.Errorf("a known caller got %v", err)
	}
	waiting.Wait()
}
