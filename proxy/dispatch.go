package proxy

import (
	"context"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"promptspool/spool/crashpoint"
)

// dispatch is one run of a Forwarder: what waits, and what is on its way. One goroutine
// owns all of it but the Forwarder. Readings and deliveries run in their own goroutines,
// and come back by channels.
type dispatch struct {
	*Forwarder

	ledger      *ledger
	queues      map[uint32]*keyQueue
	settledKeys map[uint32]bool // keys that may have events in the spool to acknowledge
	inMemory    int             // bytes of events that are queued or on their way
	inFlight    int             // batches
	holdAfter   time.Time       // events are not held before

	workers    sync.WaitGroup
	readings   chan reading
	arrivals   chan error
	deliveries chan *delivery
	waiting    bool      // a worker waits for the next event at the tail
	reading    bool      // a reading is under way
	tailWas    bool      // the last one was at the tail
	readTailAt time.Time // the next one there does not begin before
}

func newDispatch(f *Forwarder) *dispatch {
	return &dispatch{
		Forwarder:   f,
		ledger:      newLedger(f.spool.Frontier()),
		queues:      map[uint32]*keyQueue{},
		settledKeys: map[uint32]bool{},

		// It holds everything that may be under way, so no worker waits for the dispatch.
		readings:   make(chan reading, 1),
		arrivals:   make(chan error, 1),
		deliveries: make(chan *delivery, inFlightMax+1),
	}
}

func (d *dispatch) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()

	for {
		// Start what can be started, and note when to look at the rest again.
		now := time.Now()
		wake := d.send(ctx, now)
		wake = sooner(wake, d.read(ctx, now))
		timer.Stop()
		if !wake.IsZero() {
			timer.Reset(max(0, wake.Sub(now)))
		}

		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-d.reach.turned:
		case err := <-d.arrivals:
			d.waiting = false
			if err != nil {
				return err
			}
		case r := <-d.readings:
			if err := d.receive(ctx, time.Now(), r); err != nil {
				return err
			}
		case delivered := <-d.deliveries:
			if err := d.settle(time.Now(), delivered); err != nil {
				return err
			}
		}
	}
}

// sooner is the earlier of two moments; zero means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}

	return a
}

func (d *dispatch) queue(key uint32) *keyQueue {
	q := d.queues[key]
	if q == nil {
		q = &keyQueue{key: key}
		d.queues[key] = q
	}
	return q
}

// send starts the batches that may go out now, the one with the oldest event first. It
// returns when to look again.
func (d *dispatch) send(ctx context.Context, now time.Time) (wake time.Time) {
	for d.inFlight < inFlightMax {
		// Every time again: the batch that went out has changed its queue.
		var next *keyQueue
		wake = time.Time{}
		full := d.failingInFlight() >= failingMax
		for key, q := range d.queues {
			ready, at := q.ready(now, d.bound)
			wake = sooner(wake, at)

			// Failing keys whose answers take long must not keep out the others.
			if ready && full && q.failing() {
				ready = false
				d.backOff(now, q, 0)
			}

			if ready && (next == nil || q.events[0].Seq < next.events[0].Seq) {
				next = q
			}
			if q.idle(now) {
				delete(d.queues, key)
			}
		}

		if next == nil {
			return wake
		}
		d.start(ctx, next, next.cut(now, d.bound))
	}

	// A delivery that ends wakes us.
	return time.Time{}
}

// failingInFlight returns how many batches of failing keys are on their way.
func (d *dispatch) failingInFlight() (batches int) {
	for _, q := range d.queues {
		if q.failing() {
			batches += q.inFlight
		}
	}
	return batches
}

// start sends a batch on its way.
func (d *dispatch) start(ctx context.Context, q *keyQueue, b *batch) {
	q.inFlight++
	d.inFlight++
	d.metrics.ForwardInFlight.Set(float64(d.inFlight))

	// The network is slow, and the dispatch must not wait for it: it has other keys
	// to look after.
	delivery := &delivery{sender: d.sender, batch: b}
	d.workers.Go(func() {
		delivery.run(ctx)
		d.deliveries <- delivery
	})
}

// settle takes in what became of a batch, and acknowledges what the frontier has passed.
func (d *dispatch) settle(now time.Time, v *delivery) error {
	// These counts change whatever the outcome was.
	q := d.queue(v.batch.key)
	q.inFlight--
	d.inFlight--
	d.metrics.ForwardInFlight.Set(float64(d.inFlight))
	d.inMemory -= v.batch.bytes
	if v.err != nil {
		return v.err
	}

	for _, e := range v.settled {
		d.ledger.settle(e.Seq, len(e.Data))
	}
	d.postpone(now, q, v)

	// A large event must be gone before the next one is read. The collector would start
	// too late for that in a small sidecar, so we let go of every reference and start it.
	if v.batch.bytes > compressBytesMax {
		*v = delivery{batch: &batch{}}
		debug.FreeOSMemory()
	}

	d.settledKeys[q.key] = true
	err := d.acknowledge()
	d.publish(now)

	return err
}

// acknowledge tells the spool when the frontier has moved, and the ring which keys may
// not be needed any more.
func (d *dispatch) acknowledge() error {
	if !d.ledger.advance() {
		return nil
	}

	crashpoint.Reach(crashpoint.BetweenSendAndAck)
	if err := d.spool.Ack(d.ledger.frontier - 1); err != nil {
		return err
	}

	// A key may go when its last event has left the spool.
	for key := range d.settledKeys {
		d.keys.acked(key)
		if events, _ := d.spool.KeyUsage(key); events == 0 {
			delete(d.settledKeys, key)
		}
	}

	return nil
}

// postpone puts back what of a batch is not settled.
func (d *dispatch) postpone(now time.Time, q *keyQueue, v *delivery) {
	// Events that were settled without a wait show that the key's trouble is over, unless
	// their batch was under way when the key was paused.
	waits := v.backoff || v.wait > 0
	overtaken := q.paused && q.blocked(now) && v.batch.holdReason == ""
	if len(v.settled) > 0 && !waits && !overtaken {
		q.failures, q.paused, q.alone, q.large = 0, false, false, 0
		q.retryDoubted()
	}

	if waits {
		if v.backoff {
			d.backOff(now, q, v.wait)
		} else {
			d.block(q, now.Add(v.wait))
		}
		q.paused, q.alone, q.why = v.paused, v.alone, v.why
		if v.batch.holdReason != "" {
			// The lanes are full for every key.
			d.holdAfter = q.until
		}
	}

	if len(v.later) > 0 {
		d.postponeLater(now, q, v)
	} else if !q.later.any {
		q.laters = 0
	}

	// The rest goes back to the front of its queue, unless the key is blocked by now:
	// then it is read again from the disk.
	if q.blocked(now) {
		for _, e := range v.rest {
			d.ledger.putBack(e.Seq)
			q.skipped.add(e.Seq)
		}
		for _, e := range v.doubted {
			d.ledger.putBack(e.Seq)
			q.doubted.add(e.Seq)
		}
		if len(v.doubted) > 0 {
			q.passDoubted()
		}
		return
	}
	// They are smaller batches next time.
	q.events = append(v.rest, q.events...)
	d.inMemory += bytesOf(v.rest)
}

// postponeLater puts back the events that must be sent again one by one. Others of their
// key continue.
func (d *dispatch) postponeLater(now time.Time, q *keyQueue, v *delivery) {
	// They leave the memory, because it may take long, and are found again
	// by their range.
	for _, e := range v.later {
		d.ledger.putBack(e.Seq)
		q.later.add(e.Seq)
		q.latest = max(q.latest, e.Seq)
	}
	// Once: it may take until the server is upgraded.
	if q.laters == 0 {
		who := "The server cannot take some events yet."
		if v.large {
			who = "A proxy in front of the server finds events too large."
		}
		d.logger.Warn(who+" They wait, and are sent again; other events are not affected.",
			"key", q.key, "events", len(v.later), "reason", v.why)
	}
	q.later.dueAt = now.Add(max(retryDelayMin, backoffTo(laterDelayMax, q.laters)))
	q.laters++
	q.why = v.why

	if !v.large || len(v.settled) > 0 {
		q.large = 0
		return
	}

	// If not even single events pass, the key waits: trying one event after the other
	// would read the whole backlog for nothing.
	q.large++
	if q.large > rowMax {
		d.block(q, now.Add(backoff(q.large)))
	}
}

// backOff leaves a key alone, longer every time in a row.
func (d *dispatch) backOff(now time.Time, q *keyQueue, atLeast time.Duration) {
	d.block(q, now.Add(max(atLeast, retryDelayMin, backoff(q.failures))))
	q.failures++
}

// block leaves a key alone until a time.
func (d *dispatch) block(q *keyQueue, until time.Time) {
	q.until = until
	d.drop(q)
}

// drop lets go of a blocked key's events in memory. Otherwise the memory would fill with
// them, and other keys' events would not come in.
func (d *dispatch) drop(q *keyQueue) {
	for _, e := range q.events {
		d.inMemory -= len(e.Data)
		d.ledger.putBack(e.Seq)
		q.skipped.add(e.Seq)
	}
	q.events = nil
}

// publish sets the metric that people are alerted by, and why events wait.
func (d *dispatch) publish(now time.Time) {
	paused, why, oldest := 0.0, "", uint32(math.MaxUint32)
	for _, q := range d.queues {
		if q.paused {
			paused = 1
		}
		if waits := q.whyWaiting(now, d.ledger.frontier); waits != "" && q.key <= oldest {
			why, oldest = waits, q.key
		}
	}
	d.metrics.ForwardPaused.Set(paused)

	d.reach.mu.Lock()
	d.reach.ofKey = why
	d.reach.mu.Unlock()
}
