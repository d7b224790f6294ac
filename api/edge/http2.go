package edge

import (
	"bytes"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Bounds of a connection of HTTP/2 that is refused.
const (
	http2Time     = time.Second // for its first request, and for it to hang up
	http2BytesMax = 128 << 10   // that are read of it: clients send 64 KiB before they wait
)

// How the first line of a connection of HTTP/2 (RFC 9113, section 3.4) is sent, and how fasthttp
// reads it: as a request with the method PRI.
var (
	preface     = []byte("PRI * HTTP/2.0\r\n")
	prefaceRead = []byte("PRI / HTTP/1.0\r\n")
)

// RefuseHTTP2 answers a connection of HTTP/2 with a message. ctx is its preface. The first
// request after it gets the gRPC status UNIMPLEMENTED, which clients show and do not repeat. GOAWAY
// carries the message as well.
func (c *Connections) RefuseHTTP2(ctx *fasthttp.RequestCtx, message string) {
	// It still counts, and may be cut, until it is closed. With the hijack we get what fasthttp has
	// read of it already.
	counted := ctx.Conn()
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(conn net.Conn) {
		defer c.state(counted, fasthttp.StateClosed)
		_ = conn.SetReadDeadline(time.Now().Add(http2Time))
		in := io.LimitReader(conn, http2BytesMax)
		_, _ = io.CopyN(io.Discard, in, int64(len("SM\r\n\r\n"))) // the preface's end

		frames := http2.NewFramer(conn, in)
		frames.SetMaxReadFrameSize(16 << 10) // as clients must keep to; by default it takes 16 MiB
		_ = frames.WriteSettings()
		frame, err := frames.ReadFrame()
		for err == nil && frame.Header().Type != http2.FrameHeaders {
			frame, err = frames.ReadFrame()
		}

		last := uint32(0)
		if err == nil {
			last = frame.Header().StreamID
			_ = frames.WriteHeaders(http2.HeadersFrameParam{
				StreamID:      last,
				BlockFragment: unimplemented(message),
				EndHeaders:    true,
				EndStream:     true,
			})
		}
		_ = frames.WriteGoAway(last, http2.ErrCodeNo, []byte(message))

		// If we closed it with bytes unread, the answer might never reach the client.
		_, _ = io.Copy(io.Discard, in)
	})
}

// unimplemented returns the headers of gRPC's answer to a method that is not served.
func unimplemented(message string) []byte {
	var b bytes.Buffer
	headers := hpack.NewEncoder(&b)
	for _, h := range [][2]string{
		{":status", "200"}, {"content-type", "application/grpc"}, {"grpc-status", "12"}, {"grpc-message", message},
	} {
		_ = headers.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}) // to a buffer
	}

	return b.Bytes()
}
