package admission

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
	"promptspool/api/wire"
)

// Encoding returns how a request's body is packed: "gzip", "deflate", "zstd", or "" if it
// is not. It rejects another encoding (415), and a body whose announced length is more
// than max bytes (413).
func Encoding(ctx *fasthttp.RequestCtx, max int64) (string, error) {
	if int64(ctx.Request.Header.ContentLength()) > max {
		return "", tooLarge(max)
	}

	encoding := strings.ToLower(strings.TrimSpace(string(ctx.Request.Header.ContentEncoding())))
	switch encoding {
	case "", "identity":
		return "", nil
	case "gzip", "x-gzip":
		return "gzip", nil
	case "zstd", "deflate":
		return encoding, nil
	}

	return "", wire.Errorf(wire.CodeEncoding,
		"Content-Encoding %.50q is not supported. Send the body uncompressed, or with gzip, deflate or zstd.", encoding)
}

// zstdPool holds decoders for batches. Decoders of other bodies are not kept, because there may
// be as many as there are connections.
var zstdPool = sync.Pool{New: func() any { return newZstdDecoder() }}

func newZstdDecoder() *zstd.Decoder {
	d, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		// The options are constants.
		panic("intake: zstd options: " + err.Error())
	}

	return d
}

// unpack returns a reader of the bytes that r holds packed. release gives back what it takes for
// that, to a pool if pooled is set.
func unpack(encoding string, r io.Reader, pooled bool) (unpacked io.Reader, release func(), err error) {
	release = func() {}
	switch encoding {
	case "gzip":
		// Without a header there is no gzip at all; io.EOF would look like the end of a body.
		z, err := gzip.NewReader(r)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return z, release, err
	case "deflate":
		// Some clients leave out the header of zlib (RFC 9110, section 8.4.1.2).
		packed := bufio.NewReader(r)
		head, _ := packed.Peek(2)
		if len(head) == 2 && (head[0]&0x0f != 8 || binary.BigEndian.Uint16(head)%31 != 0) {
			return flate.NewReader(packed), release, nil
		}
		z, err := zlib.NewReader(packed)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return z, release, err
	case "zstd":
		if !pooled {
			d := newZstdDecoder()
			return d, d.Close, d.Reset(r)
		}
		d := zstdPool.Get().(*zstd.Decoder)
		release = func() {
			// A decoder in the pool must not hold on to r.
			_ = d.Reset(nil)
			zstdPool.Put(d)
		}
		return d, release, d.Reset(r)
	}

	return r, release, nil
}

// readError returns the error of a body that could not be read to its end, or not be unpacked.
func readError(encoding string, err error) error {
	var e *wire.Error
	switch {
	case errors.As(err, &e):
		return e
	case edge.IsLate(err):
		return edge.TimeoutError(err)
	case encoding == "":
		return wire.Errorf(wire.CodeBadJSON, "The body could not be read to its end: %w", err)
	}

	return wire.Errorf(wire.CodeBadJSON, "The body is truncated, or not valid %s: %w", encoding, err)
}
