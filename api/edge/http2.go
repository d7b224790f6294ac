package edge

import (
	"bytes"
	"io"
	"net"
	"strings"
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
		frames.ReadMetaHeaders = hpack.NewDecoder(4<<10, nil)
		frames.MaxHeaderListSize = http2FrameMax
		frames.SetMaxReadFrameSize(http2FrameMax) // by default it takes 16 MiB at once
		_ = frames.WriteSettings()

		last := uint32(0)
		if request := firstRequest(in, frames); request != nil {
			last = request.StreamID
			_ = frames.WriteHeaders(http2.HeadersFrameParam{
				StreamID:      last,
				BlockFragment: refusalOf(request, message),
				EndHeaders:    true,
				EndStream:     true,
			})
		}
		_ = frames.WriteGoAway(last, http2.ErrCodeNo, []byte(message))

		// If we closed it with bytes unread, the answer might never reach the client.
		_ = conn.SetReadDeadline(time.Now().Add(http2Time))
		_, _ = io.Copy(io.Discard, in)
	})
}

// firstRequest reads up to the headers of the first request; nil if none comes.
func firstRequest(in io.Reader, frames *http2.Framer) *http2.MetaHeadersFrame {
	_, err := io.CopyN(io.Discard, in, int64(len("SM\r\n\r\n"))) // the preface's end
	for err == nil {
		var frame http2.Frame
		frame, err = frames.ReadFrame()
		if request, ok := frame.(*http2.MetaHeadersFrame); ok {
			return request
		}
	}

	return nil
}

// refusalOf returns the headers of the answer to a request. A client of gRPC reads its status only
// with a 200, which others would take for success.
func refusalOf(request *http2.MetaHeadersFrame, message string) []byte {
	status := "505"
	for _, f := range request.Fields {
		if f.Name == "content-type" && strings.HasPrefix(f.Value, "application/grpc") {
			status = "200"
		}
	}

	var b bytes.Buffer
	headers := hpack.NewEncoder(&b)
	for _, h := range []hpack.HeaderField{
		{Name: ":status", Value: status},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "grpc-status", Value: "12"},
		{Name: "grpc-message", Value: message},
	} {
		_ = headers.WriteField(h) // to a buffer
	}

	return b.Bytes()
}
