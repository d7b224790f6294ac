package proxy

import (
	"cmp"
	"context"
	"io"
	"log/slog"
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
