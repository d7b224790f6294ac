// Package edge is what a listener does before anybody looks at a call: it bounds the connections, so that thousands that begin
// something and never end it cost little memory and hinder nobody, and refuses heads whose end is in doubt.
package edge

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/metrics"
)

// Connections bounds how many connections a server has. One that is open holds up to 25 KiB, whatever it is open for: a buffer for a
// head, a stack. When one more comes than there may be, the one that has kept us waiting longest is cut: for a handshake, a
// head, a body, or the next call. So whoever sends what it has to send gets through, however many others do not. Those whose call is
// being answered are never cut. Safe for concurrent use.
type Connections struct {
	most    int
	metrics *metrics.Metrics
	turns   atomic.Int64 // counts the moments at which some connection begins to keep us waiting

	mu      sync.Mutex
	open    map[kept]struct{} // under mu
	longest []candidate       // under mu; to be cut next, the one that was waiting longest when they were looked for first

	gone chan struct{} // of one: holds something if a connection ended since it was looked at
}

// kept is a connection that is counted. It knows itself since when it keeps us waiting, so that no lock is taken for a call.
type kept interface {
	net.Conn
	turn() *atomic.Int64
}

// waiting is the turn at which a connection began to keep us waiting; 0 while its call is being answered, and once it is cut or closed.
type waiting struct{ since atomic.Int64 }

func (w *waiting) turn() *atomic.Int64 { return &w.since }

// plainConn is a connection without TLS.
type plainConn struct {
	net.Conn
	waiting
}

// NetConn is the connection itself.
func (c *plainConn) NetConn() net.Conn { return c.Conn }

// secretConn is one with TLS, by whose methods the server knows that it is.
type secretConn struct {
	*tls.Conn
	waiting
}

// candidate is a connection that was waiting since a turn. If it still is, all that are not among the candidates came later.
type candidate struct {
	conn  kept
	since int64
}

// NewConnections bounds them to most, at least 1. They are counted in m.
func NewConnections(most int, m *metrics.Metrics) *Connections {
	return &Connections{most: most, metrics: m, open: map[kept]struct{}{}, gone: make(chan struct{}, 1)}
}

// Bound makes s, which must not serve yet, keep to c. What it serves must come from c.Listener.
func (c *Connections) Bound(s *fasthttp.Server) {
	s.ConnState = c.state
	// Never reached: there fasthttp would write to the connection before it accepts the next, and with TLS wait for its handshake.
	s.Concurrency = c.hardMost() + 1
}

// hardMost is how many there are at most for a moment: one that is cut takes a little to be gone, which is waited for.
func (c *Connections) hardMost() int { return c.most + c.most/4 + 1 }

// gonePatience is for how long: on a busy machine it takes a while until whoever serves them is scheduled, and whoever is
// refused for that has done nothing wrong.
const gonePatience = time.Second

// Listener is ln within the bound.
func (c *Connections) Listener(ln net.Listener) net.Listener { return bounded{ln, c} }

type bounded struct {
	net.Listener
	c *Connections
}

// Accept gives the next connection that there is room for.
func (b bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		var k kept
		if secret, ok := conn.(*tls.Conn); ok {
			k = &secretConn{Conn: secret}
		} else {
			k = &plainConn{Conn: conn}
		}
		if b.c.admit(k) {
			return k, nil
		}
		b.c.metrics.ConnectionsCut.WithLabelValues("refused").Inc()
		refuse(conn)
	}
}

// noRoom is the answer to a connection for which there is no room, because all others' calls are being answered.
var noRoom = func() []byte {
	const body = `{"success":false,"error":"unavailable","message":"Too many calls are being answered. Send this again in a second.","fields":[]}` + "\n"
	return fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}()

// refuse answers and hangs up. Nothing waits for it: the answer is smaller than what the kernel takes at once. With TLS there is
// no answer before a handshake.
func refuse(conn net.Conn) {
	if _, secret := conn.(*tls.Conn); !secret {
		_ = conn.SetWriteDeadline(time.Now().Add(time.Millisecond))
		_, _ = conn.Write(noRoom)
	}
	_ = conn.Close()
}

// admit says whether there is room for a connection, and makes some.
func (c *Connections) admit(conn kept) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for patience := time.NewTimer(gonePatience); len(c.open) >= c.hardMost(); {
		c.mu.Unlock()
		late := false
		select {
		case <-c.gone:
		case <-patience.C:
			late = true
		}
		c.mu.Lock()
		if late {
			return false
		}
	}
	if len(c.open) >= c.most && !c.cut() {
		return false
	}
	conn.turn().Store(c.turns.Add(1))
	c.open[conn] = struct{}{}
	c.metrics.Connections.Inc()
	return true
}

// cut cuts the connection that has kept us waiting longest; false if none does. Called with mu held.
func (c *Connections) cut() bool {
	for looked := false; ; {
		for len(c.longest) > 0 {
			next := c.longest[0]
			c.longest = c.longest[1:]
			if next.conn.turn().CompareAndSwap(next.since, 0) {
				c.metrics.ConnectionsCut.WithLabelValues("slow").Inc()
				// Who reads from it finds out, answers and closes it. To close it here could wait, with TLS.
				_ = next.conn.SetReadDeadline(time.Unix(1, 0))
				return true
			}
		}
		if looked {
			return false
		}
		c.longest, looked = c.lookLongest(), true
	}
}

// lookLongest lists those that keep us waiting, the longest first: an eighth of all there may be, so that to look at each and sort them
// costs little for each that is cut. Called with mu held.
func (c *Connections) lookLongest() []candidate {
	all := make([]candidate, 0, len(c.open))
	for conn := range c.open {
		if since := conn.turn().Load(); since > 0 {
			all = append(all, candidate{conn, since})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.since, b.since) })
	return slices.Clone(all[:min(len(all), c.most/8+1)])
}

// state follows a connection's life. It is fasthttp's ConnState.
func (c *Connections) state(conn net.Conn, now fasthttp.ConnState) {
	k, ok := conn.(kept)
	switch {
	case !ok, now == fasthttp.StateNew: // admit has seen it
	case now == fasthttp.StateClosed || now == fasthttp.StateHijacked:
		c.forget(k)
	default: // it begins a call, or its call was answered
		k.turn().Store(c.turns.Add(1))
	}
}

// forget takes a connection out of those that are open.
func (c *Connections) forget(conn kept) {
	conn.turn().Store(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.open[conn]; !known {
		return
	}
	delete(c.open, conn)
	c.metrics.Connections.Dec()
	select {
	case c.gone <- struct{}{}:
	default:
	}
}

// Within has the next reads of a connection end after that time, unless it was cut.
func Within(conn net.Conn, d time.Duration) {
	if k, ok := conn.(kept); ok && k.turn().Load() > 0 {
		_ = conn.SetReadDeadline(time.Now().Add(d))
	}
}

// Answering says that a call has come whole. Its connection is not cut before it is answered.
func Answering(conn net.Conn) {
	if k, ok := conn.(kept); ok {
		k.turn().Store(0)
	}
}

// IsLate reports whether an error means that what was waited for did not come before its deadline.
func IsLate(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}
