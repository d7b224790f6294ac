package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
	"promptspool/api/wire"
)

// A batch is read in two steps. First come the bytes as they were sent: whoever sends slowly, or stops, holds only what has
// arrived. Then they are unpacked, a line at a time, by as many as there are processors for it: unpacking waits for nobody, so
// the memory that decoders need stays bounded however many connections there are. Every byte is claimed from shares before
// it is kept.

// batchChunk is by how much the buffer of a batch grows at first; it doubles from there.
const batchChunk = 16 << 10

// decoders bounds how many batches are unpacked at once, and shares the time for it between keys by the bytes of what they sent.
var decoders = gate{room: int64(2 * runtime.GOMAXPROCS(0)), most: math.MaxInt}

// forever is the patience of who waits until a call ends.
const forever time.Duration = math.MaxInt64

var zstdPool = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		panic("api: zstd options: " + err.Error()) // the options are constants
	}
	return d
}}

// announced checks what the header tells of a batch, before its key is looked at: the length and the encoding, which it returns.
func announced(ctx *fasthttp.RequestCtx) (encoding string, err error) {
	if ctx.Request.Header.ContentLength() > wire.BatchBodyBytesMax {
		return "", tooLarge(wire.BatchBodyBytesMax)
	}
	encoding = strings.ToLower(strings.TrimSpace(string(ctx.Request.Header.Peek("Content-Encoding"))))
	switch encoding {
	case "", "identity", "gzip", "x-gzip", "zstd":
		return encoding, nil
	}
	return "", wire.Errorf(wire.CodeEncoding, "Content-Encoding %.50q is not known here. Send the body plain, or with gzip or zstd.", encoding)
}

// readEvents reads the events of a batch. What it returns is claimed; the caller gives the claim back when they are done with.
func (a *API) readEvents(c *call, held *claim) ([]wire.Event, error) {
	encoding, err := announced(c.ctx)
	if err != nil {
		return nil, err
	}
	sent, err := receive(c.ctx, held)
	if err != nil {
		return nil, err
	}
	edge.Answering(c.ctx.Conn())
	defer held.shrink(int64(cap(sent)))
	if decoders.enter(c.life, held.key, 1, int64(len(sent)), forever) != nil {
		return nil, stopping(c.life)
	}
	defer decoders.leave(1)
	var r io.Reader = bytes.NewReader(sent)
	switch encoding {
	case "gzip", "x-gzip":
		if r, err = gzip.NewReader(r); err != nil {
			return nil, notWhole(encoding, err)
		}
	case "zstd":
		d := zstdPool.Get().(*zstd.Decoder)
		defer func() {
			_ = d.Reset(nil) // lets go of sent
			zstdPool.Put(d)
		}()
		if err := d.Reset(r); err != nil {
			return nil, notWhole(encoding, err)
		}
		r = d
	}
	events, err := parseEvents(r, held)
	if e := (*wire.Error)(nil); err != nil && !errors.As(err, &e) {
		return nil, notWhole(encoding, err)
	}
	return events, err
}

// receive reads the bytes of a body as they were sent. Their capacity is claimed.
func receive(ctx *fasthttp.RequestCtx, held *claim) ([]byte, error) {
	declared := ctx.Request.Header.ContentLength()
	stream := ctx.RequestBodyStream()
	if stream == nil || declared == 0 {
		return nil, nil
	}
	var sent []byte
	for {
		if len(sent) == cap(sent) {
			// It does not trust Content-Length: who only announces a large body must not hold the memory for it.
			more := max(batchChunk, cap(sent))
			if declared > cap(sent) {
				more = min(more, declared+1-cap(sent)) // with a byte to meet the end in
			}
			if err := held.grow(int64(more)); err != nil {
				held.shrink(int64(cap(sent)))
				return nil, err
			}
			sent = append(make([]byte, 0, cap(sent)+more), sent...)
		}
		n, err := stream.Read(sent[len(sent):cap(sent)])
		sent = sent[:len(sent)+n]
		if err == io.EOF && declared > 0 && len(sent) < declared {
			err = io.ErrUnexpectedEOF
		}
		switch {
		case len(sent) > wire.BatchBodyBytesMax:
			err = tooLarge(wire.BatchBodyBytesMax)
		case err == io.EOF:
			return sent, nil
		case edge.IsLate(err):
			ctx.SetConnectionClose() // see counter
			err = late(err)
		case err != nil:
			ctx.SetConnectionClose()
			err = notWhole("", err)
		}
		if err != nil {
			held.shrink(int64(cap(sent)))
			return nil, err
		}
	}
}

// parseEvents reads one event a line. A line that is no event refuses the whole batch, so that the sidecar halves it until it has
// found the one.
func parseEvents(r io.Reader, held *claim) ([]wire.Event, error) {
	in := bufio.NewReaderSize(r, 32<<10)
	var events []wire.Event
	var line []byte // of a line longer than in's buffer
	total, lines := 0, 0
	for {
		if lines++; lines > 2*wire.BatchEventsMax { // blank ones: millions of them pack into a few bytes
			return nil, wire.Errorf(wire.CodeTooLarge, "The batch has more than %d lines. Send smaller ones.", 2*wire.BatchEventsMax)
		}
		part, err := in.ReadSlice('\n')
		if total += len(part); total > wire.BatchBodyBytesMax {
			return nil, tooLarge(wire.BatchBodyBytesMax)
		}
		if err := held.grow(int64(len(part))); err != nil {
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

// appendEvent appends the event of a line, unless that is blank. It returns end if all is well.
func appendEvent(events []wire.Event, line []byte, end error) ([]wire.Event, error) {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return events, end
	}
	if len(events) == wire.BatchEventsMax {
		return nil, wire.Errorf(wire.CodeTooLarge, "The batch has more than %d events. Send smaller ones.", wire.BatchEventsMax)
	}
	e, err := wire.ParseEvent(line)
	if err != nil {
		return nil, wire.Invalid(wire.FieldError{Field: "line " + strconv.Itoa(len(events)+1), Reason: err.Error()})
	}
	return append(events, e), end
}

func notWhole(encoding string, err error) error {
	if encoding == "" || encoding == "identity" {
		return wire.Errorf(wire.CodeBadJSON, "The body could not be read to its end: %w", err)
	}
	return wire.Errorf(wire.CodeBadJSON, "The body is not whole, valid %s: %w", encoding, err)
}

// stopping is the error of a call whose time is over, or whose server ends.
func stopping(life context.Context) error {
	return wire.Unavailable(comebackMin, "The call ended before it was its turn: %w. Send it again.", life.Err())
}
