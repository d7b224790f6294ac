package api

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"runtime"
	"strconv"

	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"promptspool/api/admission"
	"promptspool/api/edge"
	"promptspool/api/wire"
)

// batch is one batch on its way in. It is read in two steps. First come the bytes as they were
// sent: a client that sends slowly, or stops, holds only what has arrived. Then they are unpacked,
// a line at a time, by as many as there are processors for it: unpacking waits for nobody, so the
// memory that decoders need stays bounded however many connections there are. Every byte is
// claimed before it is kept.
type batch struct{ body body }

// unpacking bounds how many batches are unpacked at the same time, and shares the time for it
// between keys by the bytes of what they sent.
var unpacking = admission.NewQueue(int64(2*runtime.GOMAXPROCS(0)), math.MaxInt, nil)

// newBatch makes the batch of a key. Its claim must be released.
func (a *API) newBatch(key string) *batch {
	return &batch{body{claim: a.batches.Claim(key), refuse: a.refuseBatch}}
}

func (a *API) refuseBatch(err error) error {
	if errors.Is(err, admission.ErrShare) {
		a.c.Metrics.Shed.WithLabelValues("share").Inc()
		return &wire.Error{
			Code:       wire.CodeTooMany,
			RetryAfter: a.batchRetry.Next(),
			Message: "This key's batches already take as much of the server's memory as is fair to other " +
				"keys. Retry after the time in Retry-After, with fewer batches at the same time.",
		}
	}

	a.c.Metrics.Shed.WithLabelValues("bytes").Inc()
	return wire.Unavailable(a.batchRetry.Next(),
		"The server is overloaded: its memory for batches is full. Retry after the time in Retry-After.")
}

// reserve claims more bytes, or gives some back.
func (b *batch) reserve(more int) error {
	claim := &b.body.claim
	if err := claim.Resize(claim.Held() + int64(more)); err != nil {
		return b.body.refuse(err)
	}

	return nil
}

// receive reads the bytes of the batch as they were sent.
func (b *batch) receive(ctx *fasthttp.RequestCtx) error {
	b.body.open(ctx, wire.BatchBodyBytesMax, false)
	if b.body.declared == 0 {
		return nil
	}
	if err := b.body.fill(&b.body.sent, wire.BatchBodyBytesMax); err != nil {
		return unreadable("", err)
	}

	return nil
}

// events reads the events of the call's batch, which stay claimed.
func (b *batch) events(c *call) ([]wire.Event, error) {
	encoding, err := encodingOf(c.ctx, wire.BatchBodyBytesMax)
	if err != nil {
		return nil, err
	}
	if err := b.receive(c.ctx); err != nil {
		return nil, err
	}
	edge.Answering(c.ctx.Conn())

	sent := b.body.bytes
	defer func() { _ = b.reserve(-cap(sent)) }()
	if unpacking.Enter(c.life, c.id.KeyID, 1, int64(len(sent)), admission.Forever) != nil {
		return nil, endedWaiting(c.life)
	}
	defer unpacking.Leave(1)

	pooled := func() *zstd.Decoder { return zstdPool.Get().(*zstd.Decoder) }
	r, err := unpack(encoding, bytes.NewReader(sent), pooled)
	if d, ok := r.(*zstd.Decoder); ok {
		defer func() {
			_ = d.Reset(nil) // lets go of sent
			zstdPool.Put(d)
		}()
	}
	if err != nil {
		return nil, unreadable(encoding, err)
	}
	events, err := b.parse(r)
	if err != nil {
		return nil, unreadable(encoding, err)
	}

	return events, nil
}

// parse reads one event a line, which it claims. A line that is no event refuses the whole batch,
// so that the sidecar halves it until it has found the one.
func (b *batch) parse(r io.Reader) ([]wire.Event, error) {
	in := bufio.NewReaderSize(r, 32<<10)
	var events []wire.Event
	var line []byte // of a line longer than in's buffer
	total, lines := 0, 0
	for {
		if lines++; lines > 2*wire.BatchEventsMax { // blank ones: millions of them pack into a few bytes
			return nil, wire.Errorf(wire.CodeTooLarge, "The batch has more than %d lines. Send smaller ones.",
				2*wire.BatchEventsMax)
		}
		part, err := in.ReadSlice('\n')
		if total += len(part); total > wire.BatchBodyBytesMax {
			return nil, tooLarge(wire.BatchBodyBytesMax)
		}
		if err := b.reserve(len(part)); err != nil {
			return nil, err
		}

		if err == bufio.ErrBufferFull {
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
		if events, err = appendEvent(events, part, err); err != nil {
			if err == io.EOF {
				return events, nil
			}
			return nil, err
		}
		line = line[:0]
	}
}

// appendEvent appends the event of a line, unless that is blank. It returns end if there is no fault.
func appendEvent(events []wire.Event, line []byte, end error) ([]wire.Event, error) {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return events, end
	}
	if len(events) == wire.BatchEventsMax {
		return nil, wire.Errorf(wire.CodeTooLarge, "The batch has more than %d events. Send smaller ones.",
			wire.BatchEventsMax)
	}
	e, err := wire.ParseEvent(line)
	if err != nil {
		line := "line " + strconv.Itoa(len(events)+1)
		return nil, wire.Invalid(wire.FieldError{Field: line, Reason: err.Error()})
	}

	return append(events, e), end
}
