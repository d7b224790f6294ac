//go:build linux

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	fetchTime      = 6 * time.Second
	fetchTemplates = 10_000
)

// chatOf2KB returns a chat template of some two kilobytes, with variables. Its text
// depends on the name, and repeats itself no more than prose does: the cache keeps
// templates packed.
func chatOf2KB(name string) map[string]any {
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(name))
	random := rand.New(rand.NewPCG(seed.Sum64(), 1))

	text := func(bytes int) string {
		var b strings.Builder
		for b.Len() < bytes {
			b.WriteString(benchWords()[random.IntN(len(benchWords()))])
			b.WriteByte(' ')
		}
		return b.String()
	}

	message := func(role, text string) any {
		return map[string]any{"role": role, "content": []any{map[string]any{"type": "text", "text": text}}}
	}

	return map[string]any{
		"prompt_template": map[string]any{"prompt_name": name, "tags": []string{"bench"}},
		"prompt_version": map[string]any{
			"prompt_template": map[string]any{"type": "chat", "messages": []any{
				message("system", "You answer for {company}. "+text(780)),
				message("user", "Hello, I am {name}. "+text(780)+"{question}"),
			}},
			"metadata": map[string]any{"model": map[string]any{
				"provider":   "openai",
				"name":       "gpt-4o",
				"parameters": map[string]any{"temperature": 0.5},
			}},
		},
		"release_labels": []string{"prod"},
	}
}

// benchWords are words of this project's own documents, common ones more often.
var benchWords = sync.OnceValue(func() []string {
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		panic(err)
	}
	return slices.DeleteFunc(strings.Fields(string(readme)), func(word string) bool {
		return strings.Trim(word, "abcdefghijklmnopqrstuvwxyz,.") != ""
	})
})

// BenchmarkTemplateFetch fetches a chat template of 2 KB, filled in, from a sidecar's
// cache, beside a bare fasthttp handler: one with a short answer, and one that answers
// the same bytes.
func BenchmarkTemplateFetch(b *testing.B) {
	for range b.N {
		server := beginPlain(b, b.TempDir(), freePort(b), "server")
		if !server.takes() {
			b.Fatal("the server does not start")
		}

		sidecar := beginMeasured(b, b.TempDir(), server.addr)
		if !sidecar.takes() {
			b.Fatal("the sidecar does not start")
		}

		created := server.call("POST", "/rest/prompt-templates", chatOf2KB("team/bench"), "X-API-KEY", adminKey)
		if created.Status != 201 {
			b.Fatalf("%d %s", created.Status, created.Body)
		}

		p := pressure{
			Connections: 64,
			Path:        "/prompt-templates/team/bench",
			Time:        fetchTime,
			Requests:    1 << 40,
			Body: []byte(`{"label":"prod","provider":"openai",` +
				`"input_variables":{"company":"a company","name":"Ann","question":"How are you?"}}`),
		}

		var r reply
		sidecar.eventually(func() bool {
			r = sidecar.call("POST", p.Path, p.Body, "X-API-KEY", adminKey)
			return r.Status == 200 && r.Header.Get("X-Cache") == "hit"
		}, func() string { return string(r.Body) })

		fmt.Printf("\n%-12s %9s %9s %9s %9s %9s %11s\n",
			"who", "req/s", "p50", "p99", "of floor", "p99/floor", "allocs/call")
		for _, floor := range []struct{ name, answer string }{{"short answer", ""}, {"same answer", string(r.Body)}} {
			p.Addr = startFloor(b, "FLOOR_ANSWER="+floor.answer)
			base := press(b, p)
			fmt.Printf("%-12s %9.0f %9s %9s\n", floor.name, base.PerSecond, short(base.P50), short(base.P99))

			p.Addr = sidecar.addr
			before := mallocs(b, sidecar)
			got := press(b, p)
			fmt.Printf("%-12s %9.0f %9s %9s %9.2f %9.2f %11.1f\n",
				"sidecar", got.PerSecond, short(got.P50), short(got.P99),
				got.PerSecond/base.PerSecond, float64(got.P99)/float64(base.P99),
				(mallocs(b, sidecar)-before)/float64(got.Requests))
		}
		sidecar.kill()
		server.kill()
	}
}

// mallocs returns how many objects a process has allocated, by its own metrics.
func mallocs(b *testing.B, n *node) float64 {
	b.Helper()
	res, err := http.Get("http://" + n.ops + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "go_memstats_mallocs_total "); ok {
			count, err := strconv.ParseFloat(value, 64)
			if err != nil {
				b.Fatal(err)
			}
			return count
		}
	}
	b.Fatal("the metrics lack the allocations")
	return 0
}

// BenchmarkTemplatesCached measures the memory of a sidecar that has fetched 10,000
// templates of 2 KB, and once more after a restart.
func BenchmarkTemplatesCached(b *testing.B) {
	for range b.N {
		server := beginPlain(b, b.TempDir(), freePort(b), "server")
		if !server.takes() {
			b.Fatal("the server does not start")
		}
		data := filepath.Join(b.TempDir(), "sidecar")
		sidecar := beginMeasured(b, data, server.addr)
		if !sidecar.takes() {
			b.Fatal("the sidecar does not start")
		}

		idle := memoryOf(b, sidecar, "VmRSS")

		each := func(do func(name string)) {
			var next atomic.Int64
			var workers sync.WaitGroup
			for range 16 {
				workers.Go(func() {
					for i := next.Add(1); i <= fetchTemplates; i = next.Add(1) {
						do(fmt.Sprintf("bench/%d", i))
					}
				})
			}
			workers.Wait()
		}

		each(func(name string) { post(b, server.addr, "/rest/prompt-templates", chatOf2KB(name)) })
		ask := map[string]any{"label": "prod", "input_variables": map[string]any{"name": "Ann"}}
		begun := time.Now()
		each(func(name string) { post(b, sidecar.addr, "/prompt-templates/"+name, ask) })
		fmt.Printf("\nidle %d MiB resident; fetched %d templates at %.0f/s: %d MiB, peak %d MiB\n",
			idle>>20, fetchTemplates, fetchTemplates/time.Since(begun).Seconds(),
			memoryOf(b, sidecar, "VmRSS")>>20, memoryOf(b, sidecar, "VmHWM")>>20)

		each(func(name string) { post(b, sidecar.addr, "/prompt-templates/"+name, ask) })
		fmt.Printf("fetched again: %d MiB, peak %d MiB",
			memoryOf(b, sidecar, "VmRSS")>>20, memoryOf(b, sidecar, "VmHWM")>>20)
		rests(b, sidecar)

		sidecar.kill()
		sidecar = beginMeasured(b, data, server.addr)
		if !sidecar.takes() {
			b.Fatal("the sidecar does not start")
		}
		each(func(name string) { post(b, sidecar.addr, "/prompt-templates/"+name, ask) })
		fmt.Printf("after a restart, fetched: %d MiB, peak %d MiB",
			memoryOf(b, sidecar, "VmRSS")>>20, memoryOf(b, sidecar, "VmHWM")>>20)
		rests(b, sidecar)
		sidecar.kill()
		server.kill()
	}
}

// rests prints a process's memory after some idle seconds: garbage may have gone back to
// the system.
func rests(b *testing.B, n *node) {
	b.Helper()
	<-time.After(3 * time.Second)
	fmt.Printf("; at rest %d MiB, of which %d MiB are pages of files\n",
		memoryOf(b, n, "VmRSS")>>20, memoryOf(b, n, "RssFile")>>20)
}

// post sends a call that must succeed.
func post(b *testing.B, addr, path string, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		b.Error(err)
		return
	}
	req, err := http.NewRequest("POST", "http://"+addr+path, strings.NewReader(string(text)))
	if err != nil {
		b.Error(err)
		return
	}

	req.Header.Set("X-API-KEY", adminKey)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Error(err)
		return
	}
	defer res.Body.Close()
	if answer, err := io.ReadAll(res.Body); err != nil || res.StatusCode/100 != 2 {
		b.Errorf("%s: %d %s %v", path, res.StatusCode, answer, err)
	}
}
