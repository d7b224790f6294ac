package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/room"
	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/registry"
)

// sidecar is a Cache that runs.
type sidecar struct {
	*registry.Cache
	metrics *metrics.Metrics
	room    *room.Room
	stop    func()
}

// start opens the folder and runs a cache over the server. It knows ann's account from the start.
func start(t *testing.T, dir string, s *server) *sidecar {
	t.Helper()
	c := &sidecar{metrics: metrics.New("sidecar", "test"), room: room.New(16<<20, 64<<20)}
	var err error
	c.Cache, err = registry.NewCache(registry.CacheConfig{
		Dir: dir, Upstream: s, Metrics: c.metrics, Logger: quiet, Room: c.room,
		Identities: func() []wire.Identity { return []wire.Identity{ann} },
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

// fetched fetches and tells what the template says, and how it was found.
func (c *sidecar) fetched(t *testing.T, ident string, sel wire.Selector) string {
	t.Helper()
	out, err := c.Fetch(context.Background(), ann, ident, wire.TemplateFetch{Selector: sel})
	if err != nil {
		return string(wire.AsError(err).Code)
	}
	return text(out.Blueprint) + " " + out.Cache
}

// counted is how many fetches had this result.
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
	scene(t, "a template that was fetched is served without asking again, and followed", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("greet", "one"))
		c := start(t, dir, s)
		synctest.Wait()
		equal(t, "first", c.fetched(t, "greet", latest), "one miss")
		equal(t, "second", c.fetched(t, "greet", latest), "one hit")
		s.publish(t, says("other", "x"))
		synctest.Wait()
		equal(t, "another one changed", c.fetched(t, "greet", latest), "one hit")
		s.publish(t, says("greet", "two"))
		synctest.Wait()
		equal(t, "it changed", c.fetched(t, "greet", latest), "two hit")
		equal(t, "then", c.fetched(t, "greet", latest), "two hit")
		equal(t, "an old version", c.fetched(t, "greet", wire.Selector{Version: 1}), "one miss")
		s.publish(t, says("greet", "three"))
		synctest.Wait()
		equal(t, "an old version never changes", c.fetched(t, "greet", wire.Selector{Version: 1}), "one hit")
		equal(t, "questions", s.questions(), 4) // two of them when a change was told
		equal(t, "hits", c.counted(t, "hit"), 5.0)
		equal(t, "misses", c.counted(t, "miss"), 2.0)
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
		equal(t, "the name wins", c.fetched(t, "1", wire.Selector{Version: 1}), "a template whose name is the other's id hit")
	})

	scene(t, "while the server is away copies are served at once, however long", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("greet", "one"))
		c := start(t, dir, s)
		c.fetched(t, "greet", latest)
		synctest.Wait()
		s.goAway()
		synctest.Wait()
		<-time.After(3 * time.Hour)
		begin := time.Now()
		out, err := c.Fetch(t.Context(), ann, "greet", wire.TemplateFetch{})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "found", []any{text(out.Blueprint), out.Cache, out.Age.Round(time.Hour)}, []any{"one", "stale", 3 * time.Hour})
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

	scene(t, "a restart keeps the copies, and does not serve an old one while the server is there", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("greet", "one <&>"))
		s.publish(t, says("same", "same"))
		c := start(t, dir, s)
		c.fetched(t, "greet", latest)
		c.fetched(t, "same", latest)
		c.fetched(t, "greet", wire.Selector{Version: 1})
		c.stop()

		s.publish(t, says("greet", "two"))
		c = start(t, dir, s)
		if got := c.fetched(t, "greet", latest); got != "two hit" && got != "two miss" { // it meets the question that the feed had asked
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

	scene(t, "right after a start a server that hangs is waited for only a moment", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("greet", "one"))
		c := start(t, dir, s)
		c.fetched(t, "greet", latest)
		c.stop()
		silent, err := registry.NewCache(registry.CacheConfig{Dir: dir, Upstream: s, Metrics: metrics.New("sidecar", "test"), Logger: quiet})
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

	scene(t, "an answer that is older than a change told meanwhile is not taken for current", func(t *testing.T, s *server, dir string) {
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

	scene(t, "many who ask the same at once make one question", func(t *testing.T, s *server, dir string) {
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

	scene(t, "a server that hangs costs two seconds without a copy, and one with an outdated copy", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("greet", "one"))
		c := start(t, dir, s)
		c.fetched(t, "greet", latest)
		s.set(func() { s.hold = time.Hour })
		s.publish(t, says("greet", "two"))
		synctest.Wait()
		begin := time.Now()
		equal(t, "outdated", c.fetched(t, "greet", latest), "one stale")
		equal(t, "took", time.Since(begin), time.Second)
		begin = time.Now()
		equal(t, "none", c.fetched(t, "other", latest), "unavailable")
		equal(t, "took", time.Since(begin), 2*time.Second)
		equal(t, "errors", c.counted(t, "error"), 1.0)
	})

	scene(t, "when the network swallows everything, the first who notices spares the others", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("greet", "one"))
		c := start(t, dir, s)
		c.fetched(t, "greet", latest)
		synctest.Wait() // the feed has spoken
		s.set(func() { s.hang = true })
		equal(t, "nobody knows", c.fetched(t, "greet", latest), "one hit")
		equal(t, "who notices", c.fetched(t, "other", latest), "unavailable")
		s.publish(t, says("greet", "two"))
		<-time.After(time.Minute)
		begin := time.Now()
		equal(t, "the others", c.fetched(t, "greet", latest), "one stale")
		equal(t, "took", time.Since(begin), 0*time.Second)
		s.set(func() { s.hang = false })
		<-time.After(11 * time.Second) // 5 s for the poll that is out, 5 s at most to the next
		// It may meet the question that the feed had asked.
		if got := c.fetched(t, "greet", latest); got != "two hit" && got != "two miss" {
			t.Errorf("back: %s", got)
		}
	})

	scene(t, "what the server says of its own failure does not take the copy away", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("greet", "one"))
		c := start(t, dir, s)
		c.fetched(t, "greet", latest)
		s.set(func() { s.err = wire.Errorf(wire.CodeInternal, "no") })
		s.publish(t, says("greet", "two"))
		synctest.Wait()
		equal(t, "500", c.fetched(t, "greet", latest), "one stale")
		s.set(func() { s.err = wire.Errorf(wire.CodeForbidden, "no") })
		<-time.After(10 * time.Second)
		equal(t, "403", c.fetched(t, "greet", latest), "forbidden")
	})

	scene(t, "that there is no such template is remembered for a moment, and the copy is dropped", func(t *testing.T, s *server, dir string) {
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

	scene(t, "publishing through the sidecar is seen by it at once", func(t *testing.T, s *server, dir string) {
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

	scene(t, "a server with another database has everything asked anew, old versions too", func(t *testing.T, s *server, dir string) {
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
		equal(t, "version 1", c.fetched(t, "greet", wire.Selector{Version: 1}), "new one hit")
	})

	scene(t, "accounts do not see each other's copies, and nobody's key sees none", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("greet", "one"))
		c := start(t, dir, s)
		c.fetched(t, "greet", latest)
		if _, err := c.Fetch(t.Context(), wire.Identity{Account: "other", Verified: true}, "greet", wire.TemplateFetch{}); !wire.IsCode(err, wire.CodeNotFound) {
			t.Errorf("another account: error %v", err)
		}
		if _, err := c.Raw(t.Context(), wire.Identity{Key: "new"}, "greet", latest); !wire.IsCode(err, wire.CodeUnavailable) {
			t.Errorf("no account: error %v", err)
		}
	})

	scene(t, "a key that is refused does not spoil the question of another", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("greet", "one"))
		c := start(t, dir, s)
		refused := &keyed{server: s, refused: "k2"}
		cache, err := registry.NewCache(registry.CacheConfig{Dir: dir + "2", Upstream: refused, Metrics: c.metrics, Logger: quiet})
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

func TestAFileThatCannotBeReadIsSetAside(t *testing.T) {
	spoil := map[string]func(path string, content []byte) error{
		"a byte flipped": func(path string, content []byte) error {
			content[len(content)/2] ^= 1
			return os.WriteFile(path, content, 0o600)
		},
		"cut short": func(path string, content []byte) error { return os.WriteFile(path, content[:len(content)/2], 0o600) },
		"empty":     func(path string, content []byte) error { return os.WriteFile(path, nil, 0o600) },
		"other name": func(path string, content []byte) error {
			return os.Rename(path, filepath.Join(filepath.Dir(path), "00.template"))
		},
	}
	for name, spoil := range spoil {
		scene(t, name, func(t *testing.T, s *server, dir string) {
			s.publish(t, says("greet", "one"))
			c := start(t, dir, s)
			c.fetched(t, "greet", latest)
			c.stop()
			file := only(t, dir, "*.template")
			content, err := os.ReadFile(file)
			if err == nil {
				err = spoil(file, content)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "1.tmp"), []byte("half"), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			s.goAway()
			c = start(t, dir, s)
			equal(t, "fetched", c.fetched(t, "greet", latest), "unavailable")
			only(t, dir, "*") // the .bad one
			only(t, dir, "*.bad")
			s.comeBack()
			equal(t, "fetched anew", c.fetched(t, "greet", latest), "one miss")
			only(t, dir, "*.template")
		})
	}
}

func TestFilesAndFolderAreForTheirOwnerOnly(t *testing.T) {
	scene(t, "modes", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("a/../../b", "one"))
		start(t, dir, s).fetched(t, "a/../../b", latest)
		for path, want := range map[string]os.FileMode{dir: 0o700, only(t, dir, "*"): 0o600} {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "mode of "+path, info.Mode().Perm(), want)
		}
	})
}

// only is the one file that matches.
func only(t *testing.T, dir, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: %v, error %v; want one file", pattern, files, err)
	}
	return files[0]
}

func TestTheCacheIsBounded(t *testing.T) {
	fill := func(t *testing.T, s *server, dir string, count, bytes int) {
		c := start(t, dir, s)
		synctest.Wait()
		c.SetBounds(count, bytes)
		for i := range 8 {
			s.publish(t, says(fmt.Sprint("t", i), strings.Repeat("x", 10<<10)))
			c.fetched(t, fmt.Sprint("t", i), latest)
			c.fetched(t, "t0", latest) // stays, for it is used
		}
		synctest.Wait() // a copy that was fetched anew in the background may still be on its way to the disk
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) != 5 {
			t.Errorf("%d files, error %v; want the 5 that fit", len(files), err)
		}
		c.stop()
		s.goAway()
		c = start(t, dir, s)
		var there []int
		for i := range 8 {
			if c.fetched(t, fmt.Sprint("t", i), latest) != "unavailable" {
				there = append(there, i)
			}
		}
		equal(t, "those that stayed", there, []int{0, 4, 5, 6, 7})
	}
	scene(t, "by number", func(t *testing.T, s *server, dir string) { fill(t, s, dir, 5, 1<<20) })
	scene(t, "by bytes", func(t *testing.T, s *server, dir string) { fill(t, s, dir, 1000, 60<<10) })
	scene(t, "one that is too large for all is served, not kept", func(t *testing.T, s *server, dir string) {
		c := start(t, dir, s)
		c.SetBounds(5, 10)
		s.publish(t, says("greet", "one"))
		equal(t, "first", c.fetched(t, "greet", latest), "one miss")
		equal(t, "second", c.fetched(t, "greet", latest), "one miss")
		if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 0 {
			t.Errorf("files %v, want none", files)
		}
	})
}

func TestBothSidesGiveTheSameAnswer(t *testing.T) {
	scene(t, "same", func(t *testing.T, s *server, dir string) {
		s.publish(t, wire.Publish{
			Name: "chat", Tags: []string{"t"}, CommitMessage: "m", Metadata: json.RawMessage(`{"model":{"provider":"openai","name":"gpt","parameters":{"n":1.50}}}`),
			Blueprint: json.RawMessage(`{"messages":[{"role":"user","content":"<{a}> \u00fc"}]}`),
		})
		c := start(t, dir, s)
		c.fetched(t, "chat", latest)
		c.stop()
		c = start(t, dir, s)
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

func TestTemplatesAreOpenedAndClosedAsTheyAreUsed(t *testing.T) {
	scene(t, "opened", func(t *testing.T, s *server, dir string) {
		c := start(t, dir, s)
		name := func(i int) string { return fmt.Sprint("t", i) }
		var want [8]wire.RenderedTemplate
		fetch := wire.TemplateFetch{Provider: "openai", Variables: map[string]json.RawMessage{"a": json.RawMessage(`"&"`)}}
		for i := range want {
			s.publish(t, wire.Publish{Name: name(i), Tags: []string{name(i)}, CommitMessage: "m", Metadata: json.RawMessage(fmt.Sprintf(`{"n":%d.50}`, i)),
				Blueprint: json.RawMessage(fmt.Sprintf(`{"messages":[{"role":"user","content":"<{a}> \u00fc %d"}]}`, i))})
			var err error
			if want[i], err = s.registry().Fetch(t.Context(), ann, name(i), fetch); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Raw(t.Context(), ann, name(i), latest); err != nil { // as a preload does
				t.Fatal(err)
			}
		}
		check := func(i int) {
			t.Helper()
			got, err := c.Fetch(t.Context(), ann, name(i), fetch)
			if err != nil {
				t.Fatal(err)
			}
			want[i].Cache, want[i].Age = "hit", got.Age
			equal(t, name(i), got, want[i])
			raw, err := c.Raw(t.Context(), ann, name(i), latest)
			if err != nil || string(raw.Blueprint) != string(want[i].Blueprint) {
				t.Errorf("%s is %s unrendered, %v", name(i), raw.Blueprint, err)
			}
		}
		check(0)
		one, bytes := c.Opened()
		if one != 1 {
			t.Fatalf("%d are open, though one was asked for since they were there", one)
		}
		c.SetOpened(3*bytes + bytes/2)
		for round := range 3 {
			for i := range want {
				check(i)
				check(round) // is used all the time, so it stays open
			}
			if open, all := c.Opened(); open != 3 || all > 3*bytes+bytes/2 {
				t.Errorf("%d are open with %d bytes, want 3", open, all)
			}
		}
		c.SetOpened(bytes / 2)
		for i := range want {
			check(i) // none fits any more, and each is answered all the same
		}
	})
}

// BenchmarkFetch is a fetch from the cache, rendered: a chat of about 2 KB with three variables.
func BenchmarkFetch(b *testing.B) {
	s := newServer()
	c, err := registry.NewCache(registry.CacheConfig{Dir: b.TempDir(), Upstream: s, Metrics: metrics.New("sidecar", "bench"), Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	p := wire.Publish{Name: "chat", Metadata: json.RawMessage(`{"model":{"provider":"openai","name":"gpt"}}`)}
	p.Blueprint = json.RawMessage(`{"messages":[{"role":"system","content":"` + strings.Repeat("You are {who}. ", 100) + `"},{"role":"user","content":"{question} {n:>5}"}]}`)
	if _, err := s.Publish(b.Context(), ann, p); err != nil {
		b.Fatal(err)
	}
	fetch := wire.TemplateFetch{Selector: wire.Selector{Version: 1}, Variables: map[string]json.RawMessage{
		"who": json.RawMessage(`"a cat"`), "question": json.RawMessage(`"Why?"`), "n": json.RawMessage(`7`),
	}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Fetch(b.Context(), ann, "chat", fetch); err != nil {
			b.Fatal(err)
		}
	}
}
