package proxy

import (
	"context"
	"time"

	"promptspool/spool/queue"
)

const (
	heldAskEvery      = 15 * time.Second // how often the server is asked about keys with held events
	heldRetryDelay    = 30 * time.Second // until the next try with a key's events, doubled ...
	heldRetryDelayMax = 10 * time.Minute // ... up to this, while they come back to the lane
)

// heldRetry is when the held events of a key may be tried next.
type heldRetry struct {
	at    time.Time
	delay time.Duration
}

// Run gives held events back to the spool when the server accepts their key, until ctx
// ends. Then it returns nil. So held events go out by themselves, also after a restart.
// Events that a person must decide about stay: dead letters, and those whose key is lost.
func (p *Proxy) Run(ctx context.Context) error {
	tick := time.NewTicker(heldAskEvery)
	defer tick.Stop()

	next := map[uint32]heldRetry{}
	for {
		p.retryHeld(ctx, next)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// RetryHeld does what Run does, once for each key that has held events.
func (p *Proxy) RetryHeld(ctx context.Context) { p.retryHeld(ctx, map[uint32]heldRetry{}) }

// retryHeld looks once at every key with held events that may be tried now.
func (p *Proxy) retryHeld(ctx context.Context, next map[uint32]heldRetry) {
	// A key that was not tried for long begins with the first delay again.
	now := time.Now()
	for number, r := range next {
		if now.Sub(r.at) > heldRetryDelayMax {
			delete(next, number)
		}
	}

	for _, number := range p.spool.LaneKeys(queue.LaneHeld) {
		r := next[number]
		if now.Before(r.at) || ctx.Err() != nil || !p.keys.accepted(ctx, number) {
			continue
		}

		// Counted before the try: the server may accept a key and still refuse its
		// events, which come back to the lane then.
		r.delay = min(heldRetryDelayMax, max(heldRetryDelay, 2*r.delay))
		r.at = now.Add(r.delay)
		next[number] = r

		// Each event goes out under the key that it came with: this is what the
		// server accepts now.
		ofKey := func(e queue.LaneEntry) bool { return e.Key == number }
		n, err := p.Replay(ctx, queue.LaneHeld, ofKey, "")
		if n > 0 {
			p.logger.Info("The server accepts a key again. The events that were held for it are sent.",
				"key", number, "events", n)
		}
		if err != nil {
			p.logger.Warn("Held events cannot be sent yet.", "key", number, "error", err)
		}
	}
}
