package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"
)

// A caller must take each streamBytes of an answer that is streamed within streamStall, which is the pace that bodies
// must come at. Only the time in which we wait for the caller counts.
const (
	streamStall = time.Minute
	streamBytes = int64(streamStall/paceTime) * paceBytes
)

// stream answers with what write writes, as it comes, for at most so long. write's error cuts the connection, so that
// nobody takes a part for the whole. end is called when all is done, before the caller can see the end.
func (a *API) stream(ctx *fasthttp.RequestCtx, most time.Duration, end func(), write func(ctx context.Context, w io.Writer) error) {
	// Not SetBodyStreamWriter, which ends a part as if it were the whole.
	from, to := io.Pipe()
	streamBody(ctx, from)

	go func() {
		life, done := context.WithTimeout(a.life, most)
		defer done()
		defer func() {
			if p := recover(); p != nil { // here it would end the process
				a.c.Metrics.Panics.Inc()
				a.c.Logger.Error("an answer that is streamed panicked", "panic", p, "stack", string(debug.Stack()))
				end()
				to.CloseWithError(io.ErrUnexpectedEOF)
			}
		}()

		// When the caller goes, writes fail.
		buffered := bufio.NewWriterSize(to, 32<<10)
		err := errors.Join(write(life, buffered), buffered.Flush())
		switch {
		case err == nil, errors.Is(err, errEnough):
		case errors.Is(err, io.ErrClosedPipe):
			a.c.Logger.Warn("An export was cut: its caller disconnected, or read too slowly.",
				"min_bytes_per_second", streamBytes/int64(streamStall/time.Second))
		default:
			a.c.Logger.Warn("An export was cut.", "error", err)
		}
		end()
		to.CloseWithError(err)
	}()
}

// streamBody answers with what r gives, as it comes. fasthttp closes r when it is at its end or the caller is gone.
func streamBody(ctx *fasthttp.RequestCtx, r io.Reader) {
	ctx.SetBodyStream(newStreamed(ctx, r, streamBytes, streamStall), -1)
}

// streamed gives each stretch of an answer its own time to be written: the server's WriteTimeout is for a whole answer,
// and large exports take longer.
type streamed struct {
	io.Reader
	conn  net.Conn
	bytes int64 // of a stretch
	stall time.Duration

	read  int64         // of this stretch
	left  time.Duration // for the caller to take the rest of it
	given time.Time     // when the caller got the last part; zero at first
}

// newStreamed returns an answer of which a caller must take each so many bytes within stall.
func newStreamed(ctx *fasthttp.RequestCtx, r io.Reader, bytes int64, stall time.Duration) *streamed {
	return &streamed{Reader: r, conn: ctx.Conn(), bytes: bytes, stall: stall, left: stall}
}

// Read is called by the goroutine that writes to the connection, before each part.
func (s *streamed) Read(p []byte) (int, error) {
	if !s.given.IsZero() {
		s.left -= time.Since(s.given)
	}
	if s.read >= s.bytes {
		s.read, s.left = 0, s.stall
	}

	n, err := s.Reader.Read(p)
	s.read += int64(n)
	s.given = time.Now()
	_ = s.conn.SetWriteDeadline(s.given.Add(s.left))

	return n, err
}

func (s *streamed) Close() error {
	if c, ok := s.Reader.(io.Closer); ok {
		return c.Close()
	}

	return nil
}
