//go:build linux && bench

package bench

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
)

const fetchTime = 6 * time.Second

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
