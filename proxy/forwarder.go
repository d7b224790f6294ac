package proxy

import (
	"context"
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
	inFlightMax  = 4                // batches on their way at once
	suspectMax   = 5                // single events refused in a row before the contract itself is suspected
	suspectDelay = 30 * time.Second // between attempts while it is
)

// Upstream is the server that takes batches: events as newline-delimited JSON, compressed with zstd. The error is a *wire.Error, with
// a *wire.Away in its chain when it was not the server that answered.
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
	suspect atomic.Int32 // single events refused in a row
}

// NewForwarder makes a Forwarder; Run starts it.
func NewForwarder(s *spool.Spool, keys *Keyring, u Upstream, m *metrics.Metrics, logger *slog.Logger) *Forwarder {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic("proxy: zstd options: " + err.Error()) // the options are constants
	}
	return &Forwarder{spool: s, keys: keys, upstream: u, metrics: m, logger: logger, encoder: encoder, circuit: newCircuit()}
}

// Run forwards until ctx ends, and returns nil then. What is under way is abandoned: it is still in the spool, and the server knows
// an event that it gets twice. Any other return is a fault of the spool.
func (f *Forwarder) Run(ctx context.Context) error {
	for from := f.spool.Frontier(); ; {
		// A window of the spool is delivered as a whole before the next is read: memory is bounded by it.
		window, err := f.spool.Read(ctx, from, wire.BatchEventsMax, wire.BatchBytesMax)
		if err == nil {
			err = f.deliver(ctx, window)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		from = window[len(window)-1].Seq + 1
		if err := f.spool.Ack(from - 1); err != nil {
			return err
		}
	}
}

// deliver returns when every event of the window is at the server or in a lane, or ctx has ended.
func (f *Forwarder) deliver(ctx context.Context, window []spool.Entry) error {
	batches := map[uint32][]spool.Entry{}
	for _, e := range window {
		batches[e.Key] = append(batches[e.Key], e)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inFlightMax)
	for number, batch := range batches {
		group.Go(func() error {
			secret, ok := f.keys.secret(number)
			if !ok {
				f.logger.Error("the key of these events is lost; they are held", "key", number, "events", len(batch))
				return f.spool.Hold(number, "the sidecar's file of this key is lost or damaged", batch)
			}
			return f.deliverBatch(ctx, secret, batch)
		})
	}
	return group.Wait()
}

// deliverBatch sends a batch until the server has judged every event of it.
func (f *Forwarder) deliverBatch(ctx context.Context, secret wire.Secret, batch []spool.Entry) error {
	for failures := 0; len(batch) > 0; failures++ {
		switch v := f.send(ctx, secret, batch).(type) {
		case taken:
			f.suspect.Store(0)
			f.metrics.ForwardPaused.Set(0)
			f.metrics.ForwardSent.Add(float64(len(batch) - len(v.refused)))
			var err error
			if batch, err = f.settle(batch, v.refused); err != nil {
				return err
			}
			if len(batch) == 0 {
				return nil
			}
			f.metrics.ForwardRetries.WithLabelValues("later").Inc()
			if err := sleep(ctx, max(retryDelayMin, backoff(failures)), nil); err != nil {
				return err
			}
		case keyRefusal:
			f.keys.refuseNumber(batch[0].Key)
			return f.spool.Hold(batch[0].Key, v.reason, batch)
		case contentRefusal:
			if len(batch) > 1 {
				return f.halve(ctx, secret, batch)
			}
			if f.suspect.Add(1) <= suspectMax {
				f.logger.Error("the server refuses an event for its content; it goes to the dead letters", "sequence", batch[0].Seq, "reason", v.reason)
				return f.spool.Bury(v.reason, batch[0])
			}
			f.metrics.ForwardPaused.Set(1)
			f.logger.Error("the server refuses one event after another: sidecar and server do not understand each other. Forwarding pauses; nothing is lost. Check that both run versions that fit", "reason", v.reason)
			if err := sleep(ctx, suspectDelay, nil); err != nil {
				return err
			}
		case ended:
			return v.err
		case retry:
			f.metrics.ForwardRetries.WithLabelValues(v.reason).Inc()
			if v.halve && len(batch) > 1 {
				return f.halve(ctx, secret, batch)
			}
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

// send makes one attempt, when the circuit lets it.
func (f *Forwarder) send(ctx context.Context, secret wire.Secret, batch []spool.Entry) verdict {
	if err := f.circuit.admit(ctx); err != nil {
		return ended{err}
	}
	size := 0
	for _, e := range batch {
		size += len(e.Data)
	}
	plain := make([]byte, 0, size)
	for _, e := range batch {
		plain = append(plain, e.Data...)
	}
	answer, err := f.upstream.Send(ctx, secret, len(batch), f.encoder.EncodeAll(plain, nil))
	if err != nil && ctx.Err() != nil {
		f.circuit.report(true, 0) // says nothing about the server
		return ended{ctx.Err()}
	}
	v := judge(answer, err)
	r, failed := v.(retry)
	f.circuit.report(!failed, r.after)
	up := 1.0
	if failed {
		up = 0
		f.logger.Debug("a batch was not delivered", "events", len(batch), "error", err)
	}
	f.metrics.UpstreamUp.Set(up)
	return v
}

// settle buries the events that the server called invalid, and returns those to be sent again.
func (f *Forwarder) settle(batch []spool.Entry, refused []wire.Result) (again []spool.Entry, err error) {
	if len(refused) == 0 {
		return nil, nil
	}
	verdicts := make(map[string]wire.Result, len(refused))
	for _, r := range refused {
		verdicts[r.ID] = r
	}
	for _, e := range batch {
		event, err := wire.ParseEvent(e.Data)
		if err != nil {
			return nil, err
		}
		r, named := verdicts[event.ID]
		switch {
		case !named:
		case r.Code == wire.ResultInvalid:
			f.logger.Error("the server refuses an event for its content; it goes to the dead letters", "sequence", e.Seq, "reason", r.Reason)
			if err := f.spool.Bury(r.Reason, e); err != nil {
				return nil, err
			}
		default:
			again = append(again, e)
		}
	}
	return again, nil
}
