// Package edgetest has connections for tests under the clock of testing/synctest.
package edgetest

import (
	"context"
	"net"
)

// Pipes is a listener within the process. Its connections are pipes, so that a bubble's clock
// counts for them, and they buffer nothing.
type Pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

// NewPipes returns a listener. It belongs to the bubble in which it was made.
func NewPipes() *Pipes {
	return &Pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// DialContext connects to the listener, whatever the address.
func (p *Pipes) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept returns the other end of the next connection.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (p *Pipes) Close() error {
	close(p.closed)
	return nil
}

// Addr returns an address that is none.
func (p *Pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "pipe"} }
