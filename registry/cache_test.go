package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/admission"
	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/registry"
)

// sidecar is a Cache that runs.
type sidecar struct {
	*registry.Cache
	metrics *metrics.Metrics
	room    *admission.Room
	rekeyed atomic.Int32 // how often it said so of ann's account
	stop    func()
}

// start opens the folder and runs a cache over the server. It knows ann's account from
// the start.
func start(t *testing.T, dir string, s *server) *sidecar {
	t.Helper()
	return startAs(t, dir, s, ann)
}

// startAs is start with a cache that knows this identity.
func startAs(t *testing.T, dir string, s *server, known wire.Identity) *sidecar {
	t.Helper()
	c := &sidecar{metrics: metrics.New("sidecar", "test"), room: admission.NewRoom(16<<20, 64<<20)}
	var err error
	c.Cache, err = registry.NewCache(registry.CacheConfig{
		Dir: dir, Upstream: s, Metrics: c.metrics, Logger: quiet, Room: c.room,
		Identities: func() []wire.Identity { return []wire.Identity{known} },
		Rekeyed: func(account string) {
			if account == ann.Account {
				c.rekeyed.Add(1)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	c.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
	t.Cleanup(c.stop)
	return c
}

// startGreeting starts a cache that has fetched a template, and heard of it.
func startGreeting(t *testing.T, dir string, s *server) *sidecar {
	t.Helper()
	s.publish(t, says("greet", "one"))
	c := start(t, dir, s)
	c.fetched(t, "greet", latest)
	synctest.Wait()
	return c
}

// fetched fetches a template, and returns its text and how it was found.
func (c *sidecar) fetched(t *testing.T, ident string, sel wire.Selector) string {
	t.Helper()
	out, err := c.Fetch(context.Background(), ann, ident, wire.TemplateFetch{Selector: sel})
	if err != nil {
		return string(wire.AsError(err).Code)
	}
	return text(out.Blueprint) + " " + out.Cache
}

// counted returns how many fetches had this result.
func (c *sidecar) counted(t *testing.T, result string) float64 {
	t.Helper()
	families, err := c.metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "promptspool_template_cache_total" && m.GetLabel()[0].GetValue() == result {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("no metric counts %s", result)
	return 0
}

// scene runs a test in virtual time, with goroutines that must all end.
func scene(t *testing.T, name string, play func(t *testing.T, s *server, dir string)) {
	t.Run(name, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "templates")
		synctest.Test(t, func(t *testing.T) { play(t, newServer(), dir) })
	})
}

var latest wire.Selector

func TestCache(t *testing.T) {
	scene(t, "a fetched template is served without asking, and followed", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("greet", "one"))
		c := start(t, dir, s)
		synctest.Wait()
		equal(t, "first", c.fetched(t, "greet", latest), "one miss")
		equal(t, "second", c.fetched(t, "greet", latest), "one hit")
		s.publish(t, says("other", "x"))
		synctest.Wait()
		equal(t, "another one changed", c.fetched(t, "greet", latest), "one hit")
		s.release(t, "two")
		equal(t, "it changed", c.fetched(t, "greet", latest), "two hit")
		equal(t, "then", c.fetched(t, "greet", latest), "two hit")
		equal(t, "an old version", c.fetched(t, "greet", wire.Selector{Version: 1}), "one miss")
		s.release(t, "three")
		equal(t, "an old version never changes", c.fetched(t, "greet", wire.Selector{Version: 1}), "one hit")
		equal(t, "questions", s.questions(), 4) // two of them when the feed reported a change
		equal(t, "hits", c.counted(t, "hit"), 5.0)
		equal(t, "misses", c.counted(t, "miss"), 2.0)
	})

	scene(t, "a key that was revoked is told within moments", func(t *testing.T, s *server, dir string) {
		var keys []wire.Key
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		watch := func() {
			go s.registry().WatchKeys(ctx, func(context.Context) (all []wire.Key, err error) {
				s.set(func() { all = slices.Clone(keys) })
				return all, nil
			})
		}
		watch()
		revoked := func(account string) {
			s.set(func() { keys = append(keys, wire.Key{AccountID: account, RevokedAt: new(time.Time)}) })
			<-time.After(1100 * time.Millisecond)
			synctest.Wait()
		}

		revoked(ann.Account)
		c := start(t, dir, s)
		<-time.After(time.Minute)
		revoked("another")
		equal(t, "before", c.rekeyed.Load(), int32(0))
		for n := range int32(3) {
			revoked(ann.Account)
			equal(t, "told", c.rekeyed.Load(), n+1)
		}

		s.goAway()
		<-time.After(time.Minute)
		revoked(ann.Account)
		s.comeBack()
		<-time.After(6 * time.Second)
		equal(t, "told after it was cut off", c.rekeyed.Load(), int32(4))

		// A server that has just started answers before it has counted.
		s.goAway()
		s.set(func() { s.behind = newServer().behind })
		s.comeBack()
		<-time.After(time.Minute)
		equal(t, "told of nothing", c.rekeyed.Load(), int32(4))
		watch()
		revoked(ann.Account)
		<-time.After(time.Minute)
		equal(t, "told after a start", c.rekeyed.Load(), int32(5))
	})

	scene(t, "a label that moves, and the id of a template, are followed", func(t *testing.T, s *server, dir string) {
		p := says("greet", "one")
		p.Labels = []string{"prod"}
		s.publish(t, p)
		c := start(t, dir, s)
		c.fetched(t, "1", wire.Selector{Label: "prod"})
		equal(t, "before", c.fetched(t, "1", wire.Selector{Label: "prod"}), "one hit")
		p = says("greet", "two")
		p.Labels = []string{"prod"}
		s.publish(t, p)
		synctest.Wait()
		equal(t, "after", c.fetched(t, "1", wire.Selector{Label: "prod"}), "two hit")
		c.fetched(t, "1", wire.Selector{Version: 1})
		s.publish(t, says("1", "a template whose name is the other's id"))
		synctest.Wait()
		sel := wire.Selector{Version: 1}
		equal(t, "the name wins", c.fetched(t, "1", sel), "a template whose name is the other's id hit")
	})

	scene(t, "while the server is away copies are served, however long", func(t *testing.T, s *server, dir string) {
		c := startGreeting(t, dir, s)
		s.goAway()
		synctest.Wait()
		<-time.After(3 * time.Hour)
		begin := time.Now()
		out, err := c.Fetch(t.Context(), ann, "greet", wire.TemplateFetch{})
		if err != nil {
			t.Fatal(err)
		}
		found := []any{text(out.Blueprint), out.Cache, out.Age.Round(time.Hour)}
		equal(t, "found", found, []any{"one", "stale", 3 * time.Hour})
		equal(t, "one that was never fetched", c.fetched(t, "gone", latest), "unavailable")
		equal(t, "took", time.Since(begin), 0*time.Second)
		if _, known := c.Version("acme", "greet", latest); known {
			t.Error("a version is known though the server is away")
		}
		s.comeBack()
		s.publish(t, says("greet", "two"))
		<-time.After(6 * time.Second)
		equal(t, "back", c.fetched(t, "greet", latest), "two hit")
		version, known := c.Version("acme", "greet", latest)
		equal(t, "version", []any{version, known}, []any{2, true})
	})

	scene(t, "a restart keeps the copies, but serves no outdated one", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("greet", "one <&>"))
		s.publish(t, says("same", "same"))
		c := start(t, dir, s)
		c.fetched(t, "greet", latest)
		c.fetched(t, "same", latest)
		c.fetched(t, "greet", wire.Selector{Version: 1})
		c.stop()

		s.publish(t, says("greet", "two"))
		c = start(t, dir, s)
		// It may meet the question that the feed had asked.
		if got := c.fetched(t, "greet", latest); got != "two hit" && got != "two miss" {
			t.Errorf("changed meanwhile: %s", got)
		}
		equal(t, "not changed", c.fetched(t, "same", latest), "same hit")
		equal(t, "a version", c.fetched(t, "greet", wire.Selector{Version: 1}), "one <&> hit")
		synctest.Wait() // what was fetched is written
		c.stop()

		s.goAway()
		c = start(t, dir, s)
		begin := time.Now()
		equal(t, "away", c.fetched(t, "greet", latest), "two stale")
		equal(t, "took", time.Since(begin), 0*time.Second)
	})

	scene(t, "right after a start a server that hangs costs only a moment", func(t *testing.T, s *server, dir string) {
		c := startGreeting(t, dir, s)
		c.stop()
		silent, err := registry.NewCache(registry.CacheConfig{
			Dir: dir, Upstream: s, Metrics: metrics.New("sidecar", "test"), Logger: quiet,
		})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for range 2 { // without Run nothing is ever heard
			out, err := silent.Fetch(t.Context(), ann, "greet", wire.TemplateFetch{})
			if err != nil || out.Cache != "stale" {
				t.Fatalf("%s, error %v", out.Cache, err)
			}
		}
		equal(t, "took", time.Since(begin), 250*time.Millisecond)
	})

	scene(t, "an answer older than a reported change is not current", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("greet", "one"))
		c := start(t, dir, s)
		synctest.Wait()
		s.set(func() { s.hold = 900 * time.Millisecond })
		go func() {
			<-time.After(500 * time.Millisecond)
			s.publish(t, says("greet", "two"))
		}()
		equal(t, "asked before the change", c.fetched(t, "greet", latest), "one miss")
		equal(t, "asked after it", c.fetched(t, "greet", latest), "two miss")
		equal(t, "then", c.fetched(t, "greet", latest), "two hit")
	})

	scene(t, "a late answer does not replace a newer release", func(t *testing.T, s *server, dir string) {
		c := startGreeting(t, dir, s)

		s.set(func() { s.hold = 1500 * time.Millisecond })
		s.release(t, "two")
		s.set(func() { s.hold = 0 })
		s.release(t, "three")
		equal(t, "asked after both", c.fetched(t, "greet", latest), "three miss")

		s.set(func() { s.hold = time.Hour })
		s.publish(t, says("greet", "four"))
		<-time.After(3 * time.Second) // the second has come, and the fourth is given up
		s.goAway()
		synctest.Wait()
		equal(t, "while the fourth does not come", c.fetched(t, "greet", latest), "three stale")
	})

	scene(t, "many who ask the same together make one question", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("greet", "one"))
		c := start(t, dir, s)
		synctest.Wait()
		s.set(func() { s.hold = time.Second })
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if got := c.fetched(t, "greet", latest); got != "one miss" {
					t.Errorf("fetched %q", got)
				}
			})
		}
		wg.Wait()
		equal(t, "questions", s.questions(), 1)
	})

	scene(t, "a server that hangs costs two seconds, with a copy one", func(t *testing.T, s *server, dir string) {
		c := startGreeting(t, dir, s)
		s.set(func() { s.hold = time.Hour })
		s.release(t, "two")
		begin := time.Now()
		equal(t, "outdated", c.fetched(t, "greet", latest), "one stale")
		equal(t, "took", time.Since(begin), time.Second)
		begin = time.Now()
		equal(t, "none", c.fetched(t, "other", latest), "unavailable")
		equal(t, "took", time.Since(begin), 2*time.Second)
		equal(t, "errors", c.counted(t, "error"), 1.0)
	})

	scene(t, "on a dead network the first fetch spares the others", func(t *testing.T, s *server, dir string) {
		c := startGreeting(t, dir, s)
		s.set(func() { s.hang = true })
		equal(t, "nobody knows", c.fetched(t, "greet", latest), "one hit")
		equal(t, "the first who notices", c.fetched(t, "other", latest), "unavailable")
		s.publish(t, says("greet", "two"))
		<-time.After(time.Minute)
		begin := time.Now()
		equal(t, "the others", c.fetched(t, "greet", latest), "one stale")
		equal(t, "took", time.Since(begin), 0*time.Second)
		s.set(func() { s.hang = false })
		<-time.After(11 * time.Second) // 5 s for the poll in flight, 5 s at most to the next
		// It may meet the question that the feed had asked.
		if got := c.fetched(t, "greet", latest); got != "two hit" && got != "two miss" {
			t.Errorf("back: %s", got)
		}
	})

	scene(t, "a failure of the server's own leaves the copy", func(t *testing.T, s *server, dir string) {
		c := startGreeting(t, dir, s)
		s.set(func() { s.err = wire.Errorf(wire.CodeInternal, "no") })
		s.release(t, "two")
		equal(t, "500", c.fetched(t, "greet", latest), "one stale")
		s.set(func() { s.err = wire.Errorf(wire.CodeForbidden, "no") })
		<-time.After(10 * time.Second)
		equal(t, "403", c.fetched(t, "greet", latest), "forbidden")
	})

	scene(t, "a missing template is remembered, its copy dropped", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("greet", "one"))
		c := start(t, dir, s)
		synctest.Wait()
		for range 10 {
			equal(t, "not there", c.fetched(t, "gone", latest), "not_found")
		}
		equal(t, "questions", s.questions(), 1)
		<-time.After(4 * time.Second)
		c.fetched(t, "gone", latest)
		equal(t, "questions after a while", s.questions(), 2)
		s.publish(t, says("gone", "here"))
		synctest.Wait()
		equal(t, "published", c.fetched(t, "gone", latest), "here miss")

		s.set(func() { s.err = wire.Errorf(wire.CodeNotFound, "deleted") })
		s.publish(t, says("gone", "again"))
		synctest.Wait()
		equal(t, "deleted", c.fetched(t, "gone", latest), "not_found")
		s.goAway()
		<-time.After(4 * time.Second)
		equal(t, "no copy is left", c.fetched(t, "gone", latest), "unavailable")
	})

	scene(t, "a sidecar sees what it publishes immediately", func(t *testing.T, s *server, dir string) {
		c := start(t, dir, s)
		for _, text := range []string{"one", "two"} {
			if _, err := c.Publish(t.Context(), ann, says("greet", text)); err != nil {
				t.Fatal(err)
			}
			equal(t, "fetched", c.fetched(t, "greet", latest), text+" miss")
		}
		list, err := c.List(t.Context(), ann, wire.TemplateListQuery{})
		if err != nil || list.Total != 1 {
			t.Errorf("%d templates, error %v", list.Total, err)
		}
		s.goAway()
		if _, err := c.Publish(t.Context(), ann, says("greet", "three")); !wire.IsCode(err, wire.CodeUnavailable) {
			t.Errorf("publish while the server is away: error %v", err)
		}
	})

	scene(t, "of a server with another database everything is asked anew", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("greet", "one"))
		s.publish(t, says("greet", "two"))
		c := start(t, dir, s)
		c.fetched(t, "greet", latest)
		c.fetched(t, "greet", wire.Selector{Version: 1})
		s.goAway()
		s.set(func() { s.behind = newServer().behind })
		s.publish(t, says("greet", "new one"))
		s.comeBack()
		<-time.After(6 * time.Second)
		equal(t, "latest", c.fetched(t, "greet", latest), "new one hit")
		// Also the old versions, which otherwise never change.
		equal(t, "version 1", c.fetched(t, "greet", wire.Selector{Version: 1}), "new one hit")
	})

	scene(t, "accounts do not see each other's copies", func(t *testing.T, s *server, dir string) {
		c := startGreeting(t, dir, s)
		other := wire.Identity{Account: "other", Verified: true}
		if _, err := c.Fetch(t.Context(), other, "greet", wire.TemplateFetch{}); !wire.IsCode(err, wire.CodeNotFound) {
			t.Errorf("another account: error %v", err)
		}
		unknown := wire.Identity{Key: "new"}
		if _, err := c.Raw(t.Context(), unknown, "greet", latest); !wire.IsCode(err, wire.CodeUnavailable) {
			t.Errorf("no account: error %v", err)
		}
	})

	scene(t, "a key that is refused does not spoil the question of another", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("greet", "one"))
		c := start(t, dir, s)
		refused := &keyed{server: s, refused: "k2"}
		cache, err := registry.NewCache(registry.CacheConfig{
			Dir: dir + "2", Upstream: refused, Metrics: c.metrics, Logger: quiet,
		})
		if err != nil {
			t.Fatal(err)
		}
		s.set(func() { s.hold = time.Second })
		var wg sync.WaitGroup
		for i, want := range []wire.Code{"", wire.CodeUnauthorized} {
			id := ann
			id.KeyID = fmt.Sprint("k", i+1)
			wg.Go(func() {
				if i == 0 {
					<-time.After(time.Millisecond) // joins the one that is refused
				}
				_, err := cache.Raw(t.Context(), id, "greet", latest)
				if want == "" && err != nil || want != "" && !wire.IsCode(err, want) {
					t.Errorf("%s: error %v", id.KeyID, err)
				}
			})
		}
		wg.Wait()
	})
}

// keyed refuses one key.
type keyed struct {
	*server
	refused string
}

func (k *keyed) Raw(ctx context.Context, id wire.Identity, ident string, sel wire.Selector) (wire.RawTemplate, error) {
	if id.KeyID == k.refused {
		<-time.After(500 * time.Millisecond)
		return wire.RawTemplate{}, wire.Errorf(wire.CodeUnauthorized, "no")
	}
	return k.server.Raw(ctx, id, ident, sel)
}

func TestBothSidesGiveTheSameAnswer(t *testing.T) {
	scene(t, "same", func(t *testing.T, s *server, dir string) {
		s.publish(t, wire.Publish{
			PublishedName: wire.PublishedName{
				Name: "chat",
				Tags: []string{"t"},
			},
			PublishedVersion: wire.PublishedVersion{
				CommitMessage: "m",
				Metadata:      json.RawMessage(`{"model":{"provider":"openai","name":"gpt","parameters":{"n":1.50}}}`),
				Blueprint:     json.RawMessage(`{"messages":[{"role":"user","content":"<{a}> \u00fc"}]}`),
			},
		})
		c := start(t, dir, s)
		c.fetched(t, "chat", latest)
		c.stop()
		c = start(t, dir, s)
		synctest.Wait()

		fetch := wire.TemplateFetch{Variables: map[string]json.RawMessage{"a": json.RawMessage(`"&"`)}}
		want, err := s.registry().Fetch(t.Context(), ann, "chat", fetch)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Fetch(t.Context(), ann, "chat", fetch)
		if err != nil {
			t.Fatal(err)
		}
		want.Cache, want.Age = "hit", got.Age
		equal(t, "fetched", got, want)
	})
}

// unwatched is a call whose end nobody waits for. To be told of the end of a real one costs more than a template from
// the cache.
type unwatched struct {
	context.Context
	t *testing.T
}

func (u unwatched) Done() <-chan struct{} {
	u.t.Error("the end of the call is waited for")
	return u.Context.Done()
}

func TestATemplateFromTheCacheDoesNotWatchItsCall(t *testing.T) {
	s := newServer()
	c, err := registry.NewCache(registry.CacheConfig{
		Dir: t.TempDir(), Upstream: s, Metrics: metrics.New("sidecar", "test"), Logger: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	p := wire.Publish{
		PublishedName: wire.PublishedName{Name: "greet"},
		PublishedVersion: wire.PublishedVersion{
			Metadata: json.RawMessage(`{"model":{"provider":"openai","name":"gpt"}}`),
			Blueprint: json.RawMessage(`{"type":"completion","template_format":"jinja2",` +
				`"content":[{"type":"text","text":"Hello {{ name }}"}]}`),
		},
	}
	if _, err := s.Publish(t.Context(), ann, p); err != nil {
		t.Fatal(err)
	}

	fetch := wire.TemplateFetch{
		Selector:  wire.Selector{Version: 1},
		Variables: map[string]json.RawMessage{"name": json.RawMessage(`"Ann"`)},
	}
	if _, err := c.Fetch(t.Context(), ann, "greet", fetch); err != nil {
		t.Fatal(err)
	}
	got, err := c.Fetch(unwatched{t.Context(), t}, ann, "greet", fetch)
	if err != nil || !strings.Contains(string(got.LLMKwargs), "Hello Ann") {
		t.Errorf("%s, %v", got.LLMKwargs, err)
	}
}
