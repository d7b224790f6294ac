package api

import (
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
	"promptspool/api/wire"
)

// encodingOf checks what a call's head says of its body: that it is at most max bytes, and how it
// is packed, which it returns: "gzip", "zstd", or "" if it is not.
func encodingOf(ctx *fasthttp.RequestCtx, max int64) (string, error) {
	if int64(ctx.Request.Header.ContentLength()) > max {
		return "", tooLarge(max)
	}

	encoding := strings.ToLower(strings.TrimSpace(string(ctx.Request.Header.PeekCanonical(encodingHeader))))
	switch encoding {
	case "", "identity":
		return "", nil
	case "gzip", "x-gzip":
		return "gzip", nil
	case "zstd":
		return encoding, nil
	}

	return "", wire.Errorf(wire.CodeEncoding,
		"Content-Encoding %.50q is not known here. Send the body plain, or with gzip or zstd.", encoding)
}

// zstdPool holds decoders for batches. Those of other bodies are not kept: there may be as many
// as there are connections.
var zstdPool = sync.Pool{New: func() any { return newZstdDecoder() }}

func newZstdDecoder() *zstd.Decoder {
	d, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		panic("api: zstd options: " + err.Error()) // the options are constants
	}

	return d
}

// unpack returns a reader of what r holds packed. decoder is called if it is needed.
func unpack(encoding string, r io.Reader, decoder func() *zstd.Decoder) (io.Reader, error) {
	switch encoding {
	case "gzip":
		z, err := gzip.NewReader(r)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return z, err
	case "zstd":
		d := decoder()
		return d, d.Reset(r)
	}

	return r, nil
}

// unreadable is the error of a body that could not be read to its end, or unpacked.
func unreadable(encoding string, err error) error {
	var e *wire.Error
	switch {
	case errors.As(err, &e):
		return e
	case edge.IsLate(err):
		return late(err)
	case encoding == "":
		return wire.Errorf(wire.CodeBadJSON, "The body could not be read to its end: %w", err)
	}

	return wire.Errorf(wire.CodeBadJSON, "The body is not whole, valid %s: %w", encoding, err)
}
