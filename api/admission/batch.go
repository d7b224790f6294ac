package admission

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"math"
	"runtime"
	"strconv"

	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
	"promptspool/api/wire"
)

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
	var line []byte // of a line that is longer than the buffer of in
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
