package api

import (
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// streamStall is how long a caller may take for a part of an answer that is streamed: some 32 KiB.
var streamStall = time.Minute

// streamBody answers with what r gives, as it comes. fasthttp closes r when it is at its end or the caller is gone.
func streamBody(ctx *fasthttp.RequestCtx, r io.Reader) {
	ctx.SetBodyStream(&streamed{Reader: r, conn: ctx.Conn()}, -1)
}

// streamed gives each part of an answer its own time to be written: the server's WriteTimeout is for a whole answer,
// and large exports take longer.
type streamed struct {
	io.Reader
	conn net.Conn
}

// Read is called by the goroutine that writes to the connection, before each part.
func (s *streamed) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	_ = s.conn.SetWriteDeadline(time.Now().Add(streamStall))

	return n, err
}

func (s *streamed) Close() error {
	if c, ok := s.Reader.(io.Closer); ok {
		return c.Close()
	}

	return nil
}
