package proxy

import (
	"context"
	"slices"
	"time"

	"promptspool/api/wire"
	"promptspool/spool"
)

// reading is what one reading of the spool gave.
type reading struct {
	from   uint64
	events []spool.Entry
	err    error
	again  bool // it is of what was skipped, not at the tail
	aside  bool // what it finds at the frontier goes to the held lane
}

// read starts what readings there is memory for: one at the tail, and one of what was skipped and is due. It tells when to look again.
func (d *dispatch) read(ctx context.Context, now time.Time) (wake time.Time) {
	if d.reach.away.Load() && d.inFlight > 0 { // what is on its way finds out when the server is back; the rest is as well on the disk meanwhile
		for _, q := range d.queues {
			d.forget(q)
		}
		return wake
	}
	if room := memoryBytesMax - d.inMemory; room < readBytesMax {
		return wake // a delivery will make some
	}
	switch {
	case d.ahead || d.ledger.span() >= spanEventsMax:
	case now.Before(d.aheadAt):
		wake = d.aheadAt
	default:
		d.ahead = true
		d.fetch(ctx, reading{from: d.ledger.tail})
	}
	if d.again {
		return wake
	}
	if d.ledger.pinned() > d.asideBytes && !now.Before(d.asideAt) && !d.frontierMoves() {
		d.again = true
		d.fetch(ctx, reading{from: d.ledger.frontier, again: true, aside: true})
		return wake
	}
	var next *span
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
		d.again = true
		d.fetch(ctx, reading{from: max(next.low, d.ledger.frontier), again: true})
	}
	return wake
}

// frontierMoves says whether the event at the frontier is in memory or on its way.
func (d *dispatch) frontierMoves() bool {
	c, word, bit := d.ledger.place(d.ledger.frontier)
	return c.taken[word]&bit != 0
}

func (d *dispatch) fetch(ctx context.Context, r reading) {
	d.workers.Go(func() {
		r.events, r.err = d.readPieces(ctx, r.from)
		d.readings <- r // there is room for both
	})
}

// readPieces reads the spool once, in pieces while the app writes.
func (d *dispatch) readPieces(ctx context.Context, from uint64) ([]spool.Entry, error) {
	if !d.sender.manners.writing() {
		return d.spool.Read(ctx, from, wire.BatchEventsMax, readBytesMax)
	}
	begun := time.Now()
	events, err := d.spool.Read(ctx, from, wire.BatchEventsMax, pieceBytes)
	for bytes := bytesOf(events); err == nil; {
		from = events[len(events)-1].Seq + 1
		if len(events) >= wire.BatchEventsMax || bytes > readBytesMax-pieceBytes || from >= d.spool.Next() {
			break
		}
		begun = d.sender.manners.rest(begun)
		// If all that follows is lost, this would wait for what comes next, and what was read with it.
		short, cancel := context.WithTimeout(ctx, linger)
		piece, notNow := d.spool.Read(short, from, wire.BatchEventsMax-len(events), pieceBytes)
		cancel()
		if notNow != nil {
			break // the next reading meets it again, if it lasts
		}
		events, bytes = append(events, piece...), bytes+bytesOf(piece)
	}
	return events, err
}

// receive takes in what was read.
func (d *dispatch) receive(ctx context.Context, now time.Time, r reading) error {
	if r.again {
		d.again = false
	} else {
		d.ahead = false
		if len(r.events) < wire.BatchEventsMax/4 && bytesOf(r.events) < readBytesMax/4 {
			d.aheadAt = now.Add(linger) // there is no more now: what comes in a moment goes together
		}
	}
	if r.err != nil {
		return r.err
	}
	at := r.from
	for i, e := range r.events {
		if r.again && e.Seq >= d.ledger.tail { // what nobody has seen yet is for the reading at the tail
			d.ledger.settleMissing(at, d.ledger.tail)
			at, r.events = d.ledger.tail, r.events[:i]
			break
		}
		d.ledger.settleMissing(at, e.Seq)
		at = e.Seq + 1
	}
	last := at - 1
	d.ledger.tail = max(d.ledger.tail, at)
	switch {
	case r.aside:
		d.setAside(ctx, r)
	case r.again:
		d.admitAgain(now, r, last)
	default:
		for _, e := range r.events {
			d.admit(now, d.queue(e.Key), e)
		}
	}
	return d.acknowledge()
}

// admit puts an event into its key's queue, if nobody has it.
func (d *dispatch) admit(now time.Time, q *queue, e spool.Entry) {
	switch {
	case !d.ledger.take(e.Seq):
	case q.blocked(now):
		d.ledger.putBack(e.Seq)
		q.skipped.add(e.Seq)
	default:
		if len(q.events) == 0 {
			q.since = now
		}
		q.events = append(q.events, e)
		d.inMemory += len(e.Data)
	}
}

// admitAgain does so with what was skipped, of the keys that are due.
func (d *dispatch) admitAgain(now time.Time, r reading, last uint64) {
	due := map[uint32][]*span{}
	for key, q := range d.queues {
		due[key], _ = q.due(now)
	}
	for _, e := range r.events {
		if slices.ContainsFunc(due[e.Key], func(s *span) bool { return s.holds(e.Seq) }) {
			d.admit(now, d.queues[e.Key], e)
		}
	}
	for _, spans := range due {
		for _, s := range spans {
			s.passed(r.from, last, d.ledger.frontier)
		}
	}
}

// setAside has the events of the key that pins the frontier moved to the held lane, from where they go out by themselves later: what
// was delivered behind them can only then be removed from the disk.
func (d *dispatch) setAside(ctx context.Context, r reading) {
	var p *parcel
	for _, e := range r.events {
		if p == nil && e.Seq >= d.ledger.frontier {
			p = &parcel{key: e.Key, aside: d.reasonFor(e.Key)}
		}
		if p != nil && e.Key == p.key && d.ledger.take(e.Seq) {
			p.add(e)
		}
	}
	if p == nil || len(p.events) == 0 {
		return
	}
	d.sender.logger.Warn("events of one key wait for so long that what was delivered behind them fills the disk; they are held meanwhile, and go out by themselves", "key", p.key, "events", len(p.events), "reason", p.aside)
	d.inMemory += p.bytes
	d.start(ctx, d.queue(p.key), p)
}

func (d *dispatch) reasonFor(key uint32) string {
	if why := d.queue(key).why; why != "" {
		return "not delivered for long: " + why
	}
	return "not delivered for long"
}
