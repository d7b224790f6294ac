// Package webhook delivers notices to the targets of projects: webhooks, Slack and Alertmanager.
//
// The database has the queues, and which server delivers for which target. A notice is delivered at
// least once, under one id, in the order of its target's queue. A target that fails is tried again
// until it takes the notice or a person discards it; only what it refuses becomes a dead letter.
package webhook

import (
	"context"
	"crypto/cipher"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"code.dny.dev/ssrf"

	"promptspool/api/wire"
	"promptspool/metrics"
)

const (
	lookEvery   = time.Second
	sendTimeout = 15 * time.Second
	heldFor     = 4 * sendTimeout // then another server takes over from one that was killed

	pauseMin      = 2 * time.Second
	pauseMax      = 10 * time.Minute
	retryAfterMax = time.Hour
	refusalsMax   = 5 // attempts that a target refuses before a notice is dead
)

// Store keeps targets and their queues. Package accounts documents it.
type Store interface {
	SealedTargets(ctx context.Context, id wire.Identity) ([]wire.SealedTarget, error)
	ChangeTarget(ctx context.Context, id wire.Identity, name string, change func(*wire.SealedTarget) error) error
	RemoveTarget(ctx context.Context, id wire.Identity, name string) error
	Deliveries(ctx context.Context, id wire.Identity, name string, q wire.DeliveryQuery) ([]wire.Delivery, error)
	TakeDeliveries(ctx context.Context, id wire.Identity, name string, c wire.DeliveryChoice) (int, error)

	SpreadNotices(ctx context.Context) error
	EachTarget(ctx context.Context, fn func(account string, t *wire.SealedTarget)) error
	Deliver(ctx context.Context, account, name, holder string, last *wire.Attempt, until time.Time) (
		next *wire.Attempt, err error)
}

// Config configures a Service.
type Config struct {
	Store     Store
	Key       wire.Secret    // seals URLs and secrets: no target can be made without one
	Allow     []netip.Prefix // addresses that are called although they are private
	PublicURL string         // before the paths of notices; "" if it is unknown
	Metrics   *metrics.Metrics
	Logger    *slog.Logger
}

// Service delivers notices, and is a wire.Targets. It is safe for concurrent use.
type Service struct {
	Store
	c      Config
	client *http.Client
	holder string // this process, among the servers of a database
	sealer cipher.AEAD
	every  time.Duration
}

// New makes a Service.
//
// It calls public addresses, and those that are allowed. Redirects are not followed, and proxies of the
// environment not used.
func New(c Config) *Service {
	s := &Service{Store: c.Store, c: c, holder: wire.NewID(), sealer: newSealer(c.Key), every: lookEvery}
	s.client = &http.Client{
		Timeout:       sendTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     newTransport(newDialer(c.Allow)),
	}
	return s
}

// newDialer returns a dialer that checks the address which is really dialled, so that a name cannot
// lead elsewhere after a check.
func newDialer(allow []netip.Prefix) *net.Dialer {
	// A prefix has no addresses of the other family.
	guard := ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(allow...), ssrf.WithAllowedV6Prefixes(allow...))
	return &net.Dialer{Timeout: sendTimeout, Control: guard.Safe}
}

// newTransport returns a transport that uses each connection once: what a target writes after its answer must
// not count for the next notice.
func newTransport(dialer *net.Dialer) *http.Transport {
	return &http.Transport{
		DialContext:            dialer.DialContext,
		DisableCompression:     true,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// Run delivers until ctx ends, and returns nil then. An attempt that is under way is given up: its notice
// is delivered again, under the same id, by another server or after the next start.
func (s *Service) Run(ctx context.Context) error {
	var sending sync.WaitGroup
	defer sending.Wait()
	var busy sync.Map // ids of targets for which this server delivers
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		err := s.SpreadNotices(ctx)
		waiting, dead := 0, 0
		if err == nil {
			err = s.EachTarget(ctx, func(account string, t *wire.SealedTarget) {
				waiting += t.Waiting
				dead += t.Dead
				// Each has its own goroutine: a slow target delays no other. It has one, also while the database is
				// slow to lend the target.
				if _, is := busy.Load(t.ID); !is && t.IsDue(time.Now()) {
					busy.Store(t.ID, true)
					sending.Go(func() {
						defer busy.Delete(t.ID)
						s.deliver(ctx, account, t.Name)
					})
				}
			})
		}
		s.c.Metrics.TargetsWaiting.Set(float64(waiting))
		s.c.Metrics.TargetsDead.Set(float64(dead))
		s.warn(ctx, "notices wait for the database", err)

		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *Service) warn(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		s.c.Logger.Warn(what, "error", err)
	}
}

// deliver delivers what waits for a target until there is no more, an attempt fails, or ctx ends.
func (s *Service) deliver(ctx context.Context, account, name string) {
	var last *wire.Attempt
	for {
		next, err := s.Deliver(ctx, account, name, s.holder, last, time.Now().Add(heldFor))
		s.warn(ctx, "a target waits for the database", err)
		if err != nil || next == nil {
			return
		}

		s.attempt(ctx, next)
		// An attempt that our own end cut short says nothing about the target.
		if ctx.Err() != nil {
			return
		}
		last = next
	}
}

// attempt sends once, and notes what became of it.
func (s *Service) attempt(ctx context.Context, a *wire.Attempt) {
	result := "delivered"
	failed := s.send(ctx, a)
	if failed != nil {
		result = "failed"
		tries := a.Target.Tries + 1
		a.Error = failed.Error()
		a.RetryAt = time.Now().UTC().Add(max(pause(tries), min(failed.retryAfter, retryAfterMax)))
		if failed.refused && tries >= refusalsMax && !a.Repeats {
			result = "dead"
			a.Dead, a.RetryAt = true, time.Time{}
		}
		s.c.Logger.Info("a notice was not delivered", "target", a.Target.Name, "id", a.Target.ID,
			"tries", tries, "dead", a.Dead, "error", a.Error)
	}
	s.c.Metrics.TargetDeliveries.WithLabelValues(result).Inc()
}

// pause is how long to wait after a number of failed attempts: twice as long each time, and between half
// of it and all, so that targets of one host do not return together.
func pause(tries int) time.Duration {
	most := min(pauseMin<<min(tries-1, 20), pauseMax)
	return most/2 + rand.N(most/2)
}

// failure is why an attempt failed.
type failure struct {
	error
	refused    bool // by the target, so that another attempt would probably not help
	retryAfter time.Duration
}

func failed(format string, args ...any) *failure { return &failure{error: fmt.Errorf(format, args...)} }
