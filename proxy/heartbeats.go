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

// Heartbeats tell the server of this sidecar, once for each account with a key known to
// be good. All fields are required.
type Heartbeats struct {
	Beater     Beater
	Identities func() []wire.Identity // one verified for each account; see Keyring.Identities
	Status     func() wire.Heartbeat  // what the server is told

	// Away reports whether the server was away when it was called last. It is asked every
	// second, and must not call the server.
	Away   func() bool
	Logger *slog.Logger
}

const (
	heartbeatTimeout = 10 * time.Second
	heartbeatLook    = time.Second // between looks whether there is a reason to send one
)

// Run sends heartbeats until ctx ends, and returns nil then. It sends one immediately,
// whenever the server is back or another account's key is known, and every
// wire.HeartbeatEvery. One that fails is not repeated before the next one is due.
func (h *Heartbeats) Run(ctx context.Context) error {
	sent := map[string]time.Time{} // by account
	wasAway := false
	for {
		away := h.Away()
		ids := h.Identities()
		known := make(map[string]time.Time, len(ids))
		for _, id := range ids {
			// One that failed counts as well: a server that is away is called
			// no more often.
			at, before := sent[id.Account]
			if !before || wasAway && !away || time.Since(at) >= wire.HeartbeatEvery {
				at = time.Now()
				h.send(ctx, id)
			}
			known[id.Account] = at
		}
		// Without the accounts that are gone.
		sent, wasAway = known, away

		if sleep(ctx, heartbeatLook, nil) != nil {
			return nil
		}
	}
}

func (h *Heartbeats) send(ctx context.Context, id wire.Identity) {
	ctx, cancel := context.WithTimeout(ctx, heartbeatTimeout)
	defer cancel()

	if err := h.Beater.Beat(ctx, id, h.Status()); err != nil && ctx.Err() == nil {
		h.Logger.Debug("The server took no heartbeat.", "error", err)
	}
}
