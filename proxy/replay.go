package proxy

import (
	"context"
	"fmt"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/queue"
)

// replayEvents and replayBytes bound what Replay appends in one go.
const (
	replayEvents = 500
	replayBytes  = 4 << 20
)

// Replay moves the events of a lane that pick selects to the spool's tail. It takes them
// out of the lane once they are fsynced there. They go out under secret, or each under
// the key that it came with if secret is empty. It returns how many were moved.
//
// An event that cannot be read stays where it is, holds up nothing, and is reported by an
// error at the end. After any other error, or a crash, some events may be in both places:
// the server recognises an event that it gets twice.
func (p *Proxy) Replay(
	ctx context.Context, lane queue.Lane, pick func(queue.LaneEntry) bool, secret wire.Secret,
) (int, error) {
	moved, size, unread := 0, 0, 0
	// Of the first that is not read.
	var cause error
	var batch []queue.LaneEntry
	move := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := p.replayBatch(ctx, lane, batch, secret); err != nil {
			return err
		}
		moved += len(batch)
		batch, size = nil, 0
		return nil
	}

	for e, err := range p.spool.Lane(lane) {
		// One of a whole file may hold what is picked.
		wholeFile := err != nil && e.Seq == 0
		if !wholeFile && !pick(e) {
			continue
		}
		// One that cannot be read must not keep the others in the lane.
		if err != nil {
			if unread == 0 {
				cause = err
			}
			unread++
			continue
		}

		// Without a secret, one append has events of one key only.
		full := len(batch) == replayEvents || size+len(e.Data) > replayBytes
		if len(batch) > 0 && (full || secret == "" && e.Key != batch[0].Key) {
			if err := move(); err != nil {
				return moved, err
			}
		}
		batch, size = append(batch, e), size+len(e.Data)
	}
	if err := move(); err != nil {
		return moved, err
	}

	// Last, so that what can be read has gone out by now.
	if cause != nil {
		return moved, fmt.Errorf("%d were moved to the spool; %d cannot be read and stay: "+
			"`promptspool dead purge` removes them; the first: %w", moved, unread, cause)
	}

	return moved, nil
}

// replayBatch moves events that go out under one key.
func (p *Proxy) replayBatch(
	ctx context.Context, lane queue.Lane, batch []queue.LaneEntry, secret wire.Secret,
) error {
	var lines [][]byte
	var seqs []uint64
	size := int64(0)
	for _, e := range batch {
		lines, seqs = append(lines, e.Data), append(seqs, e.Seq)
		size += int64(len(e.Data))
	}

	// Another key of the account may replace one that is lost or revoked.
	number := batch[0].Key
	if secret != "" {
		id, err := p.keys.Authenticate(ctx, secret)
		if err != nil {
			return err
		}
		number, err = p.keys.acquire(id, size)
		if err != nil {
			return err
		}
		defer p.keys.release(number, size)
	} else if _, ok := p.keys.secret(number); !ok {
		return fmt.Errorf("the key of event %d is lost; give another one of its project with --key-file",
			batch[0].Seq)
	}

	// Into the spool first: a crash between the two leaves the events in both places,
	// not in none.
	if err := p.spool.Append(number, lines...); err != nil {
		return p.refusal(err)
	}
	if err := p.spool.Release(lane, seqs); err != nil {
		return err
	}

	// The events' own keys may not be needed any more.
	for _, e := range batch {
		p.keys.acked(e.Key)
	}

	return nil
}

// Purge removes the events of a lane that pick selects for good, and returns how
// many. That includes those that cannot be read. Keys that are not needed any more
// go with them.
func (p *Proxy) Purge(lane queue.Lane, pick func(queue.LaneEntry) bool) (int, error) {
	var seqs []uint64
	keys := map[uint32]bool{}
	for e, err := range p.spool.Lane(lane) {
		// Of an event that cannot be read the sequence is known; of a whole file
		// it is not.
		if err != nil && e.Seq == 0 {
			return 0, err
		}
		if pick(e) {
			seqs = append(seqs, e.Seq)
			keys[e.Key] = true
		}
	}

	if err := p.spool.Release(lane, seqs); err != nil {
		return 0, err
	}
	for number := range keys {
		p.keys.acked(number)
	}

	return len(seqs), nil
}

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
	next := map[uint32]heldRetry{}
	for {
		p.retryHeld(ctx, next)
		if sleep(ctx, heldAskEvery, nil) != nil {
			return nil
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
