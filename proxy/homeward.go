package proxy

import (
	"context"
	"time"

	"promptspool/spool"
)

const (
	heldAskEvery  = 15 * time.Second // how often the server is asked about keys with held events
	homewardDelay = 30 * time.Second // until the next try with a key's events, doubled ...
	homewardMax   = 10 * time.Minute // ... up to this, while they come back to the lane
)

// homeward is when the held events of a key may be tried next.
type homeward struct {
	at    time.Time
	delay time.Duration
}

// Run gives held events back to the spool when the server takes their key, until ctx ends; then it returns nil. So they go out by
// themselves, also after a restart. What a person must decide stays: dead letters, and events whose key is lost.
func (p *Proxy) Run(ctx context.Context) error {
	tick := time.NewTicker(heldAskEvery)
	defer tick.Stop()
	next := map[uint32]homeward{}
	for {
		p.bringHome(ctx, next)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// BringHome does so once, for each key that has held events.
func (p *Proxy) BringHome(ctx context.Context) { p.bringHome(ctx, map[uint32]homeward{}) }

// bringHome looks at every key with held events once.
func (p *Proxy) bringHome(ctx context.Context, next map[uint32]homeward) {
	now := time.Now()
	for number, h := range next {
		if now.Sub(h.at) > homewardMax {
			delete(next, number)
		}
	}
	for _, number := range p.spool.LaneKeys(spool.LaneHeld) {
		h := next[number]
		if now.Before(h.at) || ctx.Err() != nil || !p.keys.accepted(ctx, number) {
			continue
		}
		h.delay = min(homewardMax, max(homewardDelay, 2*h.delay))
		h.at = now.Add(h.delay)
		next[number] = h
		n, err := p.replay(ctx, spool.LaneHeld, func(e spool.LaneEntry) bool { return e.Key == number }, "")
		if n > 0 {
			p.logger.Info("the server takes a key, so the events that were held for it go out", "key", number, "events", n)
		}
		if err != nil {
			p.logger.Warn("held events cannot go out yet", "key", number, "error", err)
		}
	}
}
