package edge

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Bounds of a connection of HTTP/2.
const (
	headBytes   = 8 << 10    // of a call
	callsMax    = 16         // under way at the same time
	windowBytes = 64<<10 - 1 // that are read ahead of its calls together, as RFC 9113 begins
	frameBytes  = 16 << 10   // of a frame, and that are read before the client may send as many

	// heldBytes is how much of messages that have not come whole is held. A call that brings more is
	// handled while it comes.
	heldBytes = windowBytes * 3 / 4

	// noiseMax is how many frames may come that bring no call forward, between two answers. Clients send a
	// ping now and then; a flood of those, or of calls that are taken back, costs us more than its sender.
	noiseMax = 1000

	// callsPart is how many times fewer connections of HTTP/2 there may be than others: each takes up to
	// 120 KiB, and begins up to callsMax calls, which count as connections once they are handled.
	callsPart = 8

	callTime  = 15 * time.Second // for a message, or the first part of a large one
	idleTime  = 2 * time.Minute  // between two calls
	writeTime = 2 * time.Second  // for a client to read, once it has much to read
	leaveTime = time.Second      // for the client to hang up, once it was told to
)

// How the first line of a connection of HTTP/2 (RFC 9113, section 3.4) is sent, and how fasthttp
// reads it: as a request with the method PRI.
var (
	preface     = []byte("PRI * HTTP/2.0\r\n")
	prefaceRead = []byte("PRI / HTTP/1.0\r\n")
)

// GRPC serves unary calls of gRPC on connections whose first bytes are HTTP/2's, beside the requests that
// fasthttp serves. Safe for concurrent use.
//
// A call is handled when its message has come, or when its connection holds too much of such. Until then the
// connection bounds what it takes, and from then on the call is counted like a connection: if there are too
// many, the one that has kept us waiting longest is cut.
type GRPC struct {
	conns   *Connections // counts calls that are handled
	few     *Connections // counts connections, each a *grpcConn
	handler func(call *Call, isAdmitted bool)
}

// NewGRPC makes a GRPC whose calls are counted in c. The handler must answer its call. One that is not
// admitted is of too many.
func NewGRPC(c *Connections, handler func(call *Call, isAdmitted bool)) *GRPC {
	return &GRPC{c, NewConnections(max(1, c.most/callsPart), c.metrics), handler}
}

// Take serves the connection of ctx, a request that is the preface of HTTP/2.
func (g *GRPC) Take(ctx *fasthttp.RequestCtx) {
	conn, _ := ctx.Conn().(counted)
	ctx.SetStatusCode(fasthttp.StatusSwitchingProtocols) // as it is counted
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(rest net.Conn) {
		// This is the end of the preface.
		_ = conn.SetReadDeadline(time.Now().Add(leaveTime))
		_, err := io.CopyN(io.Discard, rest, int64(len("SM\r\n\r\n")))

		// From here on it is counted with its kind.
		g.conns.forget(conn)
		c := &grpcConn{counted: conn, server: g, in: bufio.NewReader(rest), out: bufio.NewWriter(conn)}
		c.calls = map[uint32]*Call{}
		c.frames = http2.NewFramer(c.out, c.in)
		c.frames.SetReuseFrames()
		c.frames.SetMaxReadFrameSize(frameBytes)
		c.frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		c.frames.MaxHeaderListSize = headBytes
		_ = c.frames.WriteSettings(
			http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: callsMax},
			http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: headBytes},
		)

		if err == nil && g.few.admit(c) {
			_ = conn.SetReadDeadline(time.Now().Add(idleTime))
			c.serve()
			g.few.forget(c)
		}
	})
}

// Shutdown sends GOAWAY on all connections and waits until they have ended, as long as ctx allows.
func (g *GRPC) Shutdown(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		// One may have come meanwhile. To tell it may take until its client reads.
		g.few.mu.Lock()
		open := len(g.few.open)
		for c := range g.few.open {
			go c.(*grpcConn).leave(http2.ErrCodeNo)
		}
		g.few.mu.Unlock()
		if open == 0 {
			return nil
		}

		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// grpcConn is a connection of HTTP/2.
type grpcConn struct {
	counted
	server *GRPC
	in     *bufio.Reader // read by serve
	next   *Call         // of serve: that was begun by the last frame
	frames *http2.Framer // read by serve, written to under mu

	// mu is held while something is written, and nothing is read meanwhile: the answers to
	// the pings of a client that does not read must not pile up.
	mu      sync.Mutex
	out     *bufio.Writer
	calls   map[uint32]*Call // that are not answered yet
	last    uint32           // the last of all
	running int              // calls that are handled
	whole   int              // and that came whole
	noise   int

	// leaving means that GOAWAY was sent, isParallel that calls were under way together.
	leaving, isParallel bool

	// Bytes that came and were not credited, and of these the ones that were read.
	taken, used int
	// Bytes that the client takes beyond windowBytes, in all and of a new call.
	window, streamWindow int64
}

// serve reads frames until the connection ends.
func (c *grpcConn) serve() {
	defer c.end()
	for {
		c.handle()
		f, err := c.frames.ReadFrame()
		if err == nil {
			err = c.take(f)
		}
		var ofCall http2.StreamError
		var ofAll http2.ConnectionError
		switch {
		case errors.As(err, &ofCall):
			c.reset(ofCall)
		case err != nil:
			_ = errors.As(err, &ofAll)
			c.leave(http2.ErrCode(ofAll))
			return
		}
	}
}

// handle has the call handled that the last frame began, if any. A call that comes alone, as those of most
// exporters do, is handled right here: to wake another goroutine costs as much as all else of HTTP/2. Calls that come
// meanwhile wait, but not once calls were under way together.
func (c *grpcConn) handle() {
	c.mu.Lock()
	call := c.next
	c.next = nil
	isAlone := call != nil && call.isEnded && !c.isParallel && c.in.Buffered() == 0
	if !isAlone && c.in.Buffered() == 0 && c.out.Buffered() > 0 {
		c.flushLocked()
	}
	c.mu.Unlock()

	if isAlone {
		c.run(call)
	} else if call != nil {
		go c.run(call)
	}
}

// end ends the calls of a connection that has ended.
func (c *grpcConn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.calls {
		c.dropLocked(call)
	}
}

// dropLocked forgets a call that will have no answer.
func (c *grpcConn) dropLocked(call *Call) {
	call.isGone = true
	call.give(nil, io.ErrUnexpectedEOF)
	delete(c.calls, call.id)
	if !call.isRunning {
		call.timer.Stop()
		c.creditLocked(call, len(call.data))
	}
}

// leave tells the client to hang up.
func (c *grpcConn) leave(code http2.ErrCode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.leaving {
		c.leaving = true
		_ = c.frames.WriteGoAway(c.last, code, nil)
		c.flushLocked()
		c.waitLocked()
	}
}

// reset ends a call with an error of HTTP/2.
func (c *grpcConn) reset(err http2.StreamError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.calls[err.StreamID]; call != nil {
		c.dropLocked(call)
	}
	c.last = max(c.last, err.StreamID)
	_ = c.frames.WriteRSTStream(err.StreamID, err.Code)
}

// flushLocked sends what was written. A client that does not take it is cut off.
func (c *grpcConn) flushLocked() {
	_ = c.SetWriteDeadline(time.Now().Add(writeTime))
	if c.out.Flush() != nil {
		_ = c.Close()
	}
}

// waitLocked notes that the client keeps us waiting, unless a call is handled that came whole. No call takes
// as long as idleTime.
func (c *grpcConn) waitLocked() {
	patience := idleTime
	if c.whole == 0 {
		c.turn().Store(c.server.few.turns.Add(1))
		if c.leaving {
			patience = leaveTime
		}
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
}

// take takes a frame.
func (c *grpcConn) take(f http2.Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.noise++; c.noise > noiseMax {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}

	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		return c.takeHeadLocked(f)
	case *http2.DataFrame:
		return c.takeDataLocked(f)
	case *http2.RSTStreamFrame:
		if call := c.calls[f.StreamID]; call != nil {
			c.dropLocked(call)
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			_ = c.frames.WritePing(true, f.Data)
		}
	case *http2.SettingsFrame:
		if size, ok := f.Value(http2.SettingInitialWindowSize); ok {
			c.streamWindow = int64(size) - windowBytes
		}
		if !f.IsAck() {
			_ = c.frames.WriteSettingsAck()
		}
	case *http2.WindowUpdateFrame:
		if call := c.calls[f.StreamID]; call != nil {
			call.window += int64(f.Increment)
		} else if f.StreamID == 0 {
			c.window += int64(f.Increment)
		}
	}

	return nil
}

// takeHeadLocked takes the head of a call, or what a client sends after a message.
func (c *grpcConn) takeHeadLocked(f *http2.MetaHeadersFrame) error {
	if call := c.calls[f.StreamID]; call != nil {
		if !f.StreamEnded() || call.isEnded {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
		}
		c.takeLocked(call, nil, true)
		return nil
	}

	if f.StreamID%2 == 0 || f.StreamID <= c.last {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.last = f.StreamID
	isGRPC := slices.ContainsFunc(f.Fields, func(field hpack.HeaderField) bool {
		return field.Name == "content-type" && strings.HasPrefix(field.Value, "application/grpc")
	})
	if !isGRPC || f.Truncated {
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeHTTP11Required}
	}
	// Calls that were taken back may still be handled.
	if c.leaving || len(c.calls) >= callsMax || c.running >= callsMax {
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeRefusedStream}
	}
	call := &Call{
		Conn: c.counted, conn: c, id: f.StreamID,
		Path: f.PseudoValue("path"), Host: f.PseudoValue("authority"), Fields: slices.Clone(f.RegularFields()),
	}
	call.more.L = &call.mu
	call.timer = time.AfterFunc(callTime, call.late)
	c.calls[call.id] = call
	c.waitLocked()
	c.takeLocked(call, nil, f.StreamEnded())

	return nil
}

// takeDataLocked takes a part of a message.
func (c *grpcConn) takeDataLocked(f *http2.DataFrame) error {
	size := int(f.Length)
	if c.taken += size; c.taken > windowBytes {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	call := c.calls[f.StreamID]
	if call == nil || call.isEnded {
		c.creditLocked(nil, size)
		if f.StreamID > c.last {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		return nil
	}
	if call.taken += size; call.taken > windowBytes {
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}

	// A large message may take longer, as long as it comes.
	_ = c.SetReadDeadline(time.Now().Add(idleTime))
	data := f.Data()
	c.creditLocked(call, size-len(data))
	if len(data) > 0 {
		c.noise--
	}
	c.takeLocked(call, data, f.StreamEnded())

	return nil
}

// takeLocked gives a call more of its message.
func (c *grpcConn) takeLocked(call *Call, data []byte, ends bool) {
	var err error
	if ends {
		call.isEnded, err = true, io.EOF
		c.whole++
		c.turn().Store(0)
	}
	call.give(data, err)
	if (ends || c.taken-c.used > heldBytes) && c.beginLocked(call) {
		c.next = call
	}
}

// creditLocked notes that bytes of a message were read, for the client to send more.
func (c *grpcConn) creditLocked(call *Call, size int) {
	c.used += size
	if call != nil {
		call.used += size
	}
	// A client that has little left might wait for any of it.
	if c.used < frameBytes && c.taken < heldBytes {
		return
	}

	c.taken -= c.used
	_ = c.frames.WriteWindowUpdate(0, uint32(c.used))
	c.used = 0
	for _, call := range c.calls {
		if !call.isEnded && call.used > 0 {
			call.taken -= call.used
			_ = c.frames.WriteWindowUpdate(call.id, uint32(call.used))
			call.used = 0
		}
	}
	c.flushLocked()
}

// beginLocked counts a call before it is handled, and reports whether it was not before.
func (c *grpcConn) beginLocked(call *Call) bool {
	if call.isRunning || call.isGone {
		return false
	}
	call.isRunning = true
	c.running++
	c.isParallel = c.isParallel || c.running > 1

	return true
}

// run handles a call.
func (c *grpcConn) run(call *Call) {
	isAdmitted := c.server.conns.admit(call)
	c.server.handler(call, isAdmitted)
	if isAdmitted {
		c.server.conns.forget(call)
	}
	call.timer.Stop()

	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if call.isEnded {
		c.whole--
	}
	c.creditLocked(nil, len(call.data))
	c.waitLocked()
}

// Call is a unary call of gRPC. It is read by its handler only. As a connection it is the one
// that it came on.
type Call struct {
	net.Conn
	waiting
	Path, Host string
	Fields     []hpack.HeaderField // its metadata

	conn *grpcConn
	id   uint32

	// Under conn.mu.
	isRunning, isEnded, isGone bool
	taken, used                int   // as those of conn
	window                     int64 // beyond conn.streamWindow

	mu    sync.Mutex
	more  sync.Cond
	data  []byte // under mu; received and not read
	err   error  // under mu; after it
	timer *time.Timer
}

// give adds to what is received. After it, reads end with the first error.
func (c *Call) give(data []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.data = append(c.data, data...)
	if c.err == nil {
		c.err = err
	}
	c.more.Signal()
}

// late has a call answered whose message does not come.
func (c *Call) late() {
	c.cut()
	c.conn.mu.Lock()
	defer c.conn.mu.Unlock()
	if c.conn.beginLocked(c) {
		go c.conn.run(c)
	}
}

// cut ends the read that is under way, and all later ones.
func (c *Call) cut() { c.give(nil, os.ErrDeadlineExceeded) }

// SetReadDeadline sets when reads of the message end.
func (c *Call) SetReadDeadline(t time.Time) error {
	c.timer.Reset(time.Until(t))
	return nil
}

// Read reads from the messages of the call, as they are sent.
func (c *Call) Read(b []byte) (int, error) {
	c.mu.Lock()
	for len(c.data) == 0 && c.err == nil {
		c.more.Wait()
	}
	n := copy(b, c.data)
	err := c.err
	c.data = c.data[n:]
	c.mu.Unlock()

	if n == 0 {
		return 0, err
	}
	c.conn.mu.Lock()
	defer c.conn.mu.Unlock()
	c.conn.creditLocked(c, n)

	return n, nil
}

// answerHead is how answers begin.
var answerHead = HeaderBlock(":status", "200", "content-type", "application/grpc")

// Answer writes a message, nil for none, and the trailers, which are of HeaderBlock. A client that does not
// take a message of that size gets an error of HTTP/2.
func (c *Call) Answer(message, trailers []byte) {
	conn, size := c.conn, int64(len(message))
	conn.mu.Lock()
	defer conn.mu.Unlock()
	if c.isGone {
		return
	}
	c.isGone = true
	delete(conn.calls, c.id)
	conn.noise = 0

	if size <= min(windowBytes+min(conn.window, conn.streamWindow+c.window), frameBytes) {
		conn.window -= size
		conn.writeHeadLocked(c.id, answerHead, false)
		if message != nil {
			_ = conn.frames.WriteData(c.id, false, message)
		}
		conn.writeHeadLocked(c.id, trailers, true)
		if !c.isEnded {
			_ = conn.frames.WriteRSTStream(c.id, http2.ErrCodeNo)
		}
	} else {
		_ = conn.frames.WriteRSTStream(c.id, http2.ErrCodeFlowControl)
	}
	conn.flushLocked()
}

func (c *grpcConn) writeHeadLocked(id uint32, block []byte, ends bool) {
	_ = c.frames.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: block, EndHeaders: true, EndStream: ends,
	})
}

// HeaderBlock encodes names and values for Answer, in turns.
func HeaderBlock(fields ...string) []byte {
	var b bytes.Buffer
	to := hpack.NewEncoder(&b)
	// Without a table a block says the same on any connection.
	to.SetMaxDynamicTableSize(0)
	for i := 0; i < len(fields); i += 2 {
		_ = to.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}

	return b.Bytes()
}
