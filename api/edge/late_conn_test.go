package edge

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// late returns a connection as the server has it, and its other end.
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

func timesOut(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: %v, want a timeout", what, err)
	}
}

func TestADeadlineIsKeptThoughItIsSetLate(t *testing.T) {
	conn, other := late(t)
	soon := func() time.Time { return time.Now().Add(20 * time.Millisecond) }
	b := make([]byte, 1)
	_ = conn.SetReadDeadline(time.Now().Add(time.Hour))
	_ = conn.SetReadDeadline(soon())
	_, err := conn.Read(b)
	timesOut(t, "a read whose deadline was brought forward", err)

	_ = conn.SetReadDeadline(time.Time{})
	if _, err := other.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, b); err != nil {
		t.Errorf("a read whose deadline was taken away: %v", err)
	}

	_ = conn.SetDeadline(soon())
	_, err = conn.Read(b)
	timesOut(t, "a read, by a deadline for both", err)

	err = nil
	for err == nil { // until the other end's buffer is full
		_, err = conn.Write(make([]byte, 1<<20))
	}
	timesOut(t, "a write, by a deadline for both", err)
}

func TestAConnectionThatIsCutStaysCut(t *testing.T) {
	conn, _ := late(t)
	b := make([]byte, 1)
	ended := make(chan error)
	go func() {
		_, err := conn.Read(b)
		ended <- err
	}()
	conn.cut()
	timesOut(t, "a read that another goroutine ends", <-ended)

	// The server may be about to wait for the next call, and reads what is left of a bad one.
	readsNothingMore(t, conn)
}

func TestAConnectionWithTLSThatIsCutStaysCut(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()

	conn := &tlsConn{Conn: tls.Server(ours, new(tls.Config))}
	conn.cut()
	readsNothingMore(t, conn)
}

// readsNothingMore checks that reads of a connection end at once, whatever deadline is set.
func readsNothingMore(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	started := time.Now()
	for range 2 {
		_, err := conn.Read(make([]byte, 1))
		timesOut(t, "a read behind the cut", err)
	}
	if waited := time.Since(started); waited > 4*time.Second {
		t.Errorf("reads behind the cut end after %v", waited)
	}
}

// A caller whose time is nearly over still gets what is there.
func TestADeadlineThatIsOverIsSetAnew(t *testing.T) {
	conn, other := late(t)
	_ = conn.SetReadDeadline(time.Now().Add(-time.Millisecond))
	_, err := conn.Read(make([]byte, 1))
	timesOut(t, "a read behind its deadline", err)

	_ = conn.SetReadDeadline(time.Now().Add(deadlineSlack / 2))
	if _, err := other.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Errorf("a read before its deadline: %v", err)
	}
}

func TestADeadlineThatMovesALittleIsLeftAsItIs(t *testing.T) {
	var d lateDeadline
	now := time.Now()

	for _, c := range []struct {
		wanted time.Duration
		isDue  bool
	}{
		{time.Minute, true},
		{time.Minute, false},
		{time.Minute + deadlineSlack, false},
		{time.Minute + deadlineSlack + 1, true},
		{time.Minute, true},
		{15 * time.Second, true},
		{time.Minute, true},
	} {
		d.wanted = now.Add(c.wanted)
		if d.isDue() != c.isDue {
			t.Errorf("%v: it is due: %v", c.wanted, !c.isDue)
		}
		if early := d.wanted.Sub(d.set); early < 0 || early > deadlineSlack {
			t.Errorf("%v is set %v too soon", c.wanted, early)
		}
	}
}
