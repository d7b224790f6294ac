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
		trace := traceOfSpans(p, size, `"parentSpanId":"0000000000000001"`)
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

// Bounds of a trace of roots.
const (
	rootsSpans = 20_000
	rootsRest  = 3 * time.Second
	rootsMost  = 2.5 // of what as many spans cost that name no session
)

// Each of them may be the first of its trace, whose session the calls before it have, too.
func TestRootsThatNameASessionCostLittleMore(t *testing.T) {
	t.Parallel()
	server := harness.StartPlainServer(t, "127.0.0.1:0")
	p := target{t: t, addr: server.Addr, client: harness.OwnClient(t, 1)}
	m := meter{t, server.Cmd.Process.Pid}

	var cost []time.Duration
	for _, members := range []string{`"kind":1`, `"attributes":[` + attributeOf("session.id", "s") + `]`} {
		m.rest()
		before := m.processor()
		traceOfSpans(p, rootsSpans, members)
		harness.PauseFor(rootsRest) // for what follows the answer
		cost = append(cost, m.processor()-before)
	}
	t.Logf("%d spans: %v of the processor, and %v with a session", rootsSpans, cost[0], cost[1])
	if most := time.Duration(rootsMost * float64(cost[0])); cost[1] > most {
		t.Errorf("%v of the processor, at most %v", cost[1], most)
	}
}

// traceOfSpans makes a trace of a root and of spans with these members, and returns its id.
func traceOfSpans(p target, n int, members string) (trace string) {
	trace = traceOf(wire.NewID())
	spans := make([]string, n)
	for i := range spans {
		more := ""
		if i > 0 {
			more = members + ","
		}
		spans[i] = fmt.Sprintf(`{"traceId":"%s","spanId":"%016x",%s"name":"step","startTimeUnixNano":"%d"}`,
			trace, i+1, more, 1700000000000000000+i)
	}
	export(p, strings.Join(spans, ","))

	return trace
}
