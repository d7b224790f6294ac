package proxy_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/proxy"
	"promptspool/spool/disk/disktest"
	"promptspool/spool/queue"
)

func TestMain(m *testing.M) {
	disktest.InMemory()
	goleak.VerifyTestMain(m)
}

const (
	spoolBytesMax = 8 << 20
	trustOf       = 1_000_000 // what the ring takes for that bound, so that 50 kB are taken on trust
)

// sidecar is the part of a sidecar that is tested here, over a real spool.
type sidecar struct {
	*proxy.Proxy
	t                 testing.TB
	bytesMax, trustOf int64         // a change counts from the next start
	ahead             time.Duration // of the clock before the server's, as far as the sidecar knows
	dir               string
	spool             *queue.Queue
	forwarder         *proxy.Forwarder // of the last call of forward
	keys              *proxy.Keyring
	metrics           *metrics.Metrics
	log               *safeBuffer // all that was ever logged
	peer              peer
}

// peer is the server as a sidecar sees it.
type peer interface {
	proxy.Asker
	proxy.Upstream
}

func newSidecar(t testing.TB, p peer) *sidecar {
	t.Helper()
	s := &sidecar{t: t, bytesMax: spoolBytesMax, trustOf: trustOf, dir: t.TempDir(), log: new(safeBuffer), peer: p}
	s.start()
	t.Cleanup(func() {
		s.stop()
		if log := s.log.String(); strings.Contains(log, string(annsKey)) || strings.Contains(log, string(bobsKey)) {
			t.Error("a key is in the log")
		}
	})
	return s
}

func (s *sidecar) start() {
	s.t.Helper()
	logger := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.metrics = metrics.New("sidecar", "test")
	var err error
	s.spool, err = queue.Open(queue.Config{
		Dir: filepath.Join(s.dir, "spool"), BytesMax: s.bytesMax, Logger: logger, Metrics: s.metrics,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.keys, err = proxy.OpenKeyring(proxy.KeyringConfig{
		Dir: s.keyDir(), Asker: s.peer, Spool: s.spool, SpoolBytesMax: s.trustOf, Logger: logger,
		Now: func() time.Time { return time.Now().Add(-s.ahead) },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.Proxy = proxy.New(s.spool, s.keys, versions{}, logger)
}

func (s *sidecar) keyDir() string { return filepath.Join(s.dir, "keys") }

func (s *sidecar) stop() {
	s.t.Helper()
	s.keys.Close()
	if err := s.spool.Close(); err != nil {
		s.t.Error(err)
	}
}

func (s *sidecar) restart() {
	s.t.Helper()
	s.stop()
	s.start()
}

// forward runs a forwarder until what stop does, or the end of the test.
func (s *sidecar) forward() (stop func()) {
	s.t.Helper()
	f := proxy.NewForwarder(s.spool, s.keys, s.peer, s.metrics, slog.New(slog.NewTextHandler(s.log, nil)))
	s.forwarder = f
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("the forwarder ended with %v", err)
		}
	})
	s.t.Cleanup(stop)
	return stop
}

// drain forwards until the spool is empty, and tells how long it took. In a bubble only.
func (s *sidecar) drain() time.Duration {
	s.t.Helper()
	start := time.Now()
	newest, _ := s.spool.Newest()
	defer s.forward()()
	for tick := time.Millisecond; s.spool.Frontier() <= newest; tick = min(2*tick, 100*time.Millisecond) {
		<-time.After(tick)
		if time.Since(start) > 24*time.Hour {
			s.t.Fatal("the spool is not empty after a day")
		}
	}
	return time.Since(start)
}

// authenticate tells who has this key, and how long that took.
func (s *sidecar) authenticate(key wire.Secret) (wire.Identity, time.Duration, error) {
	start := time.Now()
	id, err := s.keys.Authenticate(context.Background(), key)
	return id, time.Since(start), err
}

// write does what the API does with a write: authenticate and record. The events are scores with these names.
func (s *sidecar) write(key wire.Secret, names ...string) error {
	id, _, err := s.authenticate(key)
	if err != nil {
		return err
	}
	_, err = s.Record(context.Background(), id, scores(names...))
	return err
}

func (s *sidecar) mustWrite(key wire.Secret, names ...string) {
	s.t.Helper()
	if err := s.write(key, names...); err != nil {
		s.t.Fatal(err)
	}
}

// fill writes events of 64 KiB until the spool takes no more. It gives the names of those that it took.
func (s *sidecar) fill(key wire.Secret) (names []string, err error) {
	s.t.Helper()
	for i := 0; ; i++ {
		event := scores(fmt.Sprintf("e%02d", i))
		name := nameIn(event[0])
		if _, err := s.Record(context.Background(), s.identity(key), padded(event)); err != nil {
			return names, err
		}
		names = append(names, name)
	}
}

// padded makes events larger by 64 KiB.
func padded(events []wire.Event) []wire.Event {
	for i, e := range events {
		events[i].Body = fmt.Appendf(nil, `{"pad":"%s",%s`, strings.Repeat("x", 64<<10), e.Body[1:])
	}
	return events
}

// lane gives the names of the events in a lane, and the reasons.
func (s *sidecar) lane(lane queue.Lane) (names, reasons []string) {
	s.t.Helper()
	for e, err := range s.spool.Lane(lane) {
		if err != nil {
			s.t.Fatal(err)
		}
		names, reasons = append(names, nameOf(s.t, e.Data)), append(reasons, e.Reason)
	}
	return names, reasons
}

// metric returns a metric's value; of a histogram, how many it has seen. label is the value of its
// one label, or "".
func (s *sidecar) metric(name, label string) float64 {
	s.t.Helper()
	families, err := s.metrics.Registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	s.t.Fatalf("there is no metric %s %s", name, label)
	return 0
}

func scores(names ...string) []wire.Event {
	var events []wire.Event
	for _, name := range names {
		events = append(events, wire.Event{
			ID: wire.NewID(), Kind: wire.KindScore, RequestID: wire.NewID(), AcceptedAt: time.Now(), Sidecar: "pod-1",
			Body: fmt.Appendf(nil, `{"name":%q,"score":1}`, name),
		})
	}
	return events
}

func nameOf(t testing.TB, line []byte) string {
	t.Helper()
	e, err := wire.ParseEvent(line)
	if err != nil {
		t.Fatal(err)
	}
	return nameIn(e)
}

func numbered(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("e%d", i+1))
	}
	return names
}

// versions knows one template of one account.
type versions struct{}

func (versions) Version(account, ident string, s wire.Selector) (int, bool) {
	switch {
	case account != "ann" || ident != "greeting":
		return 0, false
	case s.Label == "prod":
		return 2, true
	}
	return 3, s.Label == ""
}

// limitChecks makes rapid run n checks, unless the command line sets their number.
func limitChecks(t *testing.T, n int) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue {
		return
	}
	if err := f.Value.Set(strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
}

// bubble plays a scene of a sidecar and its server under a clock that moves only when everybody waits.
func bubble(t *testing.T, play func(t *testing.T, s *sidecar, srv *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t)
		play(t, newSidecar(t, srv), srv)
	})
}

// scene is a bubble with a name.
func scene(t *testing.T, name string, play func(t *testing.T, s *sidecar, srv *server)) {
	t.Run(name, func(t *testing.T) { bubble(t, play) })
}

// pass lets time pass, and then all do what they do at that time.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// safeBuffer takes a log from many goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
