package api

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
	"promptspool/api/otlp"
	"promptspool/api/wire"
)

// grpcPaths has the path of the request over HTTP that is the same as a call of a method.
var grpcPaths = map[string]string{
	"/opentelemetry.proto.collector.trace.v1.TraceService/Export":     "/v1/traces",
	"/opentelemetry.proto.collector.logs.v1.LogsService/Export":       "/v1/logs",
	"/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": "/v1/metrics",
}

// handleGRPC answers a call of gRPC.
func (a *API) handleGRPC(call *edge.Call, isAdmitted bool) {
	path, isKnown := grpcPaths[call.Path]

	switch {
	case !isKnown:
		answerGRPC(call, nil, wire.Errorf(wire.CodeNotImplemented,
			"There is no method %.200s here. OpenTelemetry's Export of traces, logs and metrics is served.", call.Path))
	case !isAdmitted:
		answerGRPC(call, nil, wire.Unavailable(time.Second,
			"Too many requests are being answered. Send this again in a second."))
	default:
		a.exportGRPC(call, path)
	}
}

var grpcRequests = sync.Pool{New: func() any { return new(fasthttp.RequestCtx) }}

// exportGRPC answers an export as the request over HTTP to a path that carries the same message, so that
// all steps and bounds are the same.
func (a *API) exportGRPC(call *edge.Call, path string) {
	ctx := grpcRequests.Get().(*fasthttp.RequestCtx)
	ctx.Init2(call, printfLogger{a.c.Logger}, false)
	head := &ctx.Request.Header
	for _, f := range call.Fields {
		head.Add(f.Name, f.Value)
	}
	head.SetMethod("POST")
	head.SetHost(call.Host)
	head.SetContentType(otlp.Protobuf.ContentType())
	ctx.Request.SetRequestURI(path)

	// The length of the message is known before it is read, as that of a body.
	message := readFrame(call)
	head.Del("Content-Encoding")
	if message.packed {
		head.SetBytesV("Content-Encoding", head.Peek("Grpc-Encoding"))
	}
	ctx.Request.SetBodyStream(message, int(message.left))
	err := a.handle(ctx, true)
	answerGRPC(call, ctx.Response.Body(), err)

	ctx.Request.Reset()
	ctx.Response.Reset()
	grpcRequests.Put(ctx)
}

// grpcMessage is the message of a call.
type grpcMessage struct {
	r      io.Reader
	packed bool
	left   int64
	err    error // of the frame
}

// readFrame reads what is in front of a message.
func readFrame(r io.Reader) *grpcMessage {
	var frame [5]byte
	_, err := io.ReadFull(r, frame[:])
	switch {
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	case err == nil && frame[0] > 1:
		err = errors.New("the first byte of its frame is neither 0 nor 1")
	}

	return &grpcMessage{r, frame[0] == 1, int64(binary.BigEndian.Uint32(frame[1:])), err}
}

// Read reads the message. The call must end with it.
func (m *grpcMessage) Read(b []byte) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	if m.left == 0 {
		n, err := m.r.Read(b[:1])
		if n > 0 {
			err = errors.New("the call has more than one message")
		}
		return 0, err
	}
	n, err := m.r.Read(b[:min(int64(len(b)), m.left)])
	m.left -= int64(n)
	if err == io.EOF && m.left > 0 {
		err = io.ErrUnexpectedEOF
	}

	return n, err
}

// grpcDone are the trailers of an answer that has a message.
var grpcDone = edge.HeaderBlock("grpc-status", "0")

// answerGRPC answers a call with a message, or with an error.
func answerGRPC(call *edge.Call, message []byte, err error) {
	if err == nil {
		frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
		call.Answer(append(frame, message...), grpcDone)
		return
	}

	e := exporterError(err)
	call.Answer(nil, edge.HeaderBlock(
		"grpc-accept-encoding", "identity,gzip,deflate,zstd",
		"grpc-status", strconv.Itoa(otlp.StatusCode(e)),
		"grpc-message", url.PathEscape(e.Message),
		"grpc-status-details-bin", base64.RawStdEncoding.EncodeToString(otlp.Status(e)),
	))
}
