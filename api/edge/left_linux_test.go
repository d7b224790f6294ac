package edge

import (
	"net"
	"testing"
	"time"
)

func TestWhoeverHasLeftIsSeen(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	caller, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	conn := &plainConn{Conn: accepted}

	// What was sent and not read yet does not hide it.
	if _, err := caller.Write([]byte("the next call")); err != nil {
		t.Fatal(err)
	}
	if HasLeft(conn) {
		t.Error("it is still there")
	}
	_ = caller.Close()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if HasLeft(conn) {
			break
		}
	}

	_ = accepted.Close()
	if HasLeft(conn) {
		t.Error("a connection that we have closed says nothing")
	}
	if a, b := net.Pipe(); HasLeft(a) || HasLeft(b) {
		t.Error("no socket")
	}
}
