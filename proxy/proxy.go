// Package proxy is what a sidecar does with a write. It names the write's key by a
// number, puts the event into the spool, and forwards it to the server, however long that
// takes. It also judges keys: by the server's verdict while that can be had, by the last
// one while it cannot.
//
//	Record ─▶ Keyring (number, bound of unverified keys) ─▶ spool ─▶ Forwarder ─▶ server
//
// A write that Record accepted is on disk. It leaves the spool only when the server has
// it, or for one of the two lanes: held, when the server refuses its key; dead letters,
// when it refuses its content, or its key may not deliver it.
//
// # Which goroutine waits for which
//
// All keys wait for a server that is away, or unwell: one attempt at a time goes out,
// after a backoff. No key waits for another one that the server asks to come back, that
// has events which the server wants later or no lane has space for, or that a person has
// to look at. Such a key's events are let go of, others are read on and delivered, and
// the key's are read again when their time has come.
//
// The app's writes go first: while there are some, the work of forwarding is done
// in short pieces with rests between (pacer.go), and a backlog drains at about half
// of the speed.
//
// An event delivered out of order stays on the disk until everything before it is
// settled. So two bounds hold for how far reading goes ahead of the oldest event that
// waits (ahead.go). When more than an eighth of the spool, at most 64 MiB, was delivered
// after it, its key's events are moved to the held lane, from where they go out by
// themselves when the server takes them. When the lanes are full as well, reading
// continues for 4 Mi events and then waits for space. Memory holds 8 MiB of events (or
// one that is larger), what is compressed of four batches, and two bits for each event
// read ahead.
package proxy

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/queue"
)

// Versions knows which version a template selector means now.
type Versions interface {
	// Version reports false for ok if that is not known here.
	Version(account, ident string, s wire.Selector) (version int, ok bool)
}

// Proxy is a sidecar's Recorder. Safe for concurrent use.
type Proxy struct {
	spool    *queue.Queue
	keys     *Keyring
	versions Versions
	logger   *slog.Logger
}

// New makes a Proxy over parts that the caller runs and closes.
func New(s *queue.Queue, keys *Keyring, versions Versions, logger *slog.Logger) *Proxy {
	return &Proxy{s, keys, versions, logger}
}

// appendBytesMax bounds what Record puts into one commit; a batch from another
// sidecar is larger.
const appendBytesMax = 256 << 10

// Record spools events: on return without an error all are durable, on one machine. An
// event that is recorded twice is forwarded twice, and folded once. On return without an
// error the bodies are the caller's again; otherwise they belong to the spool.
func (p *Proxy) Record(_ context.Context, id wire.Identity, events []wire.Event) ([]wire.Result, error) {
	lines, size := make([][][]byte, len(events)), 0
	results := make([]wire.Result, len(events))
	for i := range events {
		e := events[i]
		p.resolveVersion(id, &e)
		lines[i] = e.LineParts()
		size += lineBytes(lines[i])
		results[i] = wire.Result{ID: e.ID, Code: wire.ResultAccepted}
	}

	number, err := p.keys.acquire(id, int64(size))
	if err != nil {
		return nil, err
	}
	defer p.keys.release(number, int64(size))

	// Several commits for a large batch: one would keep all other writes waiting
	// for its fsync.
	for len(lines) > 0 {
		n, bytes := 1, lineBytes(lines[0])
		for n < len(lines) && bytes+lineBytes(lines[n]) <= appendBytesMax {
			bytes += lineBytes(lines[n])
			n++
		}
		if err := p.spool.AppendParts(number, lines[:n]...); err != nil {
			return nil, p.refusal(err)
		}
		lines = lines[n:]
	}

	return results, nil
}

func lineBytes(parts [][]byte) (bytes int) {
	for _, part := range parts {
		bytes += len(part)
	}
	return bytes
}

// resolveVersion notes the version that a link means at this moment, where the
// cache knows it.
func (p *Proxy) resolveVersion(id wire.Identity, e *wire.Event) {
	// Later it may mean another one. A link that names its version, or has it from
	// another sidecar, keeps it.
	link := e.Link
	fixed := link.Version > 0 && link.Label == ""
	if e.Version > 0 || link.Name == "" || !id.Verified || fixed {
		return
	}

	if v, ok := p.versions.Version(id.Account, link.Name, wire.Selector{Label: link.Label}); ok {
		e.Version = v
	}
}

// refusal tells the app what it can do about a spool that takes nothing.
func (p *Proxy) refusal(err error) error {
	switch {
	case errors.Is(err, queue.ErrFull):
		return wire.Unavailable(5*time.Second,
			"This write was not accepted: %w. Nothing that was accepted before is lost.", err)
	case errors.Is(err, queue.ErrClosed):
		return wire.Unavailable(time.Second, "This sidecar is stopping. Send this again in a moment.")
	}

	// It may have been written before the failure: the app must not take this for
	// a plain no.
	p.logger.Error("The spool refused a write.", "error", err)
	e := wire.Unavailable(5*time.Second, "The disk under the spool failed; the sidecar's log has the cause. "+
		"This write may not be on disk: send it again.")
	e.Cause = err

	return e
}

// Beater takes heartbeats: the server.
type Beater interface {
	Beat(ctx context.Context, id wire.Identity, h wire.Heartbeat) error
}

// Heartbeats tell the server of this sidecar, once for each account with a key known to
// be good. All fields are required.
type Heartbeats struct {
	Beater     Beater
	Identities func() []wire.Identity // one verified for each account; see Keyring.Identities
	Status     func() wire.Heartbeat  // what the server is told

	// Away reports whether the server was away when it was called last. It is asked every
	// second, and must not call the server.
	Away   func() bool
	Logger *slog.Logger
}

const (
	heartbeatTimeout = 10 * time.Second
	stopTimeout      = time.Second
	heartbeatLook    = time.Second // between looks whether there is a reason to send one
)

// Run sends heartbeats until ctx ends, and returns nil then. It sends one immediately,
// whenever the server is back or another account's key is known, and every
// wire.HeartbeatEvery. One that fails is not repeated before the next one is due.
func (h *Heartbeats) Run(ctx context.Context) error {
	sent := map[string]time.Time{} // by account
	wasAway := false
	for {
		away := h.Away()
		ids := h.Identities()
		known := make(map[string]time.Time, len(ids))
		for _, id := range ids {
			// One that failed counts as well: a server that is away is called
			// no more often.
			at, before := sent[id.Account]
			if !before || wasAway && !away || time.Since(at) >= wire.HeartbeatEvery {
				at = time.Now()
				h.send(ctx, id, false)
			}
			known[id.Account] = at
		}
		// Without the accounts that are gone.
		sent, wasAway = known, away

		if sleep(ctx, heartbeatLook, nil) != nil {
			h.stop(ctx)
			return nil
		}
	}
}

// stop tells a server that is there that the sidecar stops, which makes its silence harmless.
func (h *Heartbeats) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	for _, id := range h.Identities() {
		if !h.Away() {
			h.send(ctx, id, true)
		}
	}
}

func (h *Heartbeats) send(ctx context.Context, id wire.Identity, stops bool) {
	ctx, cancel := context.WithTimeout(ctx, heartbeatTimeout)
	defer cancel()

	beat := h.Status()
	beat.Stopped = stops
	if err := h.Beater.Beat(ctx, id, beat); err != nil && ctx.Err() == nil {
		h.Logger.Debug("The server took no heartbeat.", "error", err)
	}
}
