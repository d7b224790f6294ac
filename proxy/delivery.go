package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool"
)

// sender is what all deliveries share. Safe for concurrent use.
type sender struct {
	spool    *spool.Spool
	keys     *Keyring
	upstream Upstream
	metrics  *metrics.Metrics
	logger   *slog.Logger
	reach    *reach

	encoders  encoders
	circuit   *circuit
	bound     *bound
	suspicion *suspicion
	manners   *manners
}

// delivery is the way of one parcel, and what became of its events: each is in exactly one of settled, later and rest at the end.
// It has one owner: the goroutine that runs it, then who receives it.
type delivery struct {
	sender *sender
	parcel *parcel

	settled []spool.Entry // at the server, or durable in a lane
	later   []spool.Entry // each to be sent again, by itself
	rest    []spool.Entry // nothing is known of these
	// wait is how long the key is to be left alone, because of what happened, which is told by why. With backoff it is at least
	// that, and longer with every time in a row.
	wait    time.Duration
	backoff bool
	paused  bool // a person has to look
	alone   bool // see parcel.alone
	large   bool // something between finds single events too large
	why     string
	err     error // of the spool, or of the context
}

// run sends the parcel until its events are judged, or wait for something that is theirs or their key's alone. What concerns
// everybody, a server that is away, it waits for here.
func (d *delivery) run(ctx context.Context) {
	if d.parcel.aside != "" {
		d.hold(d.parcel.aside, d.parcel)
		return
	}
	secret, ok := d.sender.keys.secret(d.parcel.key)
	if !ok {
		d.sender.logger.Error("the key of these events is lost; they are held", "key", d.parcel.key, "events", len(d.parcel.events))
		d.hold("the sidecar's file of this key is lost or damaged", d.parcel)
		return
	}
	d.deliver(ctx, secret, d.parcel)
}

// deliver sends one parcel, or its halves when one of its events is at fault. It says whether to go on with the next.
func (d *delivery) deliver(ctx context.Context, secret wire.Secret, p *parcel) (goOn bool) {
	var body []byte
	if p.bytes <= compressBytesMax {
		body = d.sender.encoders.compress(p, d.sender.manners)
	}
	for answers := uint64(0); ; {
		v, asked := d.send(ctx, secret, p, body, answers)
		switch v := v.(type) {
		case taken:
			return d.take(p, v)
		case keyRefusal:
			d.sender.keys.refused(p.key)
			return d.hold(v.reason, p)
		case contentRefusal:
			if len(p.events) > 1 {
				return d.halve(ctx, secret, p)
			}
			return d.bury(p, []invalidEvent{{p.events[0], v.reason}})
		case tooLarge:
			d.sender.bound.refused(p.bytes)
			if len(p.events) == 1 {
				d.later, d.large, d.why = append(d.later, p.events...), true, v.reason
				return true
			}
			return d.leave(p.events, 0, false, v.reason)
		case misfit:
			return d.pause(p.events, v.reason)
		case busy:
			d.alone = v.alone
			return d.leave(p.events, v.after, true, v.reason)
		case retry:
			answers = asked
		case ended:
			d.err = v.err
			return d.leave(p.events, 0, false, "")
		}
	}
}

// halve delivers the two halves of a parcel one after the other, to find the event at fault.
func (d *delivery) halve(ctx context.Context, secret wire.Secret, p *parcel) bool {
	half := len(p.events) / 2
	if !d.deliver(ctx, secret, p.of(p.events[:half])) {
		d.rest = append(d.rest, p.events[half:]...)
		return false
	}
	return d.deliver(ctx, secret, p.of(p.events[half:]))
}

// take takes the server's word on each event of a parcel.
func (d *delivery) take(p *parcel, v taken) bool {
	d.sender.bound.passed(p.bytes)
	d.sender.metrics.ForwardSent.Add(float64(len(p.events) - len(v.invalid) - len(v.later)))
	apart := make(map[uint64]bool, len(v.invalid)+len(v.later))
	for _, e := range v.invalid {
		apart[e.entry.Seq] = true
	}
	for _, e := range v.later {
		apart[e.Seq] = true
	}
	before := len(d.settled)
	for _, e := range p.events {
		if !apart[e.Seq] {
			d.settled = append(d.settled, e)
		}
	}
	if n := len(d.settled) - before; n > 0 {
		d.sender.reach.delivered(d.settled[len(d.settled)-1].At)
		d.sender.suspicion.taken(p.key, n)
	}
	if len(v.later) > 0 {
		d.sender.metrics.ForwardRetries.WithLabelValues("later").Inc()
		d.later, d.why = append(d.later, v.later...), v.why
	}
	return d.bury(p, v.invalid)
}

// leave gives up on events for now, and with them on what follows in the parcel.
func (d *delivery) leave(events []spool.Entry, wait time.Duration, backoff bool, why string) bool {
	d.rest = append(d.rest, events...)
	d.wait, d.backoff, d.why = wait, backoff, why
	return false
}

// pause leaves a key alone for long, when sidecar and server do not understand each other.
func (d *delivery) pause(events []spool.Entry, why string) bool {
	d.paused = true
	d.sender.logger.Error("sidecar and server do not understand each other. Forwarding pauses for this key; nothing is lost. Check that --upstream is a server and that both run versions that fit", "key", d.parcel.key, "reason", why)
	return d.leave(events, pauseDelay, false, why)
}

// bury moves events to the dead letters, as long as it can be believed that they are at fault.
func (d *delivery) bury(p *parcel, events []invalidEvent) bool {
	for i, e := range events {
		if !d.sender.suspicion.refused(p.key) {
			return d.pause(entriesOf(events[i:]), e.reason)
		}
		d.sender.logger.Error("the server refuses an event for its content; it goes to the dead letters", "sequence", e.entry.Seq, "reason", e.reason)
		if err := d.sender.spool.Bury(e.reason, e.entry); err != nil {
			return d.noRoom(err, entriesOf(events[i:]))
		}
		d.settled = append(d.settled, e.entry)
	}
	return true
}

// hold moves a parcel to the held lane.
func (d *delivery) hold(reason string, p *parcel) bool {
	if err := d.sender.spool.Hold(p.key, reason, p.events); err != nil {
		return d.noRoom(err, p.events)
	}
	d.settled = append(d.settled, p.events...)
	return true
}

// noRoom leaves events in the spool that no lane takes.
func (d *delivery) noRoom(err error, events []spool.Entry) bool {
	if errors.Is(err, spool.ErrClosed) || errors.Is(err, spool.ErrFailed) {
		d.err = err
		return d.leave(events, 0, false, "")
	}
	d.paused = true
	d.sender.logger.Error("events that the server refuses cannot be set aside, so they stay in the spool. Free space on its disk, or raise --spool-bytes-max", "key", d.parcel.key, "error", err)
	return d.leave(events, pauseDelay, false, err.Error())
}

func entriesOf(events []invalidEvent) (entries []spool.Entry) {
	for _, e := range events {
		entries = append(entries, e.entry)
	}
	return entries
}

// send makes one attempt, when the circuit lets it. body is nil for a parcel that is compressed on its way. answers is what the last attempt with this parcel returned, 0 before the first.
func (d *delivery) send(ctx context.Context, secret wire.Secret, p *parcel, body []byte, answers uint64) (verdict, uint64) {
	pass, err := d.sender.circuit.admit(ctx)
	if err != nil {
		return ended{err}, 0
	}
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	var answer wire.BatchAnswer
	if body != nil {
		answer, err = d.sender.upstream.Send(attempt, secret, len(p.events), body)
	} else {
		answer, err = d.sender.upstream.SendStream(attempt, secret, len(p.events), func() io.Reader { return newPacking(p) })
	}
	if err != nil && ctx.Err() != nil {
		pass.abandoned()
		return ended{ctx.Err()}, 0
	}
	v := judge(p.events, answer, err)
	if r, again := v.(retry); again {
		d.sender.metrics.ForwardRetries.WithLabelValues(r.reason).Inc()
		// Others are answered between two failures of this one: then it is no matter of the server's, and nobody else is to wait.
		now := d.sender.circuit.answers()
		others := answers > 0 && now != answers
		if !others {
			d.sender.reach.note(r.reason == "network" || r.reason == "foreign", err)
		}
		if others || p.alone {
			pass.abandoned()
			return busy{r.after, reasonOf(err), true}, 0
		}
		pass.failed(r.after)
		return v, now
	}
	switch v.(type) {
	case tooLarge:
		d.sender.metrics.ForwardRetries.WithLabelValues("foreign").Inc()
		pass.abandoned() // it says nothing of the server
		return v, 0
	case misfit, busy:
		d.sender.metrics.ForwardRetries.WithLabelValues("status").Inc()
	}
	d.sender.reach.note(false, nil)
	pass.answered()
	return v, 0
}

// reasonOf is what a failed attempt says of itself, for people.
func reasonOf(err error) string {
	if err == nil {
		return "the answer does not account for every event"
	}
	return wire.AsError(err).Message
}
