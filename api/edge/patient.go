package edge

import (
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// acceptPause is how long a listener waits when no connection can be accepted. It delays a stop by
// as much at most.
const acceptPause = 50 * time.Millisecond

// Patient returns ln with an Accept that outlasts a shortage. While too many files are open, or
// the kernel has no memory for one more connection, it waits and continues; callers wait in the
// kernel's queue meanwhile. The beginning and the end of a shortage are logged.
func Patient(ln net.Listener, logger *slog.Logger) net.Listener {
	return &patient{Listener: ln, logger: logger}
}

type patient struct {
	net.Listener
	logger *slog.Logger
	short  atomic.Bool // the last Accept failed for want of something
}

// Accept returns the next connection, or an error if there will be none.
func (p *patient) Accept() (net.Conn, error) {
	for {
		conn, err := p.Listener.Accept()
		if err != nil && !isShortage(err) {
			return nil, err
		}

		p.note(err)
		if err == nil {
			return conn, nil
		}
		time.Sleep(acceptPause)
	}
}

// note logs when a shortage begins and ends.
func (p *patient) note(err error) {
	// Not once for each connection: a shortage lasts for many of them.
	before := p.short.Swap(err != nil)
	at := p.Addr().String()
	switch {
	case err != nil && !before:
		p.logger.Warn("Cannot accept a connection; callers wait. "+
			"Raise the limit of open files (ulimit -n) if this happens again.", "listen", at, "error", err)
	case err == nil && before:
		p.logger.Info("Connections are accepted again.", "listen", at)
	}
}

// isShortage reports whether an error of accept passes by itself: too many open files, in the
// process or the system, no memory for a socket, or a caller that hung up while it waited.
func isShortage(err error) bool {
	for _, passing := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}

	return false
}
