package edge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/wire"
)

// Server is a fasthttp.Server that can be shut down at any moment.
//
// fasthttp's own Shutdown does not know a listener whose Serve has not run yet: a process that is
// told to end right after its start would serve that listener forever.
//
// Safe for concurrent use. After Shutdown it serves nothing any more.
type Server struct {
	http  *fasthttp.Server
	conns *Connections // nil for any number

	mu        sync.Mutex
	stopped   bool
	listeners []net.Listener
}

// NewServer makes a Server of one that does not serve yet. Its connections keep to the bound of
// c; nil means no bound.
func NewServer(s *fasthttp.Server, c *Connections) *Server {
	if c != nil {
		s.ConnState = c.state

		// Never reached: fasthttp has a bound in any case, and its refusal is not an answer of ours.
		s.Concurrency = cap(c.places) + 1
	}
	return &Server{http: s, conns: c}
}

// Serve answers requests on ln until Shutdown, after which it returns nil. It closes ln.
func (s *Server) Serve(ln net.Listener) error {
	if s.conns != nil {
		ln = boundedListener{ln, s.conns}
	}
	ln = &closedOnce{Listener: ln}
	s.mu.Lock()
	s.listeners = append(s.listeners, ln)
	stopped := s.stopped
	s.mu.Unlock()

	if stopped {
		return ln.Close()
	}

	// If Shutdown comes before this has begun, the closed listener ends it.
	return s.http.Serve(ln)
}

// Shutdown closes the listeners and waits for handlers to end, as long as ctx allows.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	for _, ln := range s.listeners {
		// fasthttp closes it again, and gets the error.
		_ = ln.Close()
	}
	s.mu.Unlock()

	return s.http.ShutdownWithContext(ctx)
}

// closedOnce is a listener that may be closed more than once.
type closedOnce struct {
	net.Listener
	once sync.Once
	err  error
}

// Close closes the listener, or returns the error of the time when it was closed.
func (l *closedOnce) Close() error {
	l.once.Do(func() { l.err = l.Listener.Close() })
	return l.err
}

// acceptPause is how long a listener waits when no connection can be accepted. It delays a stop by
// as much at most.
const acceptPause = 50 * time.Millisecond

// Patient returns ln with an Accept that outlasts a shortage. While too many files are open, or
// the kernel has no memory for one more connection, it waits and continues; callers wait in the
// kernel's queue meanwhile. The beginning and the end of a shortage are logged.
func Patient(ln net.Listener, logger *slog.Logger) net.Listener {
	return &patient{Listener: ln, logger: logger}
}

type patient struct {
	net.Listener
	logger *slog.Logger
	short  atomic.Bool // the last Accept failed for want of something
}

// Accept returns the next connection, or an error if there will be none.
func (p *patient) Accept() (net.Conn, error) {
	for {
		conn, err := p.Listener.Accept()
		if err != nil && !isShortage(err) {
			return nil, err
		}

		p.note(err)
		if err == nil {
			return conn, nil
		}
		time.Sleep(acceptPause)
	}
}

// note logs when a shortage begins and ends.
func (p *patient) note(err error) {
	// Not once for each connection: a shortage lasts for many of them.
	before := p.short.Swap(err != nil)
	at := p.Addr().String()
	switch {
	case err != nil && !before:
		p.logger.Warn("Cannot accept a connection; callers wait. "+
			"Raise the limit of open files (ulimit -n) if this happens again.", "listen", at, "error", err)
	case err == nil && before:
		p.logger.Info("Connections are accepted again.", "listen", at)
	}
}

// isShortage reports whether an error of accept passes by itself: too many open files, in the
// process or the system, no memory for a socket, or a caller that hung up while it waited.
func isShortage(err error) bool {
	passing := []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED,
	}

	return slices.ContainsFunc(passing, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// HeadBytesMax bounds the head of a request; it is a server's ReadBufferSize.
const HeadBytesMax = 16 << 10

// pooledAnswerMax is the size up to which the buffer of an answer is kept for others.
const pooledAnswerMax = 1 << 20

var answerPool = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// WriteJSON answers a request with v as JSON. Strings keep their < > & as they are.
func WriteJSON(ctx *fasthttp.RequestCtx, status int, v any) {
	buf := answerPool.Get().(*bytes.Buffer)
	buf.Reset()
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		buf.Reset()
		status = 500
		buf.WriteString(`{"success":false,"error":"internal",` +
			`"message":"The answer could not be encoded.","fields":[]}`)
	}

	// SetBody copies: the buffer can serve others then.
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.SetBody(buf.Bytes())
	if buf.Cap() <= pooledAnswerMax {
		answerPool.Put(buf)
	}
}

// WriteError answers a request with an error, in the one shape that errors have.
func WriteError(ctx *fasthttp.RequestCtx, err error) {
	e := wire.AsError(err)
	if e.RetryAfter > 0 {
		ctx.Response.Header.Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}

	WriteJSON(ctx, e.Status(), e.Body())
}

// WriteParseError answers what fasthttp could not read as a request.
func WriteParseError(ctx *fasthttp.RequestCtx, err error) {
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.As(err, &small):
		WriteError(ctx, wire.Errorf(wire.CodeTooLarge, "The request's header is too large; at most %d KiB are read.",
			HeadBytesMax>>10))
		ctx.SetStatusCode(fasthttp.StatusRequestHeaderFieldsTooLarge)
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		WriteError(ctx, wire.Errorf(wire.CodeTooLarge, "The body is too large."))
	case IsLate(err):
		// This also answers a connection that was opened and never used. A client knows that
		// a 408 is not an answer to the request that it was about to send (RFC 9110, 15.5.9); it
		// might take a 400 for one.
		WriteError(ctx, TimeoutError(err))
	default:
		WriteError(ctx, wire.Errorf(wire.CodeBadJSON, "This is not a complete, valid HTTP request."))
	}
}

// TimeoutError returns the error of a request that took too long to arrive.
func TimeoutError(cause error) *wire.Error {
	return &wire.Error{
		Code:    wire.CodeTimeout,
		Message: "The request took too long to arrive. Send it again on a new connection.",
		Cause:   cause,
	}
}

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
