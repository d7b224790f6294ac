package intake

import (
	"io"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
	"promptspool/api/wire"
)

// Once a body is larger than a small one, each further PaceBytes of it must arrive within
// PaceTime.
const (
	PaceBytes = 512 << 10
	PaceTime  = 5 * time.Second
)

// sentReader reads a body as it was sent. It counts the bytes, and rejects more than max, or
// fewer than the pace demands.
//
// When a body breaks off, it closes the connection: fasthttp would look for the next chunk
// after one that is damaged, and for the next request after that.
type sentReader struct {
	ctx    *fasthttp.RequestCtx
	r      io.Reader
	n, max int64
	paced  bool
	next   int64 // the byte at which the next interval begins; 0 if none has begun
}

// Read reads the next bytes of the body.
func (s *sentReader) Read(p []byte) (int, error) {
	if s.paced && s.n >= max(s.next, smallBytes) {
		s.next = s.n + PaceBytes
		edge.Within(s.ctx.Conn(), PaceTime)
	}

	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.ctx.SetConnectionClose()
	}

	s.n += int64(n)
	if s.n > s.max {
		return n, tooLarge(s.max)
	}

	return n, err
}

// drainBytesMax is how much of an unwanted body is read and thrown away.
const drainBytesMax = wire.BodyBytesMax + (32 << 20)

// Drain reads the rest of a body and throws it away. A client that is still sending would not
// read its answer otherwise.
func Drain(ctx *fasthttp.RequestCtx) {
	stream := ctx.RequestBodyStream()
	if stream == nil {
		return
	}

	// The time for the body may be over already.
	edge.Within(ctx.Conn(), PaceTime)

	// Beyond the bound the connection is closed, because the rest of the body would be taken for
	// the next request.
	rest := &sentReader{ctx: ctx, r: stream, max: drainBytesMax, paced: true}
	if n, err := io.CopyN(io.Discard, rest, drainBytesMax); err != io.EOF || n == drainBytesMax {
		ctx.SetConnectionClose()
	}
}
