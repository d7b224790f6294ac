package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/admission"
	"promptspool/api/edge"
	"promptspool/api/wire"
)

// A caller must take each streamBytes of a streamed answer within streamStall, which is the pace
// that bodies must come at. Only the time in which we wait for the caller counts.
const (
	streamStall = time.Minute
	streamBytes = int64(streamStall/admission.PaceTime) * admission.PaceBytes
)

// stream answers with what write writes, as it comes, for at most timeMax. An error of
// write cuts the connection, so that a part is not taken for the whole. release is called
// when all is done, before the caller can see the end: it may have the freed place for
// its next request.
func (a *API) stream(
	ctx *fasthttp.RequestCtx, timeMax time.Duration,
	release func(), write func(ctx context.Context, w io.Writer) error,
) {
	// Not SetBodyStreamWriter, which ends a part as if it were the whole.
	from, to := io.Pipe()
	streamBody(ctx, from)

	go func() {
		writeCtx, cancel := context.WithTimeout(a.root, timeMax)
		defer cancel()
		defer func() {
			// Nobody else would recover a panic of this goroutine: it would end the process.
			if p := recover(); p != nil {
				a.notePanic(p)
				release()
				to.CloseWithError(io.ErrUnexpectedEOF)
			}
		}()

		// When the caller leaves, fasthttp closes from, and writes fail with io.ErrClosedPipe.
		buffered := bufio.NewWriterSize(to, 32<<10)
		err := errors.Join(write(writeCtx, buffered), buffered.Flush())
		switch {
		case err == nil, errors.Is(err, errPartial):
		case errors.Is(err, io.ErrClosedPipe):
			a.c.Logger.Warn("An export was cut: its caller disconnected, or read too slowly.",
				"min_bytes_per_second", streamBytes/int64(streamStall/time.Second))
		default:
			a.c.Logger.Warn("An export was cut.", "error", err)
		}
		release()
		to.CloseWithError(err)
	}()
}

// streamBody answers with what r gives, as it comes. fasthttp closes r when it is at its end or
// the caller has left.
func streamBody(ctx *fasthttp.RequestCtx, r io.Reader) {
	ctx.SetBodyStream(newPacedReader(ctx, r, streamBytes, streamStall), -1)
}

// pacedReader gives each part of an answer its own time to be written. The server's
// WriteTimeout is for a whole answer, and large exports take longer.
type pacedReader struct {
	io.Reader
	conn  net.Conn
	bytes int64 // of a part
	stall time.Duration

	read int64         // of this part
	left time.Duration // for the caller to take the rest of it
	last time.Time     // when the caller got the last part; zero at first
}

// newPacedReader returns an answer of which a caller must take each so many bytes within stall.
func newPacedReader(ctx *fasthttp.RequestCtx, r io.Reader, bytes int64, stall time.Duration) *pacedReader {
	return &pacedReader{
		Reader: r,
		conn:   ctx.Conn(),
		bytes:  bytes,
		stall:  stall,
		left:   stall,
	}
}

// Read is called by the goroutine that writes to the connection, before each part. So the time
// between two calls of it is what the caller took for a part.
func (r *pacedReader) Read(p []byte) (int, error) {
	if !r.last.IsZero() {
		r.left -= time.Since(r.last)
	}
	if r.read >= r.bytes {
		r.read, r.left = 0, r.stall
	}

	n, err := r.Reader.Read(p)
	r.read += int64(n)
	r.last = time.Now()
	_ = r.conn.SetWriteDeadline(r.last.Add(r.left))

	return n, err
}

// Close closes what is read, so that its writer notices a caller who has left.
func (r *pacedReader) Close() error {
	if c, ok := r.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// writeTemplate answers a request with a fetched template.
func writeTemplate(ctx *fasthttp.RequestCtx, t *wire.RenderedTemplate) {
	ctx.SetStatusCode(200)
	ctx.SetContentType("application/json")

	// It is written into the response's own buffer, so nothing is copied.
	body := ctx.Response.SwapBody(nil)
	ctx.Response.SwapBody(append(t.AppendJSON(body[:0]), '\n'))
}

// answer answers a request with what its capability returned.
func answer[T any](c *exchange, v T, err error) error {
	if err != nil {
		return err
	}
	c.warn(&v)
	edge.WriteJSON(c.ctx, 200, v)
	return nil
}

// done notes an action that succeeded, and answers with a message.
func (a *API) done(c *exchange, err error, action, target, detail, message string) error {
	if err != nil {
		return err
	}
	a.note(c, action, target, detail)

	return answer(c, wire.Done{Success: true, Message: message}, nil)
}

// writeError answers with an error. Internal errors are logged with their cause, which the
// answer does not reveal.
func writeError(ctx *fasthttp.RequestCtx, logger *slog.Logger, err error) {
	e := wire.AsError(err)
	logError(ctx, logger, e)
	edge.WriteError(ctx, e)
}

func logError(ctx *fasthttp.RequestCtx, logger *slog.Logger, e *wire.Error) {
	if e.Status() == 500 {
		logger.Error("a request failed", "path", string(ctx.Path()), "error", e)
	} else if e.Cause != nil {
		logger.Debug("a request was refused", "path", string(ctx.Path()), "error", e)
	}
}

// parseError answers what fasthttp could not read as a request. fasthttp closes the connection
// afterwards.
func parseError(version string) func(*fasthttp.RequestCtx, error) {
	return func(ctx *fasthttp.RequestCtx, err error) {
		ctx.Response.Header.Set("Promptspool-Version", version)
		edge.WriteParseError(ctx, err)
	}
}
