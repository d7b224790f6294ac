package admission

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
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

// Batch is one batch of events from a sidecar. It is read in two steps.
//
// First come the bytes as they were sent: a client that sends slowly, or stops, holds only what
// has arrived. Then they are unpacked, a line at a time, by as many goroutines as there are
// processors for it. Unpacking waits for no client, so the memory that decoders need stays
// bounded however many connections there are. Every byte is claimed before it is kept.
type Batch struct{ body Body }

// unpacking bounds how many batches are unpacked at the same time, and shares the time for it
// between keys by the bytes of what they sent.
var unpacking = NewQueue(int64(2*runtime.GOMAXPROCS(0)), math.MaxInt, nil)

// NewBatch makes the batch of a key. The caller must release it.
func (in *Intake) NewBatch(key string) *Batch {
	return &Batch{Body{claim: in.batches.Claim(key), refuse: in.refuseBatch}}
}

// Held returns how many bytes the batch holds: those of its lines, once it was read.
func (b *Batch) Held() int64 { return b.body.claim.Held() }

// Release gives back the memory of the batch and its events.
func (b *Batch) Release() { b.body.claim.Release() }

// Read reads the events of a request's batch. They stay claimed until Release. requestCtx
// is the context of the request. After Read has returned events, the connection is not
// cut until the request is answered.
func (b *Batch) Read(requestCtx context.Context, ctx *fasthttp.RequestCtx) ([]wire.Event, error) {
	encoding, err := Encoding(ctx, wire.BatchBodyBytesMax)
	if err != nil {
		return nil, err
	}
	if err := b.receive(ctx); err != nil {
		return nil, err
	}
	edge.Answering(ctx.Conn())

	// The events are copies, so the bytes as they were sent are given back when all are parsed.
	sent := b.body.Bytes
	defer func() { _ = b.reserve(-cap(sent)) }()

	if unpacking.Enter(requestCtx, b.body.claim.Owner(), 1, int64(len(sent)), Forever) != nil {
		return nil, EndedError(requestCtx)
	}
	defer unpacking.Leave(1)

	r, release, err := unpack(encoding, bytes.NewReader(sent), true)
	defer release()
	var events []wire.Event
	if err == nil {
		events, err = b.parse(r)
	}
	if err != nil {
		return nil, readError(encoding, err)
	}

	return events, nil
}

// receive reads the bytes of the batch as they were sent.
func (b *Batch) receive(ctx *fasthttp.RequestCtx) error {
	b.body.open(ctx, wire.BatchBodyBytesMax, false)
	if b.body.declared == 0 {
		return nil
	}
	if err := b.body.fill(&b.body.sent, wire.BatchBodyBytesMax); err != nil {
		return readError("", err)
	}

	return nil
}

// reserve claims more bytes, or gives some back if more is negative.
func (b *Batch) reserve(more int) error {
	claim := &b.body.claim
	if err := claim.Resize(claim.Held() + int64(more)); err != nil {
		return b.body.refuse(err)
	}
	return nil
}

// parse reads one event a line, and claims its bytes. A line that is not an event rejects the
// whole batch, so that the sidecar halves it until it has found the one.
func (b *Batch) parse(r io.Reader) ([]wire.Event, error) {
	in := bufio.NewReaderSize(r, 32<<10)
	var events []wire.Event
	// Of a line that is longer than the buffer of in.
	var line []byte
	total, lines := 0, 0
	for {
		// Events alone do not bound the work: millions of blank lines pack into a few bytes.
		lines++
		if lines > 2*wire.BatchEventsMax {
			return nil, wire.Errorf(wire.CodeTooLarge,
				"The batch has more than %d lines. Send smaller ones.", 2*wire.BatchEventsMax)
		}

		part, err := in.ReadSlice('\n')
		total += len(part)
		if total > wire.BatchBodyBytesMax {
			return nil, tooLarge(wire.BatchBodyBytesMax)
		}
		if err := b.reserve(len(part)); err != nil {
			return nil, err
		}

		if err == bufio.ErrBufferFull {
			// The line is not at its end.
			lines--
			line = append(line, part...)
			continue
		}
		if err != nil && err != io.EOF {
			return nil, err
		}

		if len(line) > 0 {
			line = append(line, part...)
			part = line
		}
		last := err == io.EOF
		events, err = appendEvent(events, part)
		if err != nil {
			return nil, err
		}
		if last {
			return events, nil
		}
		line = line[:0]
	}
}

// appendEvent appends the event of a line, unless that is blank.
func appendEvent(events []wire.Event, line []byte) ([]wire.Event, error) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return events, nil
	}
	if len(events) == wire.BatchEventsMax {
		return nil, wire.Errorf(wire.CodeTooLarge,
			"The batch has more than %d events. Send smaller ones.", wire.BatchEventsMax)
	}

	e, err := wire.ParseEvent(line)
	if err != nil {
		return nil, wire.Invalid(wire.FieldError{
			Field:  "line " + strconv.Itoa(len(events)+1),
			Reason: err.Error(),
		})
	}

	return append(events, e), nil
}
