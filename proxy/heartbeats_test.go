package proxy

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/wire"
)

// beats counts heartbeats by account.
type beats struct {
	mu     sync.Mutex
	counts map[string]int
	err    error
	ids    []wire.Identity // whose sidecar it is
}

func (b *beats) Beat(_ context.Context, id wire.Identity, _ wire.Heartbeat) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts[id.Account]++
	return b.err
}

func (b *beats) identities() []wire.Identity {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ids
}

func (b *beats) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func TestHeartbeatsAreSentForEachAccountAndWhenTheServerIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var away atomic.Bool
		server := &beats{counts: map[string]int{}, ids: []wire.Identity{{Account: "a"}}}
		h := Heartbeats{
			Beater:     server,
			Identities: server.identities,
			Status:     func() wire.Heartbeat { return wire.Heartbeat{} },
			Away:       away.Load,
			Logger:     slog.New(slog.DiscardHandler),
		}

		done := make(chan error)
		go func() { done <- h.Run(ctx) }()
		want := func(when string, a, b int) {
			t.Helper()
			synctest.Wait()
			server.mu.Lock()
			defer server.mu.Unlock()
			if server.counts["a"] != a || server.counts["b"] != b {
				t.Errorf("%s: %v, want %d for a and %d for b", when, server.counts, a, b)
			}
		}

		want("at start", 1, 0)
		time.Sleep(time.Minute + time.Second)
		want("a minute later", 5, 0)
		server.set(func() { server.ids = append(server.ids, wire.Identity{Account: "b"}) })
		time.Sleep(time.Second)
		want("with another account", 5, 1)
		away.Store(true)
		server.set(func() { server.err = errors.New("away") })
		time.Sleep(10 * time.Second)
		want("while the server is away, no more often", 5, 1)
		away.Store(false)
		time.Sleep(time.Second)
		want("when it is back", 6, 2)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
