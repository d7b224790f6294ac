package edge

import (
	"bytes"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"promptspool/api/wire"
)

// CheckHead rejects requests whose end a proxy in front of us might place elsewhere (request
// smuggling). They are those with both a length and chunks, with another encoding than chunks,
// with a folded line, or with a line that ends without a carriage return (RFC 9112, sections 2.2,
// 5.2, 6.3). It has the connection closed, so that nothing after one is taken for a request.
func CheckHead(ctx *fasthttp.RequestCtx) error {
	doubt := doubtfulPart(ctx.Request.Header.RawHeaders())
	if doubt == "" {
		return nil
	}

	ctx.SetConnectionClose()

	return wire.Errorf(wire.CodeBadJSON,
		"The request's head has %s, so where the request ends is in doubt. Send it without.", doubt)
}

// Names of headers, with the colon after them.
var (
	lengthName = []byte("content-length:")
	codingName = []byte("transfer-encoding:")
	chunked    = []byte("chunked")
)

// doubtfulPart names what in a head leaves the end of its request in doubt; "" if nothing does.
func doubtfulPart(head []byte) string {
	hasLength, hasChunks := false, false
	for len(head) > 0 {
		line, rest, ended := bytes.Cut(head, []byte("\n"))
		if ended && !bytes.HasSuffix(line, []byte("\r")) {
			return "a line that ends without a carriage return"
		}
		if bytes.HasPrefix(line, []byte(" ")) || bytes.HasPrefix(line, []byte("\t")) {
			return "a folded line"
		}

		if _, ok := cutName(line, lengthName); ok {
			hasLength = true
		}
		if coding, ok := cutName(line, codingName); ok {
			hasChunks = true
			if !bytes.EqualFold(bytes.TrimSpace(coding), chunked) {
				return "a Transfer-Encoding other than chunked"
			}
		}
		head = rest
	}

	if hasLength && hasChunks {
		return "both Content-Length and Transfer-Encoding"
	}

	return ""
}

// cutName returns the value of a header's line if it has this name, which ends in a colon.
func cutName(line, name []byte) (value []byte, ok bool) {
	// Most names differ in their first letter.
	if len(line) < len(name) || line[0]|0x20 != name[0] || !bytes.EqualFold(line[:len(name)], name) {
		return nil, false
	}

	return line[len(name):], true
}

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
		// This is the end of the preface.
		_, _ = io.CopyN(io.Discard, in, int64(len("SM\r\n\r\n")))

		frames := http2.NewFramer(conn, in)
		// Clients must keep to this; by default it takes 16 MiB.
		frames.SetMaxReadFrameSize(16 << 10)
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
