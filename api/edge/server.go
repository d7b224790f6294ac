package edge

import (
	"context"
	"net"
	"sync"

	"github.com/valyala/fasthttp"
)

// Server is a fasthttp.Server that can be shut down at any moment.
//
// fasthttp's own Shutdown does not know a listener whose Serve has not run yet: a process that is
// told to end right after its start would serve that listener forever.
//
// Safe for concurrent use. After Shutdown it serves nothing any more.
type Server struct {
	HTTP *fasthttp.Server

	mu        sync.Mutex
	stopped   bool
	listeners []net.Listener
}

// Serve answers requests on ln until Shutdown, after which it returns nil. It closes ln.
func (s *Server) Serve(ln net.Listener) error {
	ln = &closedOnce{Listener: ln}
	s.mu.Lock()
	s.listeners = append(s.listeners, ln)
	stopped := s.stopped
	s.mu.Unlock()

	if stopped {
		return ln.Close()
	}

	// If Shutdown comes before this has begun, the closed listener ends it.
	return s.HTTP.Serve(ln)
}

// Shutdown closes the listeners and waits for handlers to end, as long as ctx allows.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	for _, ln := range s.listeners {
		_ = ln.Close() // fasthttp closes it again, and gets the error
	}
	s.mu.Unlock()

	return s.HTTP.ShutdownWithContext(ctx)
}

// closedOnce is a listener that may be closed more than once.
type closedOnce struct {
	net.Listener
	once sync.Once
	err  error
}

// Close closes the listener, or returns the error of the time when it was closed.
func (l *closedOnce) Close() error {
	l.once.Do(func() { l.err = l.Listener.Close() })
	return l.err
}
