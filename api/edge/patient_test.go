package edge

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// poor is a listener whose Accept fails with each of errs, and then has a connection.
type poor struct {
	net.Listener
	errs []error
}

func (p *poor) Accept() (net.Conn, error) {
	if len(p.errs) == 0 {
		conn, _ := net.Pipe()
		return conn, nil
	}
	err := p.errs[0]
	p.errs = p.errs[1:]

	return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
}

func (p *poor) Addr() net.Addr { return &net.TCPAddr{} }

func TestAcceptOutlastsAShortage(t *testing.T) {
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	short := []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM}
	conn, err := Patient(&poor{errs: short}, logger).Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if warned := strings.Count(log.String(), "WARN"); warned != 1 || !strings.Contains(log.String(), "accepted again") {
		t.Errorf("logged:\n%s", log.String())
	}
}

func TestAcceptEndsWithItsListener(t *testing.T) {
	ln := Patient(&poor{errs: []error{syscall.EMFILE, net.ErrClosed}}, slog.New(slog.DiscardHandler))
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v, want that the listener is closed", err)
	}
}
