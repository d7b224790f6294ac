// Package edge is what a listener does before anybody looks at a call: it bounds the connections, so that thousands that begin
// something and never end it cost little memory and hinder nobody, and refuses heads whose end is in doubt.
package edge

import (
	"container/list"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
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

	mu      sync.Mutex
	open    map[net.Conn]*list.Element // under mu; its element in waiting, nil while its call is being answered
	waiting *list.List                 // under mu; of net.Conn, the longest first

	gone chan struct{} // of one: holds something if a connection ended since it was looked at
}

// NewConnections bounds them to most, at least 1. They are counted in m.
func NewConnections(most int, m *metrics.Metrics) *Connections {
	return &Connections{most: most, metrics: m, open: map[net.Conn]*list.Element{}, waiting: list.New(), gone: make(chan struct{}, 1)}
}

// Bound makes s, which must not serve yet, keep to c. What it serves must come from c.Listener.
func (c *Connections) Bound(s *fasthttp.Server) {
	s.ConnState = c.state
	// Never reached: there fasthttp would write to the connection before it accepts the next, and with TLS wait for its handshake.
	s.Concurrency = c.hardMost() + 1
}

// hardMost is how many there are at most for a moment: one that is cut takes a little to be gone, which is waited for.
func (c *Connections) hardMost() int { return c.most + c.most/4 + 1 }

// gonePatience is for how long.
const gonePatience = 200 * time.Millisecond

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
		if b.c.admit(conn) {
			return conn, nil
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
func (c *Connections) admit(conn net.Conn) bool {
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
	if len(c.open) >= c.most {
		longest := c.waiting.Front()
		if longest == nil {
			return false
		}
		slow := c.waiting.Remove(longest).(net.Conn)
		c.open[slow] = nil
		c.metrics.ConnectionsCut.WithLabelValues("slow").Inc()
		// Who reads from it finds out, answers and closes it. To close it here could wait, with TLS.
		_ = slow.SetReadDeadline(time.Unix(1, 0))
	}
	c.open[conn] = c.waiting.PushBack(conn)
	c.metrics.Connections.Inc()
	return true
}

// state follows a connection's life. It is fasthttp's ConnState.
func (c *Connections) state(conn net.Conn, now fasthttp.ConnState) {
	if now == fasthttp.StateNew { // admit has seen it
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	element, known := c.open[conn]
	switch {
	case !known:
	case now == fasthttp.StateClosed || now == fasthttp.StateHijacked:
		if element != nil {
			c.waiting.Remove(element)
		}
		delete(c.open, conn)
		c.metrics.Connections.Dec()
		select {
		case c.gone <- struct{}{}:
		default:
		}
	case element != nil: // it begins a call, or was refused before its call was whole
		c.waiting.MoveToBack(element)
	default: // its call was answered
		c.open[conn] = c.waiting.PushBack(conn)
	}
}

// Answering says that a call has come whole. Its connection is not cut before it is answered.
func (c *Connections) Answering(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element := c.open[conn]; element != nil {
		c.waiting.Remove(element)
		c.open[conn] = nil
	}
}
