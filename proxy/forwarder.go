package proxy

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool"
)

const (
	inFlightMax    = 4                // batches on their way at once
	attemptTimeout = 2 * time.Minute  // of one attempt to send a batch
	suspectMax     = 5                // single events refused in a row before the contract itself is suspected
	pauseDelay     = 30 * time.Second // between attempts while it is
)

// Upstream is the server that takes batches: events as newline-delimited JSON, compressed with zstd. The error is a *wire.Error, with
// a *wire.Away in its chain when it was not the server that answered. Called from several goroutines at once; it keeps nothing of
// the batch.
type Upstream interface {
	Send(ctx context.Context, key wire.Secret, events int, batch []byte) (wire.BatchAnswer, error)
}

// Forwarder brings the spool's events to the server: in batches of one key, several in flight, again and again until the server has
// judged each event. It acknowledges to the spool only what the server has, or what a lane holds.
type Forwarder struct {
	spool    *spool.Spool
	keys     *Keyring
	upstream Upstream
	metrics  *metrics.Metrics
	logger   *slog.Logger

	encoder *zstd.Encoder
	circuit *circuit
	away    atomic.Bool  // the last attempt found no server
	suspect atomic.Int32 // single events refused in a row
}

// NewForwarder makes a Forwarder; Run starts it.
func NewForwarder(s *spool.Spool, keys *Keyring, u Upstream, m *metrics.Metrics, logger *slog.Logger) *Forwarder {
	return &Forwarder{spool: s, keys: keys, upstream: u, metrics: m, logger: logger, encoder: newEncoder(), circuit: newCircuit()}
}

// Run forwards until ctx ends, and returns nil then. What is under way is abandoned: it is still in the spool, and the server knows
// an event that it gets twice. Any other return is a fault of the spool. Call it once.
func (f *Forwarder) Run(ctx context.Context) error {
	for from := f.spool.Frontier(); ; {
		// A window of the spool is delivered as a whole before the next is read: memory is bounded by it.
		window, err := f.spool.Read(ctx, from, wire.BatchEventsMax, wire.BatchBytesMax)
		batches := byKey(window)
		if err == nil {
			err = f.deliver(ctx, batches)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		spool.CrashPoint(spool.CrashBetweenSendAndAck)
		from = window[len(window)-1].Seq + 1
		if err := f.spool.Ack(from - 1); err != nil {
			return err
		}
		for number := range batches {
			f.keys.acked(number)
		}
	}
}

// deliver returns when every event of the batches is at the server or in a lane, or ctx has ended.
func (f *Forwarder) deliver(ctx context.Context, batches map[uint32][]spool.Entry) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inFlightMax)
	for number, batch := range batches {
		group.Go(func() error {
			secret, ok := f.keys.secret(number)
			if !ok {
				f.logger.Error("the key of these events is lost; they are held", "key", number, "events", len(batch))
				return f.hold(ctx, "the sidecar's file of this key is lost or damaged", batch)
			}
			return f.deliverBatch(ctx, secret, batch)
		})
	}
	return group.Wait()
}

// deliverBatch sends a batch until the server has judged every event of it.
func (f *Forwarder) deliverBatch(ctx context.Context, secret wire.Secret, batch []spool.Entry) error {
	for attempts := 0; len(batch) > 0; attempts++ {
		var err error
		switch v := f.send(ctx, secret, batch).(type) {
		case taken:
			f.understood()
			f.metrics.ForwardSent.Add(float64(len(batch) - len(v.invalid) - len(v.later)))
			if err := f.bury(ctx, v.invalid...); err != nil {
				return err
			}
			if batch = v.later; len(batch) > 0 {
				f.metrics.ForwardRetries.WithLabelValues("later").Inc()
				err = sleep(ctx, max(retryDelayMin, backoff(attempts)), nil)
			}
		case keyRefusal:
			f.understood()
			f.keys.refused(batch[0].Key)
			return f.hold(ctx, v.reason, batch)
		case contentRefusal:
			if len(batch) > 1 {
				return f.halve(ctx, secret, batch)
			}
			if f.suspect.Add(1) <= suspectMax {
				return f.bury(ctx, invalidEvent{batch[0], v.reason})
			}
			err = f.pause(ctx, v.reason)
		case misfit:
			f.metrics.ForwardRetries.WithLabelValues("status").Inc()
			err = f.pause(ctx, v.reason)
		case retry:
			f.metrics.ForwardRetries.WithLabelValues(v.reason).Inc()
			if v.halve && len(batch) > 1 {
				return f.halve(ctx, secret, batch)
			}
		case ended:
			return v.err
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// halve delivers the two halves of a batch one after the other, to find the event at fault or to get below a size.
func (f *Forwarder) halve(ctx context.Context, secret wire.Secret, batch []spool.Entry) error {
	half := len(batch) / 2
	if err := f.deliverBatch(ctx, secret, batch[:half]); err != nil {
		return err
	}
	return f.deliverBatch(ctx, secret, batch[half:])
}

// bury moves events to the dead letters.
func (f *Forwarder) bury(ctx context.Context, events ...invalidEvent) error {
	for _, e := range events {
		f.logger.Error("the server refuses an event for its content; it goes to the dead letters", "sequence", e.entry.Seq, "reason", e.reason)
		if err := f.setAside(ctx, func() error { return f.spool.Bury(e.reason, e.entry) }); err != nil {
			return err
		}
	}
	return nil
}

// hold moves a batch to the held lane.
func (f *Forwarder) hold(ctx context.Context, reason string, batch []spool.Entry) error {
	return f.setAside(ctx, func() error { return f.spool.Hold(batch[0].Key, reason, batch) })
}

// setAside moves events to a lane. As long as there is no room they stay in the spool.
func (f *Forwarder) setAside(ctx context.Context, move func() error) error {
	for {
		err := move()
		if err == nil || errors.Is(err, spool.ErrClosed) || errors.Is(err, spool.ErrFailed) {
			return err
		}
		f.metrics.ForwardPaused.Set(1)
		f.logger.Error("events that the server refuses cannot be set aside, so they stay in the spool and forwarding pauses. Free space on its disk, or raise --spool-bytes-max", "error", err)
		if err := sleep(ctx, pauseDelay, nil); err != nil {
			return err
		}
	}
}

// pause waits when sidecar and server do not understand each other: to bury one event after another could empty the spool into the
// dead letters for a fault that is not theirs.
func (f *Forwarder) pause(ctx context.Context, reason string) error {
	f.metrics.ForwardPaused.Set(1)
	f.logger.Error("sidecar and server do not understand each other. Forwarding pauses; nothing is lost. Check that --upstream is a server and that both run versions that fit", "reason", reason)
	return sleep(ctx, pauseDelay, nil)
}

// understood notes an answer that makes sense.
func (f *Forwarder) understood() {
	f.suspect.Store(0)
	f.metrics.ForwardPaused.Set(0)
}

// send makes one attempt, when the circuit lets it.
func (f *Forwarder) send(ctx context.Context, secret wire.Secret, batch []spool.Entry) verdict {
	pass, err := f.circuit.admit(ctx)
	if err != nil {
		return ended{err}
	}
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	answer, err := f.upstream.Send(attempt, secret, len(batch), compress(f.encoder, batch))
	if err != nil && ctx.Err() != nil {
		pass.abandoned()
		return ended{ctx.Err()}
	}
	v := judge(batch, answer, err)
	r, again := v.(retry)
	switch {
	case !again:
		pass.answered()
	case r.halve && len(batch) > 1:
		pass.abandoned() // the halves are new calls, not a second try
	default:
		pass.failed(r.after)
	}
	f.noteAway(r.reason == "network" || r.reason == "foreign", err)
	return v
}

// noteAway tells people when the server goes away and when it is back.
func (f *Forwarder) noteAway(away bool, err error) {
	if away {
		f.metrics.UpstreamUp.Set(0)
	} else {
		f.metrics.UpstreamUp.Set(1)
	}
	if was := f.away.Swap(away); was == away {
		return
	}
	if away {
		f.logger.Warn("the server cannot be reached; events wait in the spool and are tried again", "error", err)
	} else {
		f.logger.Info("the server answers again")
	}
}
