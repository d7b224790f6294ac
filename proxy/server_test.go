package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"promptspool/api/wire"
)

const (
	annsKey wire.Secret = "anns-key-0123456789abcdef"
	bobsKey wire.Secret = "bobs-key-0123456789abcdef"
)

// server is a scripted server. It knows annsKey and bobsKey, and takes all events, until told
// otherwise.
type server struct {
	t testing.TB

	mu   sync.Mutex
	keys map[wire.Secret]wire.KeyVerdict

	// verdict answers questions about keys. If it is nil, keys does.
	verdict  func(ctx context.Context, key wire.Secret) (wire.KeyVerdict, error)
	script   []reply      // what the next batches get; take after them
	always   reply        // instead of take, unless nil
	before   func(c call) // looks at each batch first; may be nil
	asked    []wire.Secret
	calls    []call
	received []string       // names of the events that were taken, in order
	of       map[string]int // how often each was
}

// call is one batch that came.
type call struct {
	at     time.Time
	key    wire.Secret
	events []wire.Event
}

func (c call) names() []string {
	var names []string
	for _, e := range c.events {
		names = append(names, nameIn(e))
	}
	return names
}

func (c call) has(name string) bool { return slices.Contains(c.names(), name) }

// reply answers a batch. It is called with the server's mutex held.
type reply func(ctx context.Context, s *server, c call) (wire.BatchAnswer, error)

func newServer(t testing.TB) *server {
	return &server{t: t, of: map[string]int{}, keys: map[wire.Secret]wire.KeyVerdict{
		annsKey: {Success: true, Account: "ann", KeyID: "k1", Scope: wire.ScopeFull},
		bobsKey: {Success: true, Account: "bob", KeyID: "k2", Scope: wire.ScopeApp},
	}}
}

func (s *server) Verdict(ctx context.Context, key wire.Secret) (wire.KeyVerdict, error) {
	s.mu.Lock()
	s.asked = append(s.asked, key)
	verdict, v, known := s.verdict, s.keys[key], false
	_, known = s.keys[key]
	s.mu.Unlock()
	switch {
	case verdict != nil:
		return verdict(ctx, key)
	case !known:
		return wire.KeyVerdict{}, unauthorized
	}
	return v, nil
}

func (s *server) SendStream(
	ctx context.Context, key wire.Secret, events int, open func() io.Reader,
) (wire.BatchAnswer, error) {
	batch, err := io.ReadAll(open())
	if err != nil {
		return wire.BatchAnswer{}, err
	}
	return s.Send(ctx, key, events, batch)
}

func (s *server) Send(ctx context.Context, key wire.Secret, events int, batch []byte) (wire.BatchAnswer, error) {
	c := call{at: time.Now(), key: key, events: unpack(s.t, batch)}
	if len(c.events) != events {
		s.t.Errorf("a batch of %d events says that it has %d", len(c.events), events)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
	if s.before != nil {
		s.before(c)
	}

	next := reply(take)
	if s.always != nil {
		next = s.always
	}
	if len(s.script) > 0 {
		next, s.script = s.script[0], s.script[1:]
	}

	return next(ctx, s, c)
}

// set changes the server while it is used.
func (s *server) set(change func(*server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// got gives the names of the events that were taken, sorted, and whether some came twice.
func (s *server) got() (names []string, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, n := range s.of {
		names, again = append(names, name), again || n > 1
	}
	slices.Sort(names)
	return names, again
}

func (s *server) timesAsked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

func (s *server) batches() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *server) keep(events ...wire.Event) {
	for _, e := range events {
		s.received = append(s.received, nameIn(e))
		s.of[nameIn(e)]++
	}
}

// take takes a batch of a known key.
func take(_ context.Context, s *server, c call) (wire.BatchAnswer, error) {
	if _, known := s.keys[c.key]; !known {
		return wire.BatchAnswer{}, unauthorized
	}
	s.keep(c.events...)
	return wire.BatchAnswer{Success: true, Accepted: len(c.events)}, nil
}

// fail answers with an error of the server's.
func fail(code wire.Code, retryAfter time.Duration) reply {
	return func(context.Context, *server, call) (wire.BatchAnswer, error) {
		return wire.BatchAnswer{}, &wire.Error{Code: code, Message: "no: " + string(code), RetryAfter: retryAfter}
	}
}

// failOf answers after a while that the key's calls fail, or those of its account, or all.
func failOf(affects wire.Affected, after, retryAfter time.Duration) reply {
	return func(_ context.Context, s *server, _ call) (wire.BatchAnswer, error) {
		s.mu.Unlock()
		time.Sleep(after)
		s.mu.Lock()
		e := wire.Unavailable(retryAfter, "A worker of the database is away.")
		e.Affects = affects
		return wire.BatchAnswer{}, e
	}
}

// foreign is an answer of something that stands between.
func foreign(status int) reply {
	return func(context.Context, *server, call) (wire.BatchAnswer, error) {
		return wire.BatchAnswer{}, away(status, nil)
	}
}

func network(context.Context, *server, call) (wire.BatchAnswer, error) {
	return wire.BatchAnswer{}, away(0, errors.New("connection refused"))
}

// lost takes a batch, and the answer does not arrive.
func lost(ctx context.Context, s *server, c call) (wire.BatchAnswer, error) {
	_, _ = take(ctx, s, c)
	return network(ctx, s, c)
}

// hang answers when the caller has had enough.
func hang(ctx context.Context, s *server, _ call) (wire.BatchAnswer, error) {
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	return wire.BatchAnswer{}, away(0, ctx.Err())
}

// answer gives an answer and takes nothing.
func answer(a wire.BatchAnswer) reply {
	return func(context.Context, *server, call) (wire.BatchAnswer, error) { return a, nil }
}

// refuse takes all but the events named, which get this code.
func refuse(code wire.ResultCode, names ...string) reply {
	return func(_ context.Context, s *server, c call) (wire.BatchAnswer, error) {
		a := wire.BatchAnswer{Success: true}
		for _, e := range c.events {
			if slices.Contains(names, nameIn(e)) {
				a.Refused = append(a.Refused, wire.Result{ID: e.ID, Code: code, Reason: "it is " + nameIn(e)})
				continue
			}
			s.keep(e)
			a.Accepted++
		}
		return a, nil
	}
}

// refuseBatchesWith answers 422 to every batch in which one of these is.
func refuseBatchesWith(names ...string) reply {
	return func(ctx context.Context, s *server, c call) (wire.BatchAnswer, error) {
		if slices.ContainsFunc(names, c.has) {
			return fail(wire.CodeInvalid, 0)(ctx, s, c)
		}
		return take(ctx, s, c)
	}
}

var unauthorized = wire.Errorf(wire.CodeUnauthorized, "The key is not known.")

func away(status int, err error) error {
	a := &wire.Away{Status: status, Err: err}
	return &wire.Error{
		Code: wire.CodeUnavailable, Message: "the server is away: " + a.Error(), RetryAfter: time.Second, Cause: a,
	}
}

func unpack(t testing.TB, batch []byte) []wire.Event {
	t.Helper()
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()

	lines, err := d.DecodeAll(batch, nil)
	if err != nil {
		t.Fatal(err)
	}

	var events []wire.Event
	for line := range bytes.Lines(lines) {
		e, err := wire.ParseEvent(line)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}

	return events
}

func nameIn(e wire.Event) string {
	var body struct{ Name string }
	_ = json.Unmarshal(e.Body, &body)
	return body.Name
}
