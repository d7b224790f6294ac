package edge

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// connected returns a connection as the server has it, and its other end.
func connected(t *testing.T) (*plainConn, net.Conn) {
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

	return &plainConn{Conn: conn}, other
}

func timesOut(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: %v, want a timeout", what, err)
	}
}

func TestAConnectionThatIsCutStaysCut(t *testing.T) {
	conn, _ := connected(t)
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

	secret := tls.Server(ours, new(tls.Config))
	conn := &tlsConn{plainConn{Conn: secret}, secret}
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
