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

// IsHTTP2 reports whether a request is the preface with which clients of HTTP/2 begin (RFC 9113,
// section 3.4). Those of gRPC do.
func IsHTTP2(ctx *fasthttp.RequestCtx) bool {
	return string(ctx.Method()) == "PRI" && string(ctx.Request.Header.Protocol()) == "HTTP/2.0"
}

// Bounds of a connection of HTTP/2 that is refused.
const (
	http2Time     = time.Second // for its first request, and for it to hang up
	http2BytesMax = 64 << 10    // that are read of it
	http2FrameMax = 16 << 10    // as every client must keep to
)

// RefuseHTTP2 answers a connection of HTTP/2 with a message. Its first request gets the gRPC status
// UNIMPLEMENTED, which clients show and do not repeat. GOAWAY carries the message as well.
func (c *Connections) RefuseHTTP2(ctx *fasthttp.RequestCtx, message string) {
	// It still counts, and may be cut, until it is closed. With the hijack we get what fasthttp has
	// read of it already.
	counted := ctx.Conn()
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(conn net.Conn) {
		defer c.state(counted, fasthttp.StateClosed)
		_ = conn.SetWriteDeadline(time.Now().Add(2 * http2Time))
		_ = conn.SetReadDeadline(time.Now().Add(http2Time))
		in := io.LimitReader(conn, http2BytesMax)
		frames := http2.NewFramer(conn, in)
		frames.SetMaxReadFrameSize(http2FrameMax) // by default it takes 16 MiB at once
		_ = frames.WriteSettings()

		stream := firstStream(in, frames)
		if stream > 0 {
			_ = frames.WriteHeaders(http2.HeadersFrameParam{
				StreamID:      stream,
				BlockFragment: unimplemented(message),
				EndHeaders:    true,
				EndStream:     true,
			})
		}
		_ = frames.WriteGoAway(stream, http2.ErrCodeNo, []byte(message))

		// If we closed it with bytes unread, the answer might never reach the client.
		_ = conn.SetReadDeadline(time.Now().Add(http2Time))
		_, _ = io.Copy(io.Discard, in)
	})
}

// firstStream reads up to the headers of the first request, and returns its stream; 0 if there is
// none.
func firstStream(in io.Reader, frames *http2.Framer) uint32 {
	_, err := io.CopyN(io.Discard, in, int64(len("SM\r\n\r\n"))) // the preface's end
	for err == nil {
		var frame http2.Frame
		if frame, err = frames.ReadFrame(); err == nil && frame.Header().Type == http2.FrameHeaders {
			return frame.Header().StreamID
		}
	}

	return 0
}

// unimplemented returns the headers of gRPC's answer to a method that is not served.
func unimplemented(message string) []byte {
	var b bytes.Buffer
	headers := hpack.NewEncoder(&b)
	for _, h := range []hpack.HeaderField{
		{Name: ":status", Value: "200"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "grpc-status", Value: "12"},
		{Name: "grpc-message", Value: message},
	} {
		_ = headers.WriteField(h) // to a buffer
	}

	return b.Bytes()
}
