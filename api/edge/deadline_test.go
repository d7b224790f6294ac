package edge

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// late is a connection as the server has it, and its other end.
func late(t *testing.T) (*lateConn, net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	other, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	conn, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &lateConn{Conn: conn}, other
}

func TestADeadlineIsKeptThoughItIsSetLate(t *testing.T) {
	conn, other := late(t)
	soon := func() time.Time { return time.Now().Add(20 * time.Millisecond) }
	timesOut := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v, want a timeout", what, err)
		}
	}
	b := make([]byte, 1)
	_ = conn.SetReadDeadline(time.Now().Add(time.Hour))
	_ = conn.SetReadDeadline(soon())
	_, err := conn.Read(b)
	timesOut("a read whose deadline was brought forward", err)

	_ = conn.SetReadDeadline(time.Time{})
	if _, err := other.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, b); err != nil {
		t.Errorf("a read whose deadline was taken away: %v", err)
	}

	_ = conn.SetDeadline(soon())
	_, err = conn.Read(b)
	timesOut("a read, by a deadline for both", err)
	_ = conn.SetReadDeadline(time.Time{})
	ended := make(chan struct{})
	go func() {
		for { // until it meets the read under way
			select {
			case <-ended:
				return
			default:
				_ = conn.SetReadDeadline(time.Unix(1, 0))
			}
		}
	}()
	_, err = conn.Read(b)
	close(ended)
	timesOut("a read that another goroutine ends", err)

	for err = nil; err == nil; _, err = conn.Write(make([]byte, 1<<20)) { // until the other end's buffer is full
	}
	timesOut("a write, by a deadline for both", err)
}

func TestADeadlineThatMovesALittleIsLeftAsItIs(t *testing.T) {
	var d lateDeadline
	now := time.Now()
	for _, c := range []struct {
		wanted time.Duration
		due    bool
	}{{time.Minute, true}, {time.Minute, false}, {time.Minute + deadlineSlack, false}, {time.Minute + deadlineSlack + 1, true}, {time.Minute, true}, {15 * time.Second, true}, {time.Minute, true}} {
		if d.wanted = now.Add(c.wanted); d.due() != c.due {
			t.Errorf("%v: due is %v", c.wanted, !c.due)
		}
		if early := d.wanted.Sub(d.set); early < 0 || early > deadlineSlack {
			t.Errorf("%v is set %v too soon", c.wanted, early)
		}
	}
}
