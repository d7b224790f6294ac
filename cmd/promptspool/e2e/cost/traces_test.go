//go:build linux

package cost

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
)

// Bounds of many who look at the longest trace that is shown.
const (
	lookersBrief  = 40
	lookers       = 120
	lookersMemory = 512 << 20
	lookersTime   = 3 // of what a page with as many rows costs of a short trace
	shortTrace    = 900
)

func TestManyPagesOfALongTraceCostWhatTheyShow(t *testing.T) {
	t.Parallel()
	server := harness.StartPlainServer(t, "127.0.0.1:0")
	n := lookersBrief
	if harness.Soak(t, 1) > 0 {
		n = lookers
	}
	p := target{t: t, addr: server.Addr, client: harness.OwnClient(t, n)}
	p.signIn(server)
	m := meter{t, server.Cmd.Process.Pid}

	cost := map[int]time.Duration{}
	peak := harness.WatchMemory(t, server)
	for _, size := range []int{shortTrace, wire.TraceSpansMax} {
		trace := traceOfSpans(p, size)
		m.rest()
		before := m.processor()
		var pages sync.WaitGroup
		for range n {
			pages.Go(func() {
				if status, page := p.call("GET", "/traces/"+trace, ""); status != http.StatusOK {
					t.Errorf("the page of %d spans: %d %.200s", size, status, page)
				}
			})
		}
		pages.Wait()
		cost[size] = (m.processor() - before) / time.Duration(n)
		t.Logf("%d pages of a trace of %d spans: %v of the processor each", n, size, cost[size])
	}

	if long, short := cost[wire.TraceSpansMax], cost[shortTrace]; long > lookersTime*short {
		t.Errorf("a page of a long trace takes %v, and one of a short trace %v", long, short)
	}
	if most := peak(); most > lookersMemory {
		t.Errorf("the server took %d MiB", most>>20)
	}
}

// traceOfSpans makes a trace of a root and so many spans, and returns its id.
func traceOfSpans(p target, n int) (trace string) {
	trace = traceOf(wire.NewID())
	spans := make([]string, n)
	for i := range spans {
		parent := ""
		if i > 0 {
			parent = `"parentSpanId":"0000000000000001",`
		}
		spans[i] = fmt.Sprintf(`{"traceId":"%s","spanId":"%016x",%s"name":"step","startTimeUnixNano":"%d"}`,
			trace, i+1, parent, 1700000000000000000+i)
	}
	export(p, strings.Join(spans, ","))

	return trace
}
