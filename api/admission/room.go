package admission

import (
	"context"
	"errors"
	"math"
	"time"

	"promptspool/api/wire"
)

const (
	// SmallBytes is the memory that a request may use without asking for room.
	SmallBytes = 512 << 10

	// roomPatience is how long a request waits for room.
	roomPatience = 10 * time.Second
)

// Room is memory for large requests while they are worked on. Safe for concurrent use.
//
// A body that is decoded, encoded again, sent on and answered exists several times at
// once. Each part of the program that makes such copies takes the room for them first, in
// the name of the request in its context, whose key it does not know. Small requests never wait.
//
// A quarter is kept for requests that are answered here and need no more than that: requests
// that wait for a server which hangs must not keep out those that do without it.
type Room struct {
	kept, rest *Queue
	requestMax int64
}

// NewRoom makes a Room of so many bytes, of which AdmitRoom gives requestMax to one request.
func NewRoom(bytes, requestMax int64) *Room {
	return &Room{
		kept:       NewQueue(bytes/4, math.MaxInt, nil),
		rest:       NewQueue(bytes-bytes/4, math.MaxInt, nil),
		requestMax: requestMax,
	}
}

// Claim returns the claim of a new request, which holds nothing yet. local means that the
// request is answered without asking a server. A nil Room bounds nothing.
func (r *Room) Claim(local bool) RoomClaim { return RoomClaim{room: r, local: local} }

// RoomClaim is what one request holds of a Room. It is used by one goroutine at a time.
type RoomClaim struct {
	room  *Room
	local bool
	part  *Queue // of room, from which it has what it holds
	held  int64
}

// roomKey is the type of RoomKey.
type roomKey struct{}

// RoomKey is what a context returns the request's *RoomClaim for.
var RoomKey any = roomKey{}

// WithRoom returns a context in which TakeRoom takes from c.
func WithRoom(ctx context.Context, c *RoomClaim) context.Context {
	return context.WithValue(ctx, RoomKey, c)
}

// TakeRoom waits until the request of ctx may use so many bytes in all. A request that needs more
// than there is goes alone. Without a claim in ctx nothing is bounded. Its error is
// wire.CodeUnavailable.
func TakeRoom(ctx context.Context, bytes int) error {
	c, _ := ctx.Value(RoomKey).(*RoomClaim)
	if bytes <= SmallBytes || c == nil || c.room == nil {
		return nil
	}

	return c.take(ctx, int64(bytes))
}

// AdmitRoom is TakeRoom for what comes from outside: more than the process could bear is
// wire.CodeTooLarge.
func AdmitRoom(ctx context.Context, bytes int) error {
	c, _ := ctx.Value(RoomKey).(*RoomClaim)
	if bytes > SmallBytes && c != nil && c.room != nil && int64(bytes) > c.room.requestMax {
		return wire.Errorf(wire.CodeTooLarge,
			"This needs more memory than the sidecar has. Call the server itself, or raise the limit.")
	}

	return TakeRoom(ctx, bytes)
}

func (c *RoomClaim) take(ctx context.Context, bytes int64) error {
	if c.held == 0 {
		c.part = c.room.rest
		if c.local && bytes <= c.room.kept.weightMax {
			c.part = c.room.kept
		}
	}
	bytes = min(bytes, c.part.weightMax)
	if bytes <= c.held {
		return nil
	}

	// Two requests that wait for more while they hold some would wait for each other. A request
	// seldom needs more than its first claim, or only a little.
	patience := roomPatience
	if c.held > 0 {
		patience = 0
	}
	err := c.part.Enter(ctx, "", bytes-c.held, 0, patience)
	switch {
	case err == nil:
		c.held = bytes
	case c.held > 0: // it continues with what it has
	case errors.Is(err, ErrLongWait):
		return wire.Unavailable(time.Second,
			"Too many large requests are being answered. Send this again in a second.")
	default:
		return EndedError(ctx)
	}

	return nil
}

// Holds reports whether there is anything to release.
func (c *RoomClaim) Holds() bool { return c.held > 0 }

// Keep gives back what the request holds beyond so many bytes.
func (c *RoomClaim) Keep(bytes int) {
	if more := c.held - int64(bytes); more > 0 {
		c.part.Leave(more)
		c.held -= more
	}
}

// Release gives everything back. A second time it does nothing.
func (c *RoomClaim) Release() { c.Keep(0) }
