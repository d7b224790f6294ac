//go:build linux && bench

package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
)

const (
	fetchTime      = 6 * time.Second
	fetchTemplates = 10_000
)

// BenchmarkTemplateFetch fetches a chat template of 2 KB, filled in, from a sidecar's
// cache, beside a bare fasthttp handler: one with a short answer, and one that answers
// the same bytes.
func BenchmarkTemplateFetch(b *testing.B) {
	for range b.N {
		server := harness.BeginPlain(b, b.TempDir(), harness.FreePort(b), "server")
		if !server.Takes() {
			b.Fatal("the server does not start")
		}

		sidecar := beginMeasured(b, b.TempDir(), server.Addr)
		if !sidecar.Takes() {
			b.Fatal("the sidecar does not start")
		}

		created := server.Call("POST", "/rest/prompt-templates", harness.ChatOf2KB("team/bench"), "X-API-KEY",
			harness.AdminKey)
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

		var r harness.Reply
		sidecar.Eventually(func() bool {
			r = sidecar.Call("POST", p.Path, p.Body, "X-API-KEY", harness.AdminKey)
			return r.Status == 200 && r.Header.Get("X-Cache") == "hit"
		}, func() string { return string(r.Body) })

		fmt.Printf("\n%-12s %9s %9s %9s %9s %9s %11s\n",
			"who", "req/s", "p50", "p99", "of floor", "p99/floor", "allocs/call")
		for _, floor := range []struct{ name, answer string }{{"short answer", ""}, {"same answer", string(r.Body)}} {
			p.Addr = startFloor(b, "FLOOR_ANSWER="+floor.answer)
			base := press(b, p)
			fmt.Printf("%-12s %9.0f %9s %9s\n", floor.name, base.PerSecond, harness.Rounded(base.P50),
				harness.Rounded(base.P99))

			p.Addr = sidecar.Addr
			before := mallocs(b, sidecar)
			got := press(b, p)
			fmt.Printf("%-12s %9.0f %9s %9s %9.2f %9.2f %11.1f\n",
				"sidecar", got.PerSecond, harness.Rounded(got.P50), harness.Rounded(got.P99),
				got.PerSecond/base.PerSecond, float64(got.P99)/float64(base.P99),
				(mallocs(b, sidecar)-before)/float64(got.Requests))
		}
		sidecar.Kill()
		server.Kill()
	}
}

// mallocs returns how many objects a process has allocated, by its own metrics.
func mallocs(b *testing.B, n *harness.Node) float64 {
	b.Helper()
	res, err := http.Get("http://" + n.Ops + "/metrics")
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
		server := harness.BeginPlain(b, b.TempDir(), harness.FreePort(b), "server")
		if !server.Takes() {
			b.Fatal("the server does not start")
		}
		data := filepath.Join(b.TempDir(), "sidecar")
		sidecar := beginMeasured(b, data, server.Addr)
		if !sidecar.Takes() {
			b.Fatal("the sidecar does not start")
		}

		idle := harness.MemoryOf(b, sidecar, "VmRSS")

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

		each(func(name string) { post(b, server.Addr, "/rest/prompt-templates", harness.ChatOf2KB(name)) })
		ask := map[string]any{"label": "prod", "input_variables": map[string]any{"name": "Ann"}}
		begun := time.Now()
		each(func(name string) { post(b, sidecar.Addr, "/prompt-templates/"+name, ask) })
		fmt.Printf("\nidle %d MiB resident; fetched %d templates at %.0f/s: %d MiB, peak %d MiB\n",
			idle>>20, fetchTemplates, fetchTemplates/time.Since(begun).Seconds(),
			harness.MemoryOf(b, sidecar, "VmRSS")>>20, harness.MemoryOf(b, sidecar, "VmHWM")>>20)

		each(func(name string) { post(b, sidecar.Addr, "/prompt-templates/"+name, ask) })
		fmt.Printf("fetched again: %d MiB, peak %d MiB",
			harness.MemoryOf(b, sidecar, "VmRSS")>>20, harness.MemoryOf(b, sidecar, "VmHWM")>>20)
		rests(b, sidecar)

		sidecar.Kill()
		sidecar = beginMeasured(b, data, server.Addr)
		if !sidecar.Takes() {
			b.Fatal("the sidecar does not start")
		}
		each(func(name string) { post(b, sidecar.Addr, "/prompt-templates/"+name, ask) })
		fmt.Printf("after a restart, fetched: %d MiB, peak %d MiB",
			harness.MemoryOf(b, sidecar, "VmRSS")>>20, harness.MemoryOf(b, sidecar, "VmHWM")>>20)
		rests(b, sidecar)
		sidecar.Kill()
		server.Kill()
	}
}

// rests prints a process's memory after some idle seconds: garbage may have gone back to
// the system.
func rests(b *testing.B, n *harness.Node) {
	b.Helper()
	<-time.After(3 * time.Second)
	fmt.Printf("; at rest %d MiB, of which %d MiB are pages of files\n",
		harness.MemoryOf(b, n, "VmRSS")>>20, harness.MemoryOf(b, n, "RssFile")>>20)
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

	req.Header.Set("X-API-KEY", harness.AdminKey)
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
