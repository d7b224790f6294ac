package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/queue"
)

// sender is what all deliveries and their dispatch share. Safe for concurrent use.
type sender struct {
	spool    *queue.Queue
	keys     *Keyring
	upstream Upstream
	metrics  *metrics.Metrics
	logger   *slog.Logger
	reach    *reach

	encoders encoders
	circuit  *circuit
	bound    *bound
	guard    *rejectionGuard
	pacer    *pacer
}

// delivery is the way of one batch, and what became of its events. At the end each event
// is in exactly one of settled, later, doubted and rest. It has one owner: the goroutine
// that runs it, then the dispatch.
type delivery struct {
	*sender
	batch *batch

	settled []queue.Entry // at the server, or durable in a lane
	later   []queue.Entry // each to be sent again, by itself
	doubted []queue.Entry // the server refuses them, and is not believed
	rest    []queue.Entry // nothing is known of these

	// wait is how long the key must be left alone because of why. With backoff it is at
	// least that, and longer every time in a row.
	wait    time.Duration
	backoff bool
	why     string

	paused bool  // a person has to look
	alone  bool  // see batch.alone
	large  bool  // a proxy in front of the server finds single events too large
	err    error // of the spool, or of the context
}

// run sends the batch until its events are judged, or wait for something that concerns
// them or their key alone. It waits here for anything that concerns all keys, such as a
// server that is away.
func (d *delivery) run(ctx context.Context) {
	if d.batch.holdReason != "" {
		d.hold(d.batch.holdReason, d.batch)
		return
	}

	// The spool names keys by number. If the file of one is lost, a person can
	// still give another.
	secret, ok := d.keys.secret(d.batch.key)
	if !ok {
		d.logger.Error("The key of these events is lost. They are held.",
			"key", d.batch.key, "events", len(d.batch.events))
		d.hold("the sidecar's file of this key is lost or damaged", d.batch)
		return
	}

	d.deliver(ctx, secret, d.batch)
}

// deliver sends one batch, or its halves when one of its events is at fault. It reports
// whether to continue with the next.
func (d *delivery) deliver(ctx context.Context, secret wire.Secret, b *batch) (goOn bool) {
	// A body that is compressed now serves every attempt with it.
	var body []byte
	if b.bytes <= compressBytesMax {
		body = d.encoders.compress(b, d.pacer)
	}

	for answers := uint64(0); ; {
		v := d.send(ctx, secret, b, body, answers)
		switch v.outcome {
		case taken:
			d.bound.passed(b.bytes)
			d.metrics.ForwardSent.Add(float64(len(b.events) - len(v.refused)))
			return d.assign(b, v.refused)
		case keyRefusal:
			d.keys.refused(b.key)
			return d.hold(v.reason, b)
		case contentRefusal:
			if len(b.events) > 1 {
				return d.halve(ctx, secret, b)
			}
			r := wire.Result{Code: wire.ResultInvalid, Reason: v.reason}
			return d.assign(b, map[uint64]wire.Result{b.events[0].Seq: r})
		case tooLarge:
			// It may be the proxy's limit and no fault of an event: nothing goes to
			// the dead letters.
			d.bound.refused(b.bytes)
			if len(b.events) == 1 {
				d.later, d.large, d.why = append(d.later, b.events...), true, v.reason
				return true
			}
			return d.leave(b.events, 0, false, v.reason)
		case misfit:
			return d.pause(b.events, v.reason)
		case busy:
			d.alone = v.alone
			return d.leave(b.events, v.after, true, v.reason)
		case retry:
			// The circuit makes the next attempt wait.
			answers = v.answers
		case ended:
			d.err = v.err
			return d.leave(b.events, 0, false, "")
		}
	}
}

// halve delivers the two halves of a batch one after the other, to find the
// event at fault.
func (d *delivery) halve(ctx context.Context, secret wire.Secret, b *batch) bool {
	// If the first half has to wait, so does the second: its events come after them.
	half := len(b.events) / 2
	if !d.deliver(ctx, secret, b.part(b.events[:half])) {
		d.rest = append(d.rest, b.events[half:]...)
		return false
	}

	return d.deliver(ctx, secret, b.part(b.events[half:]))
}

// assign puts each event of a judged batch where it belongs.
func (d *delivery) assign(b *batch, refused map[uint64]wire.Result) bool {
	// They go to the dead letters.
	var limited, forbidden, invalid []queue.LaneEntry
	var later, doubted []queue.Entry
	var doubt string     // why the last of these is refused
	var last queue.Entry // that was taken
	run := 0             // events taken since the last one that was refused
	for _, e := range b.events {
		r, isRefused := refused[e.Seq]
		letter := queue.LaneEntry{Entry: e, Reason: r.Reason}
		switch {
		case !isRefused:
			d.settled, last = append(d.settled, e), e
			run++
		case r.Code == wire.ResultForbidden:
			// It is the key's fault alone, and says nothing of the server. Unlike those of a
			// limit it is not dropped: another key may deliver it.
			forbidden = append(forbidden, letter)
		case r.Code != wire.ResultInvalid:
			later, d.why = append(later, e), r.Reason
		case r.Cause == wire.CauseLimit:
			// No foreign server answers that, and the event is well.
			letter.AtLimit = true
			limited = append(limited, letter)
		default:
			// Those that were taken before it clear the server of the suspicion that it
			// refuses everything.
			d.guard.taken(b.key, run, last.Seq)
			run = 0
			if d.guard.refused(b.key, e.Seq) {
				invalid = append(invalid, letter)
			} else {
				doubted, doubt = append(doubted, e), r.Reason
			}
		}
	}

	d.guard.taken(b.key, run, last.Seq)
	if last.Seq > 0 {
		d.reach.delivered(last.At)
	}
	if len(later) > 0 {
		d.metrics.ForwardRetries.WithLabelValues("later").Inc()
		d.later = append(d.later, later...)
	}

	if len(limited) > 0 {
		d.logger.Warn("The server refuses events because their record is at a limit. They go to the "+
			"dead letters; other events are not affected.",
			"key", b.key, "events", len(limited), "reason", limited[0].Reason)
	}
	if len(forbidden) > 0 {
		d.logger.Error("The server refuses events that their key may not deliver. They go to the dead "+
			"letters; other events are not affected. Send them with another key: "+
			"promptspool dead replay --key-file.",
			"key", b.key, "events", len(forbidden), "reason", forbidden[0].Reason)
	}
	for _, e := range invalid {
		d.logger.Error("The server refuses an event for its content. It goes to the dead letters.",
			"sequence", e.Seq, "reason", e.Reason)
	}

	goOn := d.bury(limited)
	goOn = d.bury(forbidden) && goOn
	goOn = d.bury(invalid) && goOn
	return d.doubt(doubted, doubt) && goOn
}

// leave gives up on events for now, and with them on what follows in the batch.
func (d *delivery) leave(events []queue.Entry, wait time.Duration, backoff bool, why string) bool {
	d.rest = append(d.rest, events...)
	d.wait, d.backoff, d.why = wait, backoff, why
	return false
}

// pause leaves a key alone for long, when sidecar and server do not
// understand each other.
func (d *delivery) pause(events []queue.Entry, why string) bool {
	d.paused = true
	d.logger.Error("The sidecar and the server do not understand each other. "+
		"Forwarding pauses for this key; nothing is lost. "+
		"Check that --upstream is a promptspool server, and that both run compatible versions.",
		"key", d.batch.key, "reason", why)

	return d.leave(events, pauseDelay, false, why)
}

// doubt leaves a key alone for long, because the server refuses more of its events than it
// can be believed.
func (d *delivery) doubt(events []queue.Entry, why string) bool {
	if len(events) == 0 {
		return true
	}

	d.doubted = append(d.doubted, events...)
	return d.pause(nil, why)
}

// bury moves events to the dead letters.
func (d *delivery) bury(letters []queue.LaneEntry) bool {
	if len(letters) == 0 {
		return true
	}

	var events []queue.Entry
	for _, e := range letters {
		events = append(events, e.Entry)
	}
	return d.moved(events, d.spool.Bury(letters...))
}

// hold moves a batch to the held lane.
func (d *delivery) hold(reason string, b *batch) bool {
	return d.moved(b.events, d.spool.Hold(b.key, reason, b.events))
}

// moved notes that events are in a lane now. With an error they stay in the spool.
func (d *delivery) moved(events []queue.Entry, err error) bool {
	if err == nil {
		d.settled = append(d.settled, events...)
		return true
	}

	// A spool that takes nothing any more ends the forwarder, not this key alone.
	if errors.Is(err, queue.ErrClosed) || errors.Is(err, queue.ErrFailed) {
		d.err = err
		return d.leave(events, 0, false, "")
	}

	d.paused = true
	d.logger.Error("Events that the server refuses cannot be moved to a lane, so they stay in the spool. "+
		"Free space on its disk, or raise --spool-bytes-max.",
		"key", d.batch.key, "error", err)

	return d.leave(events, pauseDelay, false, err.Error())
}

// send makes one attempt, when the circuit lets it. body is nil for a batch that is
// compressed while it is sent. answers is that of the last verdict on this batch, 0 before the
// first.
func (d *delivery) send(
	ctx context.Context, secret wire.Secret, b *batch, body []byte, answers uint64,
) verdict {
	pass, err := d.circuit.admit(ctx)
	if err != nil {
		return verdict{outcome: ended, err: err}
	}

	// A server that takes the batch and never answers must not keep this delivery
	// forever.
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	var answer wire.BatchAnswer
	if body != nil {
		answer, err = d.upstream.Send(attempt, secret, len(b.events), body)
	} else {
		open := func() io.Reader { return newBatchReader(b) }
		answer, err = d.upstream.SendStream(attempt, secret, len(b.events), open)
	}

	// We are stopping: whatever the error says, it is not about the server.
	if err != nil && ctx.Err() != nil {
		pass.abandoned()
		return verdict{outcome: ended, err: ctx.Err()}
	}

	v := judge(b.events, answer, err)
	switch v.outcome {
	case retry:
		return d.failed(pass, b, v, err, answers)
	case tooLarge:
		d.metrics.ForwardRetries.WithLabelValues("foreign").Inc()
		// It was not the server that answered.
		pass.abandoned()
		return v
	case misfit, busy:
		d.metrics.ForwardRetries.WithLabelValues("status").Inc()
	}

	d.reach.note(false, "")
	pass.answered()

	return v
}

// failed ends an attempt that the server did not answer, or answered that it is not well.
// It returns what send does.
func (d *delivery) failed(pass pass, b *batch, v verdict, err error, answers uint64) verdict {
	d.metrics.ForwardRetries.WithLabelValues(v.reason).Inc()

	// If others were answered between two failures of this batch, the server is there.
	// Then the fault is with this key, and no other key should wait.
	v.answers = d.circuit.answers()
	others := answers > 0 && v.answers != answers
	if !others {
		d.reach.note(v.reason == "network" || v.reason == "foreign", reasonOf(err))
	}
	if others || b.alone {
		pass.abandoned()
		return verdict{outcome: busy, reason: reasonOf(err), after: v.after, alone: true}
	}

	pass.failed(v.after)
	return v
}

// reasonOf describes a failed attempt for people.
func reasonOf(err error) string {
	if err == nil {
		return "the answer does not account for every event"
	}

	return wire.AsError(err).Message
}

// outcome is what an attempt to deliver a batch came to. After retry, busy, tooLarge and
// misfit nothing is known of the batch, and it is sent again, forever. With taken,
// keyRefusal and contentRefusal the server has judged it, for good.
type outcome int

const (
	retry          outcome = iota // the server is away, or not well: all keys wait
	busy                          // the server asks this key, or its account, to come back: no other key waits
	tooLarge                      // a proxy in front of the server rejected the size: smaller batches may pass
	misfit                        // the answer has no meaning here: sent again without hurry; a person has to look
	taken                         // the server has the batch, but for the events that it refuses
	keyRefusal                    // the server does not accept the key
	contentRefusal                // the server rejects the batch as it is: one of its events is at fault
	ended                         // the sender itself is stopping
)

// verdict is an outcome, with what else is known of it.
type verdict struct {
	outcome
	reason string        // of retry, a label of the metric: network, foreign, status, answer
	after  time.Duration // at least; of retry and busy
	alone  bool          // busy, though the server did not ask: it fails for this key, and answers others
	err    error         // of ended

	answers uint64                 // of retry: what the circuit counted by then
	refused map[uint64]wire.Result // of taken, by sequence: two events of a batch may have the same id
}

// judge reads the outcome of a request. Only what the server itself answered can refuse
// anything: a proxy's 403 or 413 is a retry.
func judge(events []queue.Entry, answer wire.BatchAnswer, err error) verdict {
	if err == nil {
		return divide(events, answer)
	}

	e := wire.AsError(err)
	if away := (*wire.Away)(nil); errors.As(err, &away) {
		switch {
		case away.Err != nil:
			// No delay was asked for: the backoff alone spreads the sidecars.
			return verdict{outcome: retry, reason: "network"}
		case away.Status == 413:
			return verdict{outcome: tooLarge, reason: e.Message}
		}
		return verdict{outcome: retry, reason: "foreign", after: e.RetryAfter}
	}

	// The server itself has answered. A status that is not listed is none that
	// it should send.
	switch e.Status() {
	case 401, 403:
		return verdict{outcome: keyRefusal, reason: e.Message}
	case 400, 413, 422:
		return verdict{outcome: contentRefusal, reason: e.Message}
	case 408, 425, 429, 500, 502, 503, 504:
		if isOfKey(e) {
			return verdict{outcome: busy, reason: e.Message, after: e.RetryAfter}
		}
		return verdict{outcome: retry, reason: "status", after: e.RetryAfter}
	}

	return verdict{outcome: misfit, reason: e.Error()}
}

// isOfKey reports whether the server's error concerns only the key that it was called with, or
// its account. It serves others meanwhile.
func isOfKey(err error) bool {
	e := wire.AsError(err)
	return e.Code == wire.CodeTooMany || e.Affects != ""
}

// divide sorts a batch's events by the server's answer. An answer that does not account
// for every event of this batch, and for no other, counts as none: believing it could
// lose the rest.
//
// An id may be in a batch twice, with different events, if a program sent them so. The
// answer then does not show which of them was refused: all of them count as refused. For
// one that was taken this does no harm.
func divide(events []queue.Entry, answer wire.BatchAnswer) verdict {
	sum := answer.Accepted + answer.Duplicate + len(answer.Refused)
	if answer.Accepted < 0 || answer.Duplicate < 0 || sum != len(events) {
		return verdict{outcome: retry, reason: "answer"}
	}
	if len(answer.Refused) == 0 {
		return verdict{outcome: taken}
	}

	// The answer names events by id alone, and an event that is not in this batch may
	// be named, too.
	refused := make(map[string]wire.Result, len(answer.Refused))
	// The refusals that no event of the batch has met.
	open := make(map[string]int, len(answer.Refused))
	for _, r := range answer.Refused {
		open[r.ID]++
		// Sending again weighs more than giving up.
		if refused[r.ID].Code != wire.ResultLater {
			refused[r.ID] = r
		}
	}

	v := verdict{outcome: taken, refused: make(map[uint64]wire.Result, len(refused))}
	for _, e := range events {
		id := eventID(e)
		if r, named := refused[id]; named {
			open[id]--
			v.refused[e.Seq] = r
		}
	}

	for _, n := range open {
		if n > 0 {
			// It names an event that is not ours.
			return verdict{outcome: retry, reason: "answer"}
		}
	}

	return v
}

const (
	rowMax        = 5      // rejections in a row before the contract itself is suspected
	judgedRecent  = 10_000 // events judged before; among them ...
	refusedRecent = 100    // ... so many may be rejected
	judgedParts   = 10     // judgedRecent is counted in so many parts
)

// rejectionGuard tells a few bad events from a server that rejects everything. Burying
// what such a server rejects would empty the spool into the dead letters because of a
// fault that is not the events'. It watches each key, and what comes in a row over all
// keys. Safe for concurrent use.
//
// Doubt ends. The key pauses, and single events that come after the doubted ones are
// tried (queue.passDoubted). Once the server has taken one, it is believed about those
// before it, which are sent again. That is safe: a server that rejects everything takes
// nothing. One that rejects a part costs a pause and the alarm each time, and the more it
// rejects, the longer it takes to find an event that it takes. Nothing is lost by it: a
// dead letter can be replayed, and the lanes bound how many there are.
type rejectionGuard struct {
	mu   sync.Mutex
	row  int                    // under mu; rejections in a row, of all keys
	keys map[uint32]*keyHistory // under mu
}

// keyHistory is what the server said of one key's events.
type keyHistory struct {
	row      int
	judged   [judgedParts]int // the newest part first
	refused  [judgedParts]int
	doubted  uint64 // the last sequence whose rejection is doubted; 0 for none
	believed uint64 // rejections up to this sequence are believed
}

func newRejectionGuard() *rejectionGuard { return &rejectionGuard{keys: map[uint32]*keyHistory{}} }

// historyLocked returns that of a key.
func (g *rejectionGuard) historyLocked(key uint32) *keyHistory {
	h := g.keys[key]
	if h == nil {
		if len(g.keys) >= keysMax {
			// The memory is bounded. A bad server is soon suspected again.
			clear(g.keys)
		}
		h = new(keyHistory)
		g.keys[key] = h
	}

	return h
}

// taken notes that the server took events, and the last of them.
func (g *rejectionGuard) taken(key uint32, events int, last uint64) {
	if events == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()

	h := g.historyLocked(key)
	g.row, h.row = 0, 0
	h.count(events, 0)

	if h.doubted > 0 {
		h.believed = max(h.believed, last)
	}
	if last > h.doubted {
		h.doubted = 0
	}
}

// refused notes that the server rejected an event for its content, and reports
// whether to believe it. A rejection that is not believed does not count: the event
// will be sent again.
func (g *rejectionGuard) refused(key uint32, seq uint64) (believed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()

	h := g.historyLocked(key)
	if seq <= h.believed {
		return true
	}

	// This one counts, too: refusedRecent is how many may be refused, not how
	// many may precede.
	recent := 1
	for _, n := range h.refused {
		recent += n
	}
	if g.row >= rowMax || h.row >= rowMax || recent > refusedRecent {
		h.doubted = max(h.doubted, seq)
		return false
	}

	g.row++
	h.row++
	h.count(1, 1)

	return true
}

func (h *keyHistory) count(judged, refused int) {
	// A full part makes space for a new one; the oldest is forgotten.
	if h.judged[0] >= judgedRecent/judgedParts {
		copy(h.judged[1:], h.judged[:])
		copy(h.refused[1:], h.refused[:])
		h.judged[0], h.refused[0] = 0, 0
	}

	h.judged[0] += judged
	h.refused[0] += refused
}
