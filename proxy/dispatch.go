package proxy

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"promptspool/spool"
)

// dispatch is one running of a Forwarder: what waits, and what is on its way. One goroutine owns all of it but spool, reach
// and sender; the readings and deliveries of others come to it by channels.
type dispatch struct {
	spool      *spool.Spool
	reach      *reach
	sender     *sender
	asideBytes int64 // as the Forwarder's

	ledger      *ledger
	queues      map[uint32]*queue
	settledKeys map[uint32]bool // of which events may be in the spool that are to be acknowledged
	inMemory    int             // bytes of events that are queued or on their way
	inFlight    int             // batches
	asideAt     time.Time       // not before, events are set aside

	workers    sync.WaitGroup
	readings   chan reading
	deliveries chan *delivery
	ahead      bool      // a reading at the tail is under way
	aheadAt    time.Time // not before, the next one begins
	again      bool      // one of what was skipped is
}

func newDispatch(f *Forwarder) *dispatch {
	return &dispatch{
		spool: f.spool, reach: f.reach, sender: f.sender, asideBytes: f.asideBytes,
		ledger: newLedger(f.spool.Frontier()), queues: map[uint32]*queue{}, settledKeys: map[uint32]bool{},
		readings: make(chan reading, 2), deliveries: make(chan *delivery, inFlightMax+1),
	}
}

func (d *dispatch) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
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

// sooner is the earlier of two moments, of which zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (d *dispatch) queue(key uint32) *queue {
	q := d.queues[key]
	if q == nil {
		q = &queue{key: key}
		d.queues[key] = q
	}
	return q
}

// send starts what batches may go out now, the one with the oldest event first, and tells when to look again.
func (d *dispatch) send(ctx context.Context, now time.Time) (wake time.Time) {
	for d.inFlight < inFlightMax {
		var next *queue
		wake = time.Time{}
		for key, q := range d.queues {
			ready, at := q.ready(now, d.sender.bound)
			wake = sooner(wake, at)
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
		d.start(ctx, next, next.cut(now, d.sender.bound))
	}
	return time.Time{}
}

// start sends a parcel on its way.
func (d *dispatch) start(ctx context.Context, q *queue, p *parcel) {
	q.inFlight++
	d.inFlight++
	d.sender.metrics.ForwardInFlight.Set(float64(d.inFlight))
	delivery := &delivery{sender: d.sender, parcel: p}
	d.workers.Go(func() {
		delivery.run(ctx)
		d.deliveries <- delivery // there is room for all in flight, and for what is set aside
	})
}

// settle takes in what became of a parcel, and acknowledges what the frontier has passed.
func (d *dispatch) settle(now time.Time, v *delivery) error {
	q := d.queue(v.parcel.key)
	q.inFlight--
	d.inFlight--
	d.sender.metrics.ForwardInFlight.Set(float64(d.inFlight))
	d.inMemory -= v.parcel.bytes
	if v.err != nil {
		return v.err
	}
	for _, e := range v.settled {
		d.ledger.settle(e.Seq, len(e.Data))
	}
	d.postpone(now, q, v)
	if v.parcel.bytes > compressBytesMax {
		*v = delivery{parcel: &parcel{}}
		debug.FreeOSMemory() // before the next one is read: the collector would start too late for it
	}
	d.tellPauses()
	d.settledKeys[q.key] = true
	return d.acknowledge()
}

// acknowledge tells the spool when the frontier has moved, and the ring which keys may not be needed any more.
func (d *dispatch) acknowledge() error {
	if !d.ledger.advance() {
		return nil
	}
	spool.CrashPoint(spool.CrashBetweenSendAndAck)
	if err := d.spool.Ack(d.ledger.frontier - 1); err != nil {
		return err
	}
	for key := range d.settledKeys {
		d.sender.keys.acked(key)
		if events, _ := d.spool.KeyUsage(key); events == 0 {
			delete(d.settledKeys, key)
		}
	}
	return nil
}

// postpone puts aside, or back, what of a parcel is not settled.
func (d *dispatch) postpone(now time.Time, q *queue, v *delivery) {
	if len(v.settled) > 0 && v.wait == 0 && !v.backoff {
		q.failures, q.paused, q.alone, q.large = 0, false, false, 0
	}
	if v.backoff || v.wait > 0 {
		wait := v.wait
		if v.backoff {
			wait = max(wait, retryDelayMin, backoff(q.failures))
			q.failures++
		}
		q.until = now.Add(wait)
		q.paused, q.alone, q.why = v.paused, v.alone, v.why
		if v.parcel.aside != "" {
			d.asideAt = q.until
		}
		d.forget(q)
	}
	if len(v.later) > 0 {
		d.postponeLater(now, q, v)
	} else if !q.later.any {
		q.laters = 0
	}
	if q.blocked(now) {
		for _, e := range v.rest {
			d.ledger.putBack(e.Seq)
			q.skipped.add(e.Seq)
		}
		return
	}
	q.events = append(v.rest, q.events...) // they are smaller batches next time
	d.inMemory += bytesOf(v.rest)
}

// postponeLater puts back the events that are to be sent again by themselves: others of their key go on.
func (d *dispatch) postponeLater(now time.Time, q *queue, v *delivery) {
	for _, e := range v.later {
		d.ledger.putBack(e.Seq)
		q.later.add(e.Seq)
	}
	wait := max(retryDelayMin, backoffTo(laterDelayMax, q.laters))
	q.laters++
	q.why = v.why
	q.later.dueAt = now.Add(wait)
	if !v.large || len(v.settled) > 0 {
		q.large = 0
	} else if q.large++; q.large > rowMax { // nothing passes: not one event after the other
		q.until = now.Add(backoff(q.large))
		d.forget(q)
	}
}

// forget lets go of a blocked key's events in memory: it would be full of them, and nobody else's would come in.
func (d *dispatch) forget(q *queue) {
	for _, e := range q.events {
		d.inMemory -= len(e.Data)
		d.ledger.putBack(e.Seq)
		q.skipped.add(e.Seq)
	}
	q.events = nil
}

// tellPauses sets the metric that people are alarmed by.
func (d *dispatch) tellPauses() {
	for _, q := range d.queues {
		if q.paused {
			d.sender.metrics.ForwardPaused.Set(1)
			return
		}
	}
	d.sender.metrics.ForwardPaused.Set(0)
}
