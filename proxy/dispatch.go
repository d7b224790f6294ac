package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"promptspool/api/wire"
	"promptspool/spool/crashpoint"
	"promptspool/spool/queue"
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

// batch is what goes out together: events of one key, in order.
type batch struct {
	key        uint32
	events     []queue.Entry
	bytes      int
	holdReason string // why these go to the held lane unsent; "" to send them
	alone      bool   // the last attempt for this key failed while others were answered, see delivery.send
}

func (b *batch) add(e queue.Entry) {
	b.events = append(b.events, e)
	b.bytes += len(e.Data)
}

// part is a batch of some of the events.
func (b *batch) part(events []queue.Entry) *batch {
	return &batch{key: b.key, events: events, bytes: bytesOf(events), alone: b.alone}
}

func bytesOf(events []queue.Entry) (bytes int) {
	for _, e := range events {
		bytes += len(e.Data)
	}
	return bytes
}

// encoders are as many as may compress at the same time. That is half of the processors:
// while a backlog is drained, the app's writes need some as well.
type encoders chan *zstd.Encoder

func newEncoders() encoders {
	n := max(1, min(runtime.GOMAXPROCS(0)/2, inFlightMax))
	free := make(encoders, n)
	for range n {
		free <- newEncoder()
	}
	return free
}

// compress returns the lines of a batch as they travel, at the pace of p. The result
// is the caller's.
func (free encoders) compress(b *batch, p *pacer) []byte {
	encoder := <-free
	defer func() { free <- encoder }()

	// A third is what remains of text, so that the buffer mostly grows no more.
	out := bytes.NewBuffer(make([]byte, 0, b.bytes/3+1<<10))
	encoder.Reset(out)
	begun := time.Now()
	for _, e := range b.events {
		// A buffer takes everything.
		_, _ = encoder.Write(e.Data)
		begun = p.rest(begun)
	}
	_ = encoder.Close()

	return out.Bytes()
}

// compressBytesMax is the size of a batch above which it is compressed while it is
// sent, so that a large event is in memory once. Then nothing is compressed while the
// server is away.
const compressBytesMax = wire.BatchBytesMax

// batchReader gives a batch compressed, bit by bit. It has one owner.
type batchReader struct {
	encoder *zstd.Encoder
	packed  bytes.Buffer  // what is compressed and was not read
	rest    []queue.Entry // the first one as far as it is not compressed
	ended   bool
}

func newBatchReader(b *batch) *batchReader {
	r := &batchReader{encoder: newEncoder(), rest: slices.Clone(b.events)}
	r.encoder.Reset(&r.packed)
	return r
}

// packingStep is how much is compressed in one go.
const packingStep = 256 << 10

// Read compresses more events when what is compressed was read.
func (r *batchReader) Read(p []byte) (int, error) {
	for r.packed.Len() == 0 && !r.ended {
		if len(r.rest) == 0 {
			r.ended = true
			// A buffer takes everything.
			_ = r.encoder.Close()
			break
		}

		// A step at a time: a large event compressed as a whole would be in memory twice.
		n := min(len(r.rest[0].Data), packingStep)
		_, _ = r.encoder.Write(r.rest[0].Data[:n])
		r.rest[0].Data = r.rest[0].Data[n:]
		if len(r.rest[0].Data) == 0 {
			r.rest = r.rest[1:]
		}
	}

	return r.packed.Read(p)
}

// newEncoder makes an encoder that starts no goroutine and need not be closed. The server
// bounds its window at 1 MiB. Of English text in events of 4 KB there remain, at the
// levels fastest, default and better, 0.32, 0.30 and 0.28, at 210, 150 and 120 MB/s.
func newEncoder() *zstd.Encoder {
	encoder, err := zstd.NewWriter(nil,
		zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(1<<20),
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithLowerEncoderMem(true),
	)
	if err != nil {
		// The options are constants.
		panic("proxy: zstd options: " + err.Error())
	}

	return encoder
}

// eventID reads the id of a spooled event; "" if there is none, which no server can name.
func eventID(e queue.Entry) string {
	var event struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(e.Data, &event) != nil {
		return ""
	}
	return event.ID
}

const (
	batchBytesMax = 1 << 20 // of a batch before compression; one larger event travels alone
	boundGrowth   = 64      // a batch that passes lets the bound grow by one part in so many
)

// bound is how large a batch may be. A proxy in front of the server that refuses a size
// halves it. Every batch of about that size that passes lets it grow a little. So a
// limit that was lifted is found out, and one that stays costs a batch in some sixty.
// Safe for concurrent use.
type bound struct{ bytes atomic.Int64 }

func newBound() *bound {
	b := new(bound)
	b.bytes.Store(batchBytesMax)
	return b
}

func (b *bound) get() int { return int(b.bytes.Load()) }

// refused notes that a batch of so many bytes was too large.
func (b *bound) refused(bytes int) {
	b.bytes.Store(max(1, min(b.bytes.Load(), int64(bytes)/2)))
}

// passed notes that a batch of so many bytes was not too large.
func (b *bound) passed(bytes int) {
	now := b.bytes.Load()
	if now < batchBytesMax && int64(bytes) > now/2 {
		b.bytes.Store(min(batchBytesMax, now+max(1, now/boundGrowth)))
	}
}

// fits reports whether one more event may join a batch of so many events and bytes.
func (b *bound) fits(events, bytes, more int) bool {
	return events == 0 || events < wire.BatchEventsMax && bytes+more <= b.get()
}
