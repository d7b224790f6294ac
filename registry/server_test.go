package registry_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/wire"
	"promptspool/registry"
	"promptspool/spool/disk/disktest"
)

// server is a real Registry behind a network that can fail. It is a registry.Upstream.
type server struct {
	wire.TemplateEditor
	mu     sync.Mutex
	behind *registry.Registry
	down   chan struct{} // closed while the server is away
	hold   time.Duration // how long an answer to Raw takes
	deaf   bool          // the feed reports nothing
	hang   bool          // new calls of Raw and Changes get no answer at all
	err    error         // what Raw answers instead
	asked  int           // calls of Raw
}

func TestMain(m *testing.M) {
	disktest.InMemory()
	m.Run()
}

var quiet = slog.New(slog.DiscardHandler)

var errAway = wire.Unavailable(time.Second, "connection refused")

func newServer() *server {
	behind := registry.New(registry.Config{Store: newStore(), Logger: quiet})
	return &server{behind: behind, down: make(chan struct{})}
}

func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *server) registry() *registry.Registry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.behind
}

// goAway breaks every call in flight, and refuses new ones.
func (s *server) goAway()   { s.set(func() { close(s.down) }) }
func (s *server) comeBack() { s.set(func() { s.down = make(chan struct{}) }) }

func (s *server) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// connect returns a context that ends when the connection breaks, and the error that a
// call has then.
func (s *server) connect(ctx context.Context) (_ context.Context, broken func(error) error) {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()

	ctx, cancel := context.WithCancel(ctx)
	select {
	case <-down:
		cancel()
	default:
		go func() {
			select {
			case <-down:
			case <-ctx.Done():
			}
			cancel()
		}()
	}

	return ctx, func(err error) error {
		defer cancel()
		if ctx.Err() != nil {
			return errAway
		}
		return err
	}
}

func (s *server) Raw(ctx context.Context, id wire.Identity, ident string, sel wire.Selector) (wire.RawTemplate, error) {
	ctx, broken := s.connect(ctx)
	s.mu.Lock()
	s.asked++
	hold, err := s.hold, s.err
	s.mu.Unlock()

	s.swallow(ctx)
	if err != nil {
		return wire.RawTemplate{}, broken(err)
	}

	raw, err := s.registry().Raw(ctx, id, ident, sel) // read first, then held: the answer may be old when it comes
	if hold > 0 {
		select {
		case <-time.After(hold):
		case <-ctx.Done():
		}
	}
	return raw, broken(err)
}

func (s *server) Publish(ctx context.Context, id wire.Identity, p wire.Publish) (wire.Published, error) {
	ctx, broken := s.connect(ctx)
	if ctx.Err() != nil {
		return wire.Published{}, broken(nil)
	}
	out, err := s.registry().Publish(ctx, id, p)
	return out, broken(err)
}

func (s *server) List(ctx context.Context, id wire.Identity, q wire.TemplateListQuery) (wire.TemplateList, error) {
	ctx, broken := s.connect(ctx)
	s.swallow(ctx)
	out, err := s.registry().List(ctx, id, q)
	return out, broken(err)
}

func (s *server) Changes(ctx context.Context, id wire.Identity, q wire.ChangesQuery) (wire.Changes, error) {
	ctx, broken := s.connect(ctx)
	s.swallow(ctx)
	out, err := s.registry().Changes(ctx, id, q)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deaf {
		return wire.Changes{}, errAway
	}
	return out, broken(err)
}

func (s *server) swallow(ctx context.Context) {
	s.mu.Lock()
	hang := s.hang
	s.mu.Unlock()
	if hang {
		<-ctx.Done()
	}
}

// publish publishes at the server, not through the sidecar.
func (s *server) publish(t *testing.T, p wire.Publish) {
	t.Helper()
	publish(t, s.registry(), p)
}

// release publishes a text of the template greet, and waits until the sidecar has heard of it.
func (s *server) release(t *testing.T, text string) {
	t.Helper()
	s.publish(t, says("greet", text))
	synctest.Wait()
}
