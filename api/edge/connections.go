// Package edge is what a listener does before anybody looks at a request. It bounds the
// connections, so that thousands that begin something and never end it cost little memory
// and do not hinder others, and it rejects requests whose end is in doubt.
package edge

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/metrics"
)

// Connections bounds how many connections a server has. Each holds up to 25 KiB, whatever it is
// open for: a buffer for a head, a stack. When there is one too many, the one that has kept us
// waiting longest is cut: for a handshake, a head, a body, or the next request. So a client that
// sends what it has to send gets through, however many others do not. A connection whose request is
// being answered is never cut. Safe for concurrent use.
type Connections struct {
	most    int
	metrics *metrics.Metrics
	turns   atomic.Int64 // counts the moments at which some connection begins to keep us waiting

	// places holds one element for each open connection. There are a few more of them than most:
	// one that was cut takes a little to be gone.
	places chan struct{}

	mu      sync.Mutex
	open    map[counted]struct{} // under mu
	longest []candidate          // under mu; to be cut next, those that waited longest first
}

// goneWait is how long a new connection waits for one that was cut to be gone. On a busy machine
// it takes a while until the goroutine that serves it runs, which is not a fault of the new one's.
const goneWait = time.Second

// NewConnections makes Connections that keep to a bound, at least 1, and are counted in m.
func NewConnections(most int, m *metrics.Metrics) *Connections {
	return &Connections{
		most:    most,
		metrics: m,
		places:  make(chan struct{}, most+most/4+1),
		open:    map[counted]struct{}{},
	}
}

// boundedListener is a listener whose connections keep to the bound.
type boundedListener struct {
	net.Listener
	c *Connections
}

// Accept returns the next connection that is admitted.
func (b boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}

		var admitted counted = &plainConn{Conn: conn}
		if secret, ok := conn.(*tls.Conn); ok {
			admitted = &tlsConn{plainConn{Conn: conn}, secret}
		}
		if b.c.admit(admitted) {
			return admitted, nil
		}

		b.c.metrics.ConnectionsCut.WithLabelValues("refused").Inc()
		refuse(conn)
	}
}

// counted is a connection that is counted. It knows itself since when it keeps us waiting, so
// that a request takes no lock.
type counted interface {
	net.Conn
	turn() *atomic.Int64
	cut()
}

// waiting is what a connection knows of itself.
type waiting struct {
	// since is the turn at which it began to keep us waiting. It is 0 while a request is being
	// answered, and once the connection is cut or closed.
	since atomic.Int64
	isCut atomic.Bool

	begun bool // its first bytes were read; owned by the goroutine that reads
}

func (w *waiting) turn() *atomic.Int64 { return &w.since }

// plainConn is a connection that is counted.
type plainConn struct {
	net.Conn
	waiting
}

// tlsConn is one with TLS. By its methods fasthttp knows that.
type tlsConn struct {
	plainConn
	secret *tls.Conn
}

// Handshake begins the connection.
func (c *tlsConn) Handshake() error { return c.secret.Handshake() }

// ConnectionState returns what the handshake has agreed on.
func (c *tlsConn) ConnectionState() tls.ConnectionState { return c.secret.ConnectionState() }

// NetConn returns the connection itself.
func (c *plainConn) NetConn() net.Conn { return c.Conn }

// longPast is a deadline that is over.
var longPast = time.Unix(1, 0)

// cut ends the read that is under way, and all later ones.
func (c *plainConn) cut() {
	c.isCut.Store(true)
	_ = c.Conn.SetReadDeadline(longPast)
}

// SetReadDeadline sets when reads end, unless the connection was cut.
func (c *plainConn) SetReadDeadline(t time.Time) error {
	err := c.Conn.SetReadDeadline(t)
	// Asked after it: the deadline may have replaced the one of a cut.
	if c.isCut.Load() {
		err = c.Conn.SetReadDeadline(longPast)
	}

	return err
}

// Read reads from the connection. A preface of HTTP/2 becomes a request that fasthttp reads, so that
// its handler can give the connection to an HTTP2.
func (c *plainConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.begun && n > 0 {
		c.begun = true
		if bytes.HasPrefix(b[:n], preface) {
			copy(b, prefaceRead)
		}
	}

	return n, err
}

// refusal is the answer to a connection that is not admitted.
var refusal = func() []byte {
	const body = `{"success":false,"error":"unavailable",` +
		`"message":"Too many requests are being answered. Send this again in a second.","fields":[]}` + "\n"
	const head = "HTTP/1.1 503 Service Unavailable\r\n" +
		"Content-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"

	return append(fmt.Appendf(nil, head, len(body)), body...)
}()

// refuse answers a connection that is not admitted, and closes it. Nothing waits for it: the
// answer is smaller than what the kernel takes immediately. With TLS there is none, because a
// handshake would come first.
func refuse(conn net.Conn) {
	if _, secret := conn.(*tls.Conn); !secret {
		// A busy machine may be late itself.
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = conn.Write(refusal)
	}
	_ = conn.Close()
}

// admit reports whether a connection may be open, and counts it then. It may cut another one.
func (c *Connections) admit(conn counted) bool {
	select {
	case c.places <- struct{}{}:
	default:
		late := time.NewTimer(goneWait)
		defer late.Stop()
		select {
		case c.places <- struct{}{}:
		case <-late.C:
			return false
		}
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= c.most && !c.cutLocked() {
		<-c.places
		return false
	}
	conn.turn().Store(c.turns.Add(1))
	c.open[conn] = struct{}{}
	c.metrics.Connections.Inc()

	return true
}

// candidate is a connection that was waiting since a turn. If it still is, all others
// began later.
type candidate struct {
	conn  counted
	since int64
}

// cutLocked cuts the connection that has kept us waiting longest, and reports whether there is one.
func (c *Connections) cutLocked() bool {
	for looked := false; ; looked = true {
		for len(c.longest) > 0 {
			next := c.longest[0]
			c.longest = c.longest[1:]
			if next.conn.turn().CompareAndSwap(next.since, 0) {
				c.metrics.ConnectionsCut.WithLabelValues("slow").Inc()
				// The goroutine that reads from it finds out, answers and closes it. To close it
				// here could wait, with TLS.
				next.conn.cut()
				return true
			}
		}

		if looked {
			return false
		}
		c.longest = c.candidatesLocked()
	}
}

// candidatesLocked lists the connections that keep us waiting, the longest first. It gives an
// eighth of all there may be, so that looking at all of them costs little for each that is cut.
func (c *Connections) candidatesLocked() []candidate {
	all := make([]candidate, 0, len(c.open))
	for conn := range c.open {
		if since := conn.turn().Load(); since > 0 {
			all = append(all, candidate{conn, since})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].since < all[j].since })

	return slices.Clone(all[:min(len(all), c.most/8+1)])
}

// state follows a connection's life. It is fasthttp's ConnState.
func (c *Connections) state(conn net.Conn, now fasthttp.ConnState) {
	k, ok := conn.(counted)
	switch {
	case !ok, now == fasthttp.StateNew, now == fasthttp.StateHijacked: // admit and HTTP2 have seen it
	case now == fasthttp.StateClosed:
		c.forget(k)
	default: // it begins a request, or its request was answered
		k.turn().Store(c.turns.Add(1))
	}
}

// forget counts a connection no longer.
func (c *Connections) forget(conn counted) {
	conn.turn().Store(0)
	c.mu.Lock()
	defer c.mu.Unlock()

	if _, known := c.open[conn]; known {
		delete(c.open, conn)
		c.metrics.Connections.Dec()
		<-c.places
	}
}

// Within makes the next reads from a connection end after d, unless it was cut.
func Within(conn net.Conn, d time.Duration) {
	if k, ok := conn.(counted); ok && k.turn().Load() > 0 {
		_ = conn.SetReadDeadline(time.Now().Add(d))
	}
}

// Answering notes that a request has come whole. Its connection is not cut before it is answered.
func Answering(conn net.Conn) {
	if k, ok := conn.(counted); ok {
		k.turn().Store(0)
	}
}

// IsLate reports whether an error means that something did not come before its deadline.
func IsLate(err error) bool {
	var e net.Error

	return errors.As(err, &e) && e.Timeout()
}

// HasLeft reports whether the other end of a connection has closed it, or sends nothing more. It
// reads nothing, so any goroutine may ask while others read and write. For a connection that is
// not a socket it reports false.
func HasLeft(conn net.Conn) bool {
	// The socket may be within a counted connection, and that in one with TLS.
	for {
		switch c := conn.(type) {
		case syscall.Conn:
			return isClosed(c)
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return false
		}
	}
}

func isClosed(c syscall.Conn) (closed bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}

	// The only error is that we have closed the connection ourselves.
	_ = raw.Control(func(socket uintptr) { closed = hasHungUp(socket) })

	return closed
}
