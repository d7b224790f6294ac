package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"promptspool/api"
	"promptspool/api/admission"
	"promptspool/api/wire"
	"promptspool/metrics"
)

const (
	exportSpans   = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
	exportLogs    = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
	exportMetrics = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
)

// caller makes calls of gRPC, over HTTP/2 without TLS.
type caller struct {
	t    *testing.T
	addr string
	http *http.Client
}

func newCaller(t *testing.T, addr string) *caller {
	transport := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &caller{t, addr, &http.Client{Transport: transport}}
}

// returned is what a call returned.
type returned struct {
	http            int
	status, message string
	details         string // google.rpc.Status in protobuf
	body            string
}

// call sends bytes as the body of a call. header lists names and values.
func (c *caller) call(path string, body io.Reader, header ...string) returned {
	c.t.Helper()
	req, err := http.NewRequest("POST", "http://"+c.addr+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("TE", "trailers")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	message, _ := url.PathUnescape(res.Trailer.Get("Grpc-Message"))
	details, _ := base64.RawStdEncoding.DecodeString(res.Trailer.Get("Grpc-Status-Details-Bin"))

	return returned{res.StatusCode, res.Trailer.Get("Grpc-Status"), message, string(details), string(answer)}
}

// framed returns a message as it is sent.
func framed(flag byte, message string) string {
	return string(binary.BigEndian.AppendUint32([]byte{flag}, uint32(len(message)))) + message
}

func TestAnExportOverGRPCIsTheOneOverHTTP(t *testing.T) {
	s, addr := startTCP(t, nil)
	c := newCaller(t, addr)
	spans := spanRequest(t)
	status, _, _, _ := s.export("/v1/traces", spans, "X-API-KEY", "app", "Content-Type", "application/x-protobuf")
	if status != 200 {
		t.Fatal(status)
	}

	basic := base64.StdEncoding.EncodeToString([]byte("public:app"))
	calls := []struct {
		path, body string
		header     []string
	}{
		{exportSpans, framed(0, spans), []string{"x-api-key", "app"}},
		{exportSpans, framed(0, spans), []string{"authorization", "Bearer app"}},
		{exportSpans, framed(0, spans), []string{"x-api-key", "app", "content-type", "application/grpc+proto"}},
		{exportSpans, framed(0, spans), []string{"authorization", "Basic " + basic}},
		{exportSpans, framed(1, gzipOf(spans)), []string{"x-api-key", "app", "grpc-encoding", "gzip"}},
		{exportSpans, framed(0, spans), []string{"x-api-key", "app", "grpc-encoding", "gzip"}},
		{exportSpans, framed(1, zstdOf(t, []byte(spans))), []string{"x-api-key", "app", "grpc-encoding", "zstd"}},
		{exportLogs, framed(0, spans), []string{"x-api-key", "app"}}, // settings mix them up
	}
	for _, call := range calls {
		got := c.call(call.path, strings.NewReader(call.body), call.header...)
		if got.status != "0" || got.body != framed(0, "") {
			t.Errorf("%s %v: %+v", call.path, call.header, got)
		}
	}
	if got := c.call(exportMetrics, strings.NewReader(framed(0, "")), "x-api-key", "app"); got.status != "0" ||
		!strings.Contains(got.body, "1 metrics export dropped") {
		t.Errorf("metrics: %+v", got)
	}

	if len(s.recorder.events) != 1+len(calls) {
		t.Fatalf("%d events were recorded", len(s.recorder.events))
	}
	first := s.recorder.events[0]
	for _, e := range s.recorder.events {
		if e.Kind != wire.KindSpan || e.ID != first.ID || e.RequestID != first.RequestID ||
			!bytes.Equal(e.Body, first.Body) {
			t.Errorf("another event: %+v with %s", e, e.Body)
		}
	}
}

func TestRefusalsOverGRPCAreOfItsStatusCodes(t *testing.T) {
	const (
		invalid, denied, exhausted, unimplemented, internal = "3", "7", "8", "12", "13"
		unavailable, unauthenticated                        = "14", "16"
	)
	full := false
	limiter := new(admission.Limiter)
	_, addr := startTCP(t, func(c *api.Config) {
		c.Limiter = limiter
		c.Recorder.(*recorder).do = func(events []wire.Event) ([]wire.Result, error) {
			if full {
				return nil, wire.Unavailable(time.Minute, "The spool is full.")
			}
			panic("a mistake")
		}
	})
	c := newCaller(t, addr)
	spans := spanRequest(t)
	app, frame := []string{"x-api-key", "app"}, framed(0, spans)
	const broken = "could not be read to its end"
	for name, call := range map[string]struct {
		path, body string
		header     []string
		want       string
		says       string
	}{
		"no key":             {exportSpans, frame, nil, unauthenticated, "The key is missing."},
		"an unknown key":     {exportSpans, frame, []string{"x-api-key", "x"}, unauthenticated, "not known"},
		"another key":        {exportSpans, frame, []string{"x-api-key", "read"}, denied, "scope"},
		"another service":    {"/grpc.health.v1.Health/Check", "", nil, unimplemented, "no method /grpc"},
		"a route of HTTP":    {"/rest/track-request", framed(0, "{}"), app, unimplemented, "no method"},
		"another packing":    {exportSpans, framed(1, "x"), []string{"grpc-encoding", "br"}, unimplemented, `"br"`},
		"no gzip":            {exportSpans, framed(1, "x"), []string{"grpc-encoding", "gzip"}, invalid, "valid gzip"},
		"no protobuf":        {exportSpans, framed(0, "\x0a\x05"), app, invalid, "ExportTraceServiceRequest"},
		"no frame":           {exportSpans, "", app, invalid, broken},
		"half a frame":       {exportSpans, "\x00\x00", app, invalid, broken},
		"another frame":      {exportSpans, framed(2, spans), app, invalid, "neither 0 nor 1"},
		"half a message":     {exportSpans, frame[:20], app, invalid, broken},
		"two messages":       {exportSpans, frame + frame, app, invalid, "more than one"},
		"a length too large": {exportSpans, "\x00\xff\xff\xff\xff", app, invalid, "larger than"},
		"a large message":    {exportSpans, framed(0, strings.Repeat("x", 33<<20)), app, invalid, "larger than"},
		"a panic":            {exportSpans, frame, app, internal, "Its log has the details"},
	} {
		got := c.call(call.path, strings.NewReader(call.body), call.header...)
		if got.http != 200 || got.status != call.want || !strings.Contains(got.message, call.says) || got.body != "" ||
			!strings.Contains(got.details, got.message) || strings.Contains(got.details, "RetryInfo") {
			t.Errorf("%s: %+v", name, got)
		}
	}

	// What should be sent again says when.
	full = true
	got := c.call(exportSpans, strings.NewReader(frame), app...)
	const inTwoSeconds = "type.googleapis.com/google.rpc.RetryInfo\x12\x06\x0a\x04\x08\x02\x10\x00"
	if got.status != unavailable || got.message != "The spool is full." ||
		!strings.HasSuffix(got.details, inTwoSeconds) {
		t.Errorf("full: %+v", got)
	}
	limiter.Set(admission.Limits{Calls: 0.5})
	for got.status != exhausted {
		got = c.call(exportSpans, strings.NewReader(frame), app...)
	}
	if !strings.Contains(got.details, "google.rpc.RetryInfo") {
		t.Errorf("limited: %+v", got)
	}
}

// wireConn is a connection of HTTP/2 whose frames are written by hand.
type wireConn struct {
	t testing.TB
	net.Conn
	*http2.Framer
	head *hpack.Encoder
	of   bytes.Buffer
}

func dialHTTP2(t testing.TB, addr string) *wireConn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	c := &wireConn{t: t, Conn: conn, Framer: http2.NewFramer(conn, conn)}
	c.head = hpack.NewEncoder(&c.of)
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_, _ = io.WriteString(conn, http2.ClientPreface)
	_ = c.WriteSettings()

	return c
}

// begin writes the head of a call with a key.
func (c *wireConn) begin(stream uint32) { c.beginWith(stream, "application/grpc", "app") }

func (c *wireConn) beginWith(stream uint32, kind, key string) {
	c.of.Reset()
	fields := []string{
		":method", "POST", ":scheme", "http", ":path", exportSpans, ":authority", "localhost",
		"content-type", kind, "x-api-key", key,
	}
	for i := 0; i < len(fields); i += 2 {
		_ = c.head.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: c.of.Bytes(), EndHeaders: true})
}

// end reads until the connection ends. It returns the code of its GOAWAY, the statuses of its calls, and how
// others were reset.
func (c *wireConn) end() (code http2.ErrCode, statuses map[uint32]string, reset map[uint32]http2.ErrCode) {
	code, statuses, reset = 1<<32-1, map[uint32]string{}, map[uint32]http2.ErrCode{}
	for {
		f, err := c.ReadFrame()
		switch f := f.(type) {
		case *http2.GoAwayFrame:
			code = f.ErrCode
		case *http2.RSTStreamFrame:
			reset[f.StreamID] = f.ErrCode
		case *http2.MetaHeadersFrame:
			for _, field := range f.Fields {
				if field.Name == "grpc-status" {
					statuses[f.StreamID] = field.Value
				}
			}
		}
		if err != nil || statuses[lastCall] != "" {
			return code, statuses, reset
		}
	}
}

// lastCall is the one after which end reads no more.
const lastCall = 99

func TestFloodsOfFramesEndTheirConnection(t *testing.T) {
	m := metrics.New("sidecar", "test")
	s, addr := startTCP(t, func(c *api.Config) { c.Metrics = m })
	for name, flood := range map[string]struct {
		send func(c *wireConn, i uint32)
		want http2.ErrCode
	}{
		"pings": {func(c *wireConn, _ uint32) {
			_ = c.WritePing(false, [8]byte{})
		}, http2.ErrCodeEnhanceYourCalm},
		"settings": {func(c *wireConn, _ uint32) { _ = c.WriteSettings() }, http2.ErrCodeEnhanceYourCalm},
		"windows":  {func(c *wireConn, _ uint32) { _ = c.WriteWindowUpdate(0, 1) }, http2.ErrCodeEnhanceYourCalm},
		"empty data": {func(c *wireConn, i uint32) {
			if i == 0 {
				c.begin(1)
			}
			_ = c.WriteData(1, false, nil)
		}, http2.ErrCodeEnhanceYourCalm},
		"calls that are taken back": {func(c *wireConn, i uint32) {
			c.begin(2*i + 1)
			_ = c.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
		}, http2.ErrCodeEnhanceYourCalm},
		"calls that never end": {func(c *wireConn, i uint32) { c.begin(2*i + 1) }, http2.ErrCodeEnhanceYourCalm},
		"continuations": {func(c *wireConn, i uint32) {
			if i == 0 {
				_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}})
			}
			_ = c.WriteContinuation(1, false, bytes.Repeat([]byte("\x00\x01x\x01y"), 1000))
		}, http2.ErrCodeProtocol},
		"more than the window": {func(c *wireConn, i uint32) {
			if i%4 == 0 {
				c.begin(i/2 + 1)
			}
			_ = c.WriteData(i/4*2+1, false, make([]byte, 4000))
		}, http2.ErrCodeFlowControl},
		"a call that was before": {func(c *wireConn, _ uint32) {
			c.begin(1)
			_ = c.WriteRSTStream(1, http2.ErrCodeCancel)
		}, http2.ErrCodeProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			c := dialHTTP2(t, addr)
			go func() {
				for i := range uint32(5000) {
					flood.send(c, i)
				}
			}()
			if code, _, _ := c.end(); code != flood.want {
				t.Errorf("it ends with %v", code)
			}
		})
	}

	// Nothing of them is left, and others are served.
	for metric(t, m, "promptspool_connections") > 0 {
		runtime.Gosched()
	}
	got := newCaller(t, addr).call(exportSpans, strings.NewReader(framed(0, spanRequest(t))), "x-api-key", "app")
	if got.status != "0" || len(s.recorder.events) != 1 {
		t.Errorf("%+v", got)
	}
}

// A request that is no call of gRPC is for HTTP/1.1, and so is one with a head that is too large for gRPC.
func TestOtherRequestsOverHTTP2AreReset(t *testing.T) {
	_, addr := startTCP(t, nil)
	c := dialHTTP2(t, addr)
	c.beginWith(1, "application/json", "app")
	_ = c.WriteData(1, true, []byte("{}"))
	c.beginWith(3, "application/grpc"+strings.Repeat("x", 5<<10), strings.Repeat("x", 5<<10))
	_ = c.WriteData(3, true, []byte(framed(0, "")))
	c.begin(lastCall)
	_ = c.WriteData(lastCall, true, []byte(framed(0, "")))

	_, statuses, reset := c.end()
	if reset[1] != http2.ErrCodeHTTP11Required || reset[3] != reset[1] || statuses[lastCall] != "0" || len(reset) != 2 {
		t.Errorf("%v %v", statuses, reset)
	}
}

// gate is a recorder that waits until it is released.
type gate struct{ entered, release chan bool }

func (g gate) Record(_ context.Context, _ wire.Identity, events []wire.Event) ([]wire.Result, error) {
	g.entered <- true
	<-g.release
	return make([]wire.Result, len(events)), nil
}

// More calls than are under way together are refused, for the client to send again. A stop ends the connection
// once those under way are answered.
func TestACallUnderWayIsAnsweredBeforeAStop(t *testing.T) {
	entered, release := make(chan bool, 100), make(chan bool)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := api.New(api.Config{
		Name: "here", ClockID: clockID, Version: "test", Authenticator: keys{}, Logger: discard,
		Metrics:  metrics.New("sidecar", "test"),
		Recorder: gate{entered, release},
	}).NewServer()
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()

	c, message := dialHTTP2(t, ln.Addr().String()), framed(0, spanRequest(t))
	const most = 16
	var together bytes.Buffer
	c.Framer = http2.NewFramer(&together, c.Conn)
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for i := range uint32(most + 1) {
		c.begin(2*i + 1)
	}
	for i := range uint32(most + 1) {
		_ = c.WriteData(2*i+1, true, []byte(message))
	}
	_, _ = c.Write(together.Bytes())
	for range most {
		<-entered
	}

	stopped := make(chan error, 1)
	go func() { stopped <- server.Shutdown(t.Context()) }()
	if err := <-served; err != nil {
		t.Error(err)
	}
	close(release)
	code, statuses, reset := c.end()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	for i := range uint32(most) {
		if statuses[2*i+1] != "0" {
			t.Errorf("call %d is answered %q", i, statuses[2*i+1])
		}
	}
	if code != http2.ErrCodeNo || reset[2*most+1] != http2.ErrCodeRefusedStream || len(reset) != 1 {
		t.Errorf("it ends with %v, refused are %v", code, reset)
	}
}

// A call whose message does not come is answered after 15 s, and a connection without calls ends after two minutes.
func TestASlowCallOverGRPCIsAnsweredInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, conn := net.Pipe()
		ln := &oneConn{conns: make(chan net.Conn, 1)}
		ln.conns <- conn
		server := api.New(api.Config{
			Name: "here", ClockID: clockID, Version: "test", Authenticator: keys{}, Logger: discard,
			Recorder: &recorder{}, Metrics: metrics.New("sidecar", "test"),
		}).NewServer()
		served := make(chan error, 1)
		go func() { served <- server.Serve(ln) }()

		c := &wireConn{t: t, Conn: client, Framer: http2.NewFramer(client, client)}
		c.head, c.ReadMetaHeaders = hpack.NewEncoder(&c.of), hpack.NewDecoder(4096, nil)
		begun := time.Now()
		go func() {
			_, _ = io.WriteString(client, http2.ClientPreface)
			_ = c.WriteSettings()
			c.begin(1)
			c.begin(3)
			_ = c.WriteData(3, false, []byte(framed(0, strings.Repeat("x", 100<<10)))[:10_000])
		}()
		var late []time.Duration
		for {
			f, err := c.ReadFrame()
			if err != nil {
				break
			}
			if head, ok := f.(*http2.MetaHeadersFrame); ok && head.StreamEnded() {
				late = append(late, time.Since(begun).Round(time.Second))
			}
		}
		if len(late) != 2 || late[0] != 15*time.Second || late[1] != late[0] ||
			time.Since(begun).Round(time.Second) != 135*time.Second {
			t.Errorf("answered after %v, ended after %v", late, time.Since(begun))
		}
		if err := server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		<-time.After(time.Minute) // for fasthttp's own housekeeping to end
	})
}
