package edge

import (
	"errors"
	"net"
	"time"
)

// lateConn is a connection whose deadlines reach the runtime's timers only where something may have to wait for them. The server
// sets four for each call, most of which is in its buffer by then: that was a twentieth of what a cached template's fetch took. As in the
// server, one goroutine at a time may read, write and set deadlines; any other may set a deadline of reading that is long past, which ends
// a read that is under way.
type lateConn struct {
	net.Conn
	read, write lateDeadline
}

// NetConn is the connection itself.
func (c *lateConn) NetConn() net.Conn { return c.Conn }

// lateDeadline is a deadline that was asked for, and the one that is in force. Zero times are none.
type lateDeadline struct{ wanted, set time.Time }

// deadlineSlack is how much sooner than asked for a deadline may be, so that not every call needs a new one.
const deadlineSlack = time.Second

// due says whether the deadline in force does not serve, and takes the one that was asked for as set.
func (d *lateDeadline) due() bool {
	if sooner := d.wanted.Sub(d.set); sooner >= 0 && sooner <= deadlineSlack {
		return false
	}
	d.set = d.wanted
	return true
}

// longPast is before all deadlines that are meant to be waited for.
var longPast = time.Unix(1e9, 0)

func (c *lateConn) SetReadDeadline(t time.Time) error {
	if !t.IsZero() && t.Before(longPast) {
		return c.Conn.SetReadDeadline(t)
	}
	c.read.wanted = t
	return nil
}

func (c *lateConn) SetWriteDeadline(t time.Time) error {
	c.write.wanted = t
	return nil
}

func (c *lateConn) SetDeadline(t time.Time) error {
	c.read.wanted, c.write.wanted = t, t
	return nil
}

func (c *lateConn) Read(p []byte) (int, error) {
	if c.read.due() {
		if err := c.Conn.SetReadDeadline(c.read.set); err != nil {
			return 0, err
		}
	}
	return c.Conn.Read(p)
}

func (c *lateConn) Write(p []byte) (int, error) {
	if c.write.due() {
		if err := c.Conn.SetWriteDeadline(c.write.set); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

// IsLate says whether an error means that what was waited for did not come before its deadline.
func IsLate(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}
