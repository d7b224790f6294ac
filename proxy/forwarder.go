package proxy

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/queue"
)

const (
	inFlightMax    = 4                // batches on their way at the same time
	attemptTimeout = 2 * time.Minute  // of one attempt to send a batch
	pauseDelay     = 30 * time.Second // between attempts for a key that a person has to look at

	readBytesMax   = 1 << 20  // of one reading of the spool
	memoryBytesMax = 8 << 20  // of events in memory, those on their way included
	spanEventsMax  = 4 << 20  // how far reading goes ahead of the frontier; its ledger is 1 MiB then
	pinnedBytesMax = 64 << 20 // or an eighth of the spool, if that is less; see pinnedBytes
	pinnedPart     = 8
)

// Upstream is the server that takes batches: events as newline-delimited JSON, compressed
// with zstd. An error is a *wire.Error, with a *wire.Away in its chain when it was not
// the server that answered. Upstream is called from several goroutines at the same time,
// and keeps nothing of the batch.
type Upstream interface {
	Send(ctx context.Context, key wire.Secret, events int, batch []byte) (wire.BatchAnswer, error)

	// SendStream sends a batch that is not held as a whole: each call of open returns a
	// reader from its beginning.
	SendStream(
		ctx context.Context, key wire.Secret, events int, open func() io.Reader,
	) (wire.BatchAnswer, error)
}

// Forwarder brings the spool's events to the server. It sends batches of one key, several
// at the same time, again and again until the server has judged each event. It
// acknowledges to the spool only what the server has, or what a lane holds.
//
// Three parts own its state: reach knows whether the server is there, sender what all
// deliveries share, and dispatch what waits and what is on its way.
type Forwarder struct {
	*sender

	// pinnedBytes may be delivered and not acknowledged, because one key waits, before the
	// key's events are held.
	pinnedBytes int64
}

// NewForwarder makes a Forwarder; Run starts it.
func NewForwarder(
	s *queue.Queue, keys *Keyring, u Upstream, m *metrics.Metrics, logger *slog.Logger,
) *Forwarder {
	m.ForwardInFlightMax.Set(inFlightMax)
	reach := &reach{metrics: m, logger: logger, turned: make(chan struct{}, 1)}
	sender := &sender{
		spool:    s,
		keys:     keys,
		upstream: u,
		metrics:  m,
		logger:   logger,
		reach:    reach,
		encoders: newEncoders(),
		circuit:  newCircuit(),
		bound:    newBound(),
		guard:    newRejectionGuard(),
		pacer:    newPacer(s.Next),
	}

	return &Forwarder{sender, min(pinnedBytesMax, s.Status().BytesMax/pinnedPart)}
}

// Run forwards until ctx ends, and returns nil then. Batches on their way are abandoned:
// they are still in the spool, and the server recognises an event that it gets twice. Any
// other return is a fault of the spool. Call it once.
func (f *Forwarder) Run(ctx context.Context) error {
	working, stop := context.WithCancel(ctx)
	d := newDispatch(f)
	err := d.run(working)

	// A fault of the spool must end the deliveries too.
	stop()
	d.workers.Wait()
	if ctx.Err() != nil {
		return nil
	}

	return err
}

// Away reports whether the last attempt to deliver found no server. It is false
// before the first.
func (f *Forwarder) Away() bool { return f.reach.away.Load() }

// Waits returns why events wait: for the server, or for what concerns their key or them alone. It is ""
// if none does.
func (f *Forwarder) Waits() string {
	r := f.reach
	r.mu.Lock()
	defer r.mu.Unlock()

	return cmp.Or(r.server, r.ofKey)
}

// reach is what deliveries have found out about the server as a whole. Safe
// for concurrent use.
type reach struct {
	metrics *metrics.Metrics
	logger  *slog.Logger
	away    atomic.Bool   // the last attempt found no server
	turned  chan struct{} // gets an element when away has changed

	mu     sync.Mutex
	newest time.Time // when the newest delivered event was accepted; under mu
	server string    // why all events wait for the server, or ""; under mu
	ofKey  string    // why those of the oldest key with any wait, or ""; under mu
}

// delivered notes that the server has an event that was accepted at this time.
func (r *reach) delivered(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Deliveries end in any order, and the metric must not go back.
	if at.After(r.newest) {
		r.newest = at
		r.metrics.ForwardDelivered.Set(float64(at.UnixMilli()) / 1000)
	}
}

// note remembers whether an attempt found the server and, if events wait for it, why. It logs when
// the server goes away and when it is back.
func (r *reach) note(away bool, why string) {
	r.mu.Lock()
	r.server = why
	r.mu.Unlock()

	up := 1.0
	if away {
		up = 0
	}
	r.metrics.UpstreamUp.Set(up)
	if was := r.away.Swap(away); was == away {
		return
	}

	// Once for each change, however many deliveries find it out.
	select {
	case r.turned <- struct{}{}:
	default: // the dispatch has yet to see the change before
	}
	if away {
		r.logger.Warn("The server cannot be reached. Events wait in the spool and are sent again.",
			"error", why)
	} else {
		r.logger.Info("The server answers again.")
	}
}

// reading is the result of one reading of the spool.
type reading struct {
	from   uint64
	events []queue.Entry
	end    uint64 // where the next one begins; what is missing before it was lost
	err    error
	again  bool // it is of what was skipped, not at the tail
	hold   bool // what it finds at the frontier goes to the held lane
}

// read starts the next reading, if there is memory for it: at the tail, or of what was
// skipped and is due. It returns when to look again.
//
// There is one reading at a time, because each may find an event of the largest size. If
// both have something to read, they take turns.
func (d *dispatch) read(ctx context.Context, now time.Time) (wake time.Time) {
	// While the server is away, the batches on their way find out when it is back. All
	// other events need not be in memory meanwhile.
	if d.reach.away.Load() && d.inFlight > 0 {
		for _, q := range d.queues {
			d.drop(q)
		}
		return wake
	}
	if memoryBytesMax-d.inMemory < readBytesMax {
		// A delivery that ends makes space, and wakes us.
		return wake
	}

	first, second := d.readTail, d.readAgain
	if d.tailWas {
		first, second = second, first
	}
	wake = first(ctx, now)

	return sooner(wake, second(ctx, now))
}

// readTail starts a reading at the tail, or waits for something to read there. It returns
// when to look again.
func (d *dispatch) readTail(ctx context.Context, now time.Time) (wake time.Time) {
	// The ledger bounds how far the tail may be ahead of the frontier.
	if d.reading || d.ledger.span() >= spanEventsMax {
		return wake
	}

	tail := d.ledger.tail
	if tail >= d.spool.Next() {
		if !d.waiting {
			d.waiting = true
			d.workers.Go(func() { d.arrivals <- d.spool.Wait(ctx, tail) })
		}
		return wake
	}
	if now.Before(d.readTailAt) {
		return d.readTailAt
	}
	d.fetch(ctx, reading{from: tail})

	return wake
}

// readAgain starts a reading of what was skipped: of the events that pin the frontier, if
// they must be held, or else of the lowest range that is due. It returns when to look
// again.
func (d *dispatch) readAgain(ctx context.Context, now time.Time) (wake time.Time) {
	if d.reading {
		return wake
	}

	// An event at the frontier that is in memory or on its way moves the
	// frontier by itself.
	pinned := d.ledger.pinned() > d.pinnedBytes && !now.Before(d.holdAfter)
	if pinned && !d.ledger.isTaken(d.ledger.frontier) {
		d.fetch(ctx, reading{from: d.ledger.frontier, again: true, hold: true})
		return wake
	}

	// The lowest range first: its events are the ones that the frontier meets next.
	var next *seqRange
	for _, q := range d.queues {
		due, at := q.due(now)
		wake = sooner(wake, at)
		for _, s := range due {
			if next == nil || s.low < next.low {
				next = s
			}
		}
	}
	if next != nil {
		d.fetch(ctx, reading{from: max(next.low, d.ledger.frontier), again: true})
	}

	return wake
}

func (d *dispatch) fetch(ctx context.Context, r reading) {
	d.reading, d.tailWas = true, !r.again
	d.workers.Go(func() {
		r.events, r.end, r.err = d.readPieces(ctx, r.from)
		d.readings <- r
	})
}

// readPieces reads the spool once, in pieces while the app writes. end is as of Read: a
// reading waits for nothing, because no other one begins meanwhile.
func (d *dispatch) readPieces(ctx context.Context, from uint64) (events []queue.Entry, end uint64, err error) {
	// While the app is quiet, one large reading costs least.
	if !d.pacer.writing() {
		return d.spool.Read(ctx, from, wire.BatchEventsMax, readBytesMax)
	}

	begun := time.Now()
	events, end, err = d.spool.Read(ctx, from, wire.BatchEventsMax, pieceBytes)
	bytes := bytesOf(events)
	for len(events) > 0 && err == nil {
		if len(events) >= wire.BatchEventsMax || bytes > readBytesMax-pieceBytes || end >= d.spool.Next() {
			break
		}
		begun = d.pacer.rest(begun)

		// Events read already must not wait for those that follow, if these are lost or
		// cannot be read: the next reading meets them.
		piece, _, notNow := d.spool.Read(ctx, end, wire.BatchEventsMax-len(events), pieceBytes)
		if notNow != nil || len(piece) == 0 {
			break
		}
		events, bytes, end = append(events, piece...), bytes+bytesOf(piece), piece[len(piece)-1].Seq+1
	}

	return events, end, err
}

// receive takes in what was read.
func (d *dispatch) receive(ctx context.Context, now time.Time, r reading) error {
	d.reading = false
	// If there is no more now, what comes in a moment goes together.
	if !r.again && len(r.events) < wire.BatchEventsMax/4 && bytesOf(r.events) < readBytesMax/4 {
		d.readTailAt = now.Add(linger)
	}
	if r.err != nil {
		return r.err
	}

	// A second reading stops at the tail: the reading there takes in what is new.
	if r.again {
		r.end = min(r.end, d.ledger.tail)
		r.events = slices.DeleteFunc(r.events, func(e queue.Entry) bool { return e.Seq >= r.end })
	}

	// The spool leaves out what a damaged disk lost. That cannot be sent, so it is
	// settled: otherwise the frontier would stop in front of it.
	at := r.from
	for _, e := range r.events {
		d.ledger.settleMissing(at, e.Seq)
		at = e.Seq + 1
	}
	d.ledger.settleMissing(at, r.end)
	d.ledger.tail = max(d.ledger.tail, r.end)

	switch {
	case r.hold:
		d.holdPinned(ctx, r)
	case r.again:
		d.admitAgain(now, r)
	default:
		for _, e := range r.events {
			d.admit(now, d.queue(e.Key), e)
		}
	}

	return d.acknowledge()
}

// admit puts an event into its key's queue, unless it is taken or settled.
func (d *dispatch) admit(now time.Time, q *keyQueue, e queue.Entry) {
	if !d.ledger.take(e.Seq) {
		return
	}

	// A blocked key's events stay on the disk. The range keeps where to find them again.
	if q.blocked(now) {
		d.ledger.putBack(e.Seq)
		q.skipped.add(e.Seq)
		return
	}

	if len(q.events) == 0 {
		q.since = now
	}
	q.events = append(q.events, e)
	d.inMemory += len(e.Data)
}

// admitAgain admits events that were skipped, of the keys that are due.
func (d *dispatch) admitAgain(now time.Time, r reading) {
	due := map[uint32][]*seqRange{}
	for key, q := range d.queues {
		due[key], _ = q.due(now)
	}

	for _, e := range r.events {
		if slices.ContainsFunc(due[e.Key], func(s *seqRange) bool { return s.holds(e.Seq) }) {
			d.admit(now, d.queues[e.Key], e)
		}
	}

	// Only now: until here the ranges mark the events that are due.
	for _, ranges := range due {
		for _, s := range ranges {
			s.passed(r.from, r.end, d.ledger.frontier)
		}
	}
}

// holdPinned moves the events of the key that pins the frontier to the held lane, from
// where they go out by themselves later. Only then can events delivered after them be
// removed from the disk.
func (d *dispatch) holdPinned(ctx context.Context, r reading) {
	// The event at the frontier names the key. The key's other events go along, as far as
	// they were read: each that stays would pin the frontier next.
	var b *batch
	for _, e := range r.events {
		if b == nil && e.Seq >= d.ledger.frontier {
			b = &batch{key: e.Key, holdReason: d.holdReason(e.Key)}
		}
		if b != nil && e.Key == b.key && d.ledger.take(e.Seq) {
			b.add(e)
		}
	}
	if b == nil || len(b.events) == 0 {
		return
	}

	d.logger.Warn("Events of one key have waited so long that what was delivered after them "+
		"fills the disk. They are held meanwhile, and are sent again automatically.",
		"key", b.key, "events", len(b.events), "reason", b.holdReason)

	// It does not count among those that inFlightMax lets out: they may all be hanging,
	// which is why we are here.
	d.inMemory += b.bytes
	d.start(ctx, d.queue(b.key), b)
}

func (d *dispatch) holdReason(key uint32) string {
	reason := "not delivered for long"
	if why := d.queue(key).why; why != "" {
		reason += ": " + why
	}

	return reason
}
