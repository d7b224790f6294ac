package proxy

import (
	"context"
	"log/slog"
	"time"

	"promptspool/api/wire"
)

// Beater takes heartbeats: the server.
type Beater interface {
	Beat(ctx context.Context, id wire.Identity, h wire.Heartbeat) error
}

// Heart tells the server of this sidecar, once for each account of which it knows a good key. All fields are needed.
type Heart struct {
	Beater     Beater
	Identities func() []wire.Identity // one verified for each account; see Keyring.Identities
	Status     func() wire.Heartbeat  // what is told
	// Away says whether the server was away when it was called last; it is asked every second, and nobody is called for it.
	Away   func() bool
	Logger *slog.Logger
}

const (
	heartTimeout = 10 * time.Second // of one beat
	heartLook    = time.Second      // between looks whether there is a reason to beat
)

// Run beats at once, whenever the server is back or another account's key is known, and every wire.HeartbeatEvery; until ctx
// ends, then it returns nil. A beat that fails is not repeated before the next one is due.
func (h *Heart) Run(ctx context.Context) error {
	tick := time.NewTicker(heartLook)
	defer tick.Stop()
	beaten := map[string]time.Time{} // by account
	wasAway := false
	for {
		away := h.Away()
		ids := h.Identities()
		known := make(map[string]time.Time, len(ids))
		for _, id := range ids {
			at, before := beaten[id.Account]
			if !before || wasAway && !away || time.Since(at) >= wire.HeartbeatEvery {
				at = time.Now()
				h.beat(ctx, id)
			}
			known[id.Account] = at
		}
		beaten, wasAway = known, away
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (h *Heart) beat(ctx context.Context, id wire.Identity) {
	ctx, cancel := context.WithTimeout(ctx, heartTimeout)
	defer cancel()
	if err := h.Beater.Beat(ctx, id, h.Status()); err != nil && ctx.Err() == nil {
		h.Logger.Debug("the server took no heartbeat", "error", err)
	}
}
