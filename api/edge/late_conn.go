package edge

import (
	"net"
	"os"
	"sync/atomic"
	"time"
)

// lateConn is a connection whose deadlines reach the runtime's timers only when something may
// have to wait for them. The server sets four for each request, most of which is in its buffer by
// then.
//
// One goroutine at a time may read, write and set deadlines, which do not reach a request
// that waits already. Any other may call cut.
type lateConn struct {
	net.Conn
	read, write lateDeadline
	isCut       atomic.Bool
}

// lateDeadline is a deadline that was asked for, and the one that is in force. The zero time is
// none.
type lateDeadline struct{ wanted, set time.Time }

// deadlineSlack is how much sooner than asked for a deadline may be, so that not every
// request needs a new one.
const deadlineSlack = time.Second

// isDue reports whether the deadline in force does not serve. Then the caller must set the one that
// was asked for.
func (d *lateDeadline) isDue() bool {
	sooner := d.wanted.Sub(d.set)
	isNear := sooner >= 0 && sooner <= deadlineSlack
	if isNear && (d.set.IsZero() || d.set.After(time.Now())) {
		return false
	}
	d.set = d.wanted

	return true
}

// SetReadDeadline sets when reads end.
func (c *lateConn) SetReadDeadline(t time.Time) error {
	c.read.wanted = t
	return nil
}

// SetWriteDeadline sets when writes end.
func (c *lateConn) SetWriteDeadline(t time.Time) error {
	c.write.wanted = t
	return nil
}

// SetDeadline sets when reads and writes end.
func (c *lateConn) SetDeadline(t time.Time) error {
	c.read.wanted, c.write.wanted = t, t
	return nil
}

// cut ends the read that is under way, and all later ones.
func (c *lateConn) cut() {
	c.isCut.Store(true)
	_ = c.Conn.SetReadDeadline(longPast)
}

// longPast is a deadline that is over.
var longPast = time.Unix(1, 0)

// Read reads from the connection.
func (c *lateConn) Read(p []byte) (int, error) {
	if c.read.isDue() {
		if err := c.Conn.SetReadDeadline(c.read.set); err != nil {
			return 0, err
		}
	}

	// Asked here: a deadline that was just set may have replaced the one by which cut ends reads.
	if c.isCut.Load() {
		return 0, os.ErrDeadlineExceeded
	}

	return c.Conn.Read(p)
}

// Write writes to the connection.
func (c *lateConn) Write(p []byte) (int, error) {
	if c.write.isDue() {
		if err := c.Conn.SetWriteDeadline(c.write.set); err != nil {
			return 0, err
		}
	}

	return c.Conn.Write(p)
}
