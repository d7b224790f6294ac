package main

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"promptspool/api/wire"
	"promptspool/proxy"
	"promptspool/registry"
)

// preloadMax is how long /startupz waits for templates to preload. They are fetched for as long as it takes.
const preloadMax = 10 * time.Second

// preload makes a sidecar known to the server when it starts, and fetches templates.
type preload struct {
	wanted []string // see registry.Cache.Preload
	cache  *registry.Cache
	keys   *proxy.Keyring
	known  func() []wire.Identity // that may fetch templates, one for each account
	apiKey wire.Secret            // "" if the sidecar knows none
	logger *slog.Logger

	deadline time.Time
	done     atomic.Bool
}

// started returns what a start still waits for, nil if nothing.
func (p *preload) started() error {
	if len(p.wanted) == 0 || p.done.Load() || time.Now().After(p.deadline) {
		return nil
	}
	return errors.New("the templates of --template-preload are being fetched")
}

// run fetches for each account that the sidecar knows a key of: from earlier runs, or by --api-key.
func (p *preload) run(ctx context.Context) error {
	defer p.done.Store(true)

	// On its very first start, a sidecar with a key waits until the server has accepted it.
	// From then on it sends heartbeats, so the server lists it before its first call.
	ids := p.known()
	for p.apiKey != "" && len(ids) == 0 && ctx.Err() == nil {
		if id, err := p.keys.Authenticate(ctx, p.apiKey); err == nil && id.Verified {
			ids = append(ids, id)
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}

	if len(p.wanted) == 0 {
		return nil
	}
	if len(ids) == 0 && ctx.Err() == nil {
		p.logger.Warn("no key is known yet, so no template is preloaded; " +
			"give the sidecar --api-key, or let an app call once")
	}
	for _, id := range ids {
		if err := p.cache.Preload(ctx, id, p.wanted); err != nil && ctx.Err() == nil {
			p.logger.Warn("not all templates were preloaded", "project", id.Account, "error", err)
		}
	}
	return nil
}
