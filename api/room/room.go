// Package room bounds the memory of large calls while they are worked on.
//
// A body that is decoded, encoded anew, sent on and answered exists several times at
// once. Each part of the program that makes such copies takes the room for them first, in
// the name of the call. Small calls never wait.
package room

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"promptspool/api/wire"
)

const (
	// SmallBytes is the memory that a call may use without asking.
	SmallBytes = 512 << 10

	// patience is how long a call waits for room.
	patience = 10 * time.Second
)

// Room is memory that calls share. Safe for concurrent use.
//
// A quarter is kept for calls that are answered here and need no more than that: calls
// that wait for a server which hangs must not keep out those that do without it.
type Room struct {
	kept, rest part
	callMax    int64
}

// part is one part of a Room.
type part struct {
	bytes int64
	free  *semaphore.Weighted
}

func newPart(bytes int64) part { return part{bytes, semaphore.NewWeighted(bytes)} }

// New makes a Room of so many bytes, of which Admit gives callMax to one call.
func New(bytes, callMax int64) *Room {
	return &Room{kept: newPart(bytes / 4), rest: newPart(bytes - bytes/4), callMax: callMax}
}

// Claim returns the claim of a new call, which holds nothing yet. local means that the
// call is answered without asking a server. A nil Room bounds nothing.
func (r *Room) Claim(local bool) Claim { return Claim{room: r, local: local} }

// Claim is what one call holds of a Room. It is used by one goroutine at a time.
type Claim struct {
	room  *Room
	local bool
	part  *part // of room, from which it has what it holds
	held  int64
}

// claimKey is the type of Key.
type claimKey struct{}

// Key is what a context returns the call's *Claim for.
var Key any = claimKey{}

// With returns a context in which Take takes from c.
func With(ctx context.Context, c *Claim) context.Context { return context.WithValue(ctx, Key, c) }

// Take waits until the call of ctx may use so many bytes in all. A call that needs more
// than there is goes alone. Without a claim in ctx nothing is bounded. Its error is
// wire.CodeUnavailable.
func Take(ctx context.Context, bytes int) error {
	if bytes <= SmallBytes {
		return nil
	}
	c := claimOf(ctx)
	if c == nil {
		return nil
	}

	return c.take(ctx, int64(bytes))
}

// Admit is Take for what comes from outside: more than the process could bear is
// wire.CodeTooLarge.
func Admit(ctx context.Context, bytes int) error {
	if bytes <= SmallBytes {
		return nil
	}
	if c := claimOf(ctx); c != nil && int64(bytes) > c.room.callMax {
		return wire.Errorf(wire.CodeTooLarge,
			"This needs more memory than the sidecar has. Call the server itself, or raise the limit.")
	}

	return Take(ctx, bytes)
}

// claimOf returns the claim of a call that is bounded; nil if it is not.
func claimOf(ctx context.Context) *Claim {
	c, _ := ctx.Value(Key).(*Claim)
	if c == nil || c.room == nil {
		return nil
	}

	return c
}

func (c *Claim) take(ctx context.Context, bytes int64) error {
	if c.part == nil {
		c.part = &c.room.rest
		if c.local && bytes <= c.room.kept.bytes {
			c.part = &c.room.kept
		}
	}
	bytes = min(bytes, c.part.bytes)
	more := bytes - c.held
	if more <= 0 {
		return nil
	}

	// Two calls that wait for more while they hold some would wait for each other. What a
	// call needs beyond its first claim is little, or rare.
	if c.held > 0 {
		if c.part.free.TryAcquire(more) {
			c.held = bytes
		}
		return nil
	}

	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := c.part.free.Acquire(waiting, more); err != nil {
		c.part = nil
		if err := ctx.Err(); err != nil {
			return wire.Unavailable(0, "The call ended while it waited for its turn: %w. Send it again.", err)
		}
		return wire.Unavailable(time.Second,
			"Too many large calls are being answered. Send this again in a second.")
	}
	c.held = bytes

	return nil
}

// Holds reports whether there is anything to release.
func (c *Claim) Holds() bool { return c.held > 0 }

// Keep gives back what the call holds beyond so many bytes.
func (c *Claim) Keep(bytes int) {
	if more := c.held - int64(bytes); more > 0 {
		c.part.free.Release(more)
		c.held -= more
	}
}

// Release gives everything back. A second time it does nothing.
func (c *Claim) Release() {
	if c.held > 0 {
		c.part.free.Release(c.held)
	}
	c.part, c.held = nil, 0
}
