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

// preload fetches templates when a sidecar starts.
type preload struct {
	wanted []string // see registry.Cache.Preload
	cache  *registry.Cache
	keys   *proxy.Keyring
	known  func() []wire.Identity // that may fetch templates, one for each account
	apiKey wire.Secret            // "" if the sidecar has no own key
	logger *slog.Logger

	deadline time.Time
	done     atomic.Bool
}

// started returns what a start still waits for, nil if nothing.
func (p *preload) started() error {
	if p.done.Load() || time.Now().After(p.deadline) {
		return nil
	}
	return errors.New("the templates of --template-preload are being fetched")
}

// run fetches for each account that the sidecar knows a key of: from earlier runs, or by --api-key.
func (p *preload) run(ctx context.Context) error {
	defer p.done.Store(true)
	if len(p.wanted) == 0 {
		return nil
	}

	// On its very first start, a sidecar with its own key waits until the server has accepted it.
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
