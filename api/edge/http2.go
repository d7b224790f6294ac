package edge

import (
	"encoding/binary"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"
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
)

// Types and flags of frames.
const (
	frameHeaders  = 1
	frameSettings = 4
	frameGoAway   = 7

	endOfStream, endOfHeaders = 1, 4
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
		_, _ = conn.Write(appendFrame(nil, frameSettings, 0, 0, nil))
		stream := firstStream(in)

		var answer []byte
		if stream > 0 {
			answer = appendFrame(answer, frameHeaders, endOfStream|endOfHeaders, stream, unimplemented(message))
		}
		last := binary.BigEndian.AppendUint32(nil, stream)
		goAway := append(binary.BigEndian.AppendUint32(last, 0), message...) // with NO_ERROR
		_, _ = conn.Write(appendFrame(answer, frameGoAway, 0, 0, goAway))

		// If we closed it with bytes unread, the answer might never reach the client.
		_ = conn.SetReadDeadline(time.Now().Add(http2Time))
		_, _ = io.Copy(io.Discard, in)
	})
}

// firstStream reads frames up to the headers of the first request, and returns its stream; 0 if there
// is none.
func firstStream(in io.Reader) uint32 {
	if _, err := io.CopyN(io.Discard, in, int64(len("SM\r\n\r\n"))); err != nil { // the preface's end
		return 0
	}

	var head [9]byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return 0
		}
		length := binary.BigEndian.Uint32(head[:4]) >> 8
		if head[3] == frameHeaders {
			return binary.BigEndian.Uint32(head[5:]) &^ (1 << 31)
		}
		if _, err := io.CopyN(io.Discard, in, int64(length)); err != nil {
			return 0
		}
	}
}

// appendFrame appends a frame (RFC 9113, section 4.1).
func appendFrame(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload))<<8|uint32(kind))
	b = append(b, flags)
	b = binary.BigEndian.AppendUint32(b, stream)

	return append(b, payload...)
}

// unimplemented returns the headers of a gRPC answer, as HPACK (RFC 7541) without its compression.
func unimplemented(message string) []byte {
	b := []byte{0x80 | 8} // :status 200
	for _, header := range [][2]string{
		{"content-type", "application/grpc"}, {"grpc-status", "12"}, {"grpc-message", message},
	} {
		b = append(b, 0) // a literal that is not indexed
		for _, text := range header {
			if b = append(b, byte(min(len(text), 127))); len(text) >= 127 {
				b = binary.AppendUvarint(b, uint64(len(text)-127))
			}
			b = append(b, text...)
		}
	}

	return b
}
