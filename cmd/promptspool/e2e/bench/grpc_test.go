//go:build linux && bench

package bench

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"google.golang.org/grpc/credentials/insecure"

	"promptspool/cmd/promptspool/e2e/harness"
)

// BenchmarkExports measures the processor time that a sidecar takes for an export of some spans over
// HTTP and over gRPC, with its server away, in turns. Senders pause between exports, as exporters do. Without a
// pause the cost depends on the client: the sidecar sleeps and wakes once more for each call of a slower one.
func BenchmarkExports(b *testing.B) {
	for range b.N {
		sidecar := startMeasured(b, b.TempDir(), harness.FreePort(b))
		for _, senders := range []int{1, 8} {
			for _, spans := range []int{1, 50, 512} {
				exportsOf(b, sidecar, senders, spans)
			}
		}
		sidecar.Kill()
	}
}

const exportRounds = 5

// exporter returns a function that exports spans to an address, on a connection of its own.
type exporter func(b *testing.B, addr string) func(spans []byte) error

func exportsOf(b *testing.B, sidecar *harness.Node, senders, spans int) {
	b.Helper()
	var costs [2][]time.Duration
	for range exportRounds {
		for i, export := range []exporter{exportHTTP, exportGRPC} {
			costs[i] = append(costs[i], exportCost(b, sidecar, senders, spans, export))
		}
	}
	slices.Sort(costs[0])
	slices.Sort(costs[1])
	of := func(i int) time.Duration { return costs[i][exportRounds/2] }
	fmt.Printf("%d senders, batches of %3d: HTTP %8v, gRPC %8v, %.2f times  %v\n", senders, spans, of(0), of(1),
		float64(of(1))/float64(of(0)), costs)
}

// exportCost returns the processor time of one export.
func exportCost(b *testing.B, sidecar *harness.Node, senders, spans int, export exporter) time.Duration {
	b.Helper()
	exports := max(100, 1_000/spans)
	bodies := make([][]byte, exports)
	for i := range bodies {
		trace := [16]byte([]byte(fmt.Sprintf("%016x", time.Now().UnixNano())))
		all := make([]*harness.SpanSent, spans)
		for j := range all {
			all[j] = harness.NewSpan(trace)
		}
		bodies[i] = harness.ExportOf(all, 500, harness.OTLPBinary)
	}

	var next atomic.Int64
	var all sync.WaitGroup
	before := cpuOf(b, sidecar)
	for range senders {
		send := export(b, sidecar.Addr)
		all.Go(func() {
			for i := next.Add(1); int(i) <= exports; i = next.Add(1) {
				if err := send(bodies[i-1]); err != nil {
					b.Error(err)
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	all.Wait()

	return (cpuOf(b, sidecar) - before) / time.Duration(exports)
}

func exportHTTP(b *testing.B, addr string) func([]byte) error {
	client := &fasthttp.HostClient{Addr: addr}
	return func(body []byte) error {
		req, res := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		defer fasthttp.ReleaseRequest(req)
		defer fasthttp.ReleaseResponse(res)
		req.SetRequestURI("http://" + addr + "/v1/traces")
		req.Header.SetMethod("POST")
		req.Header.SetContentType(harness.OTLPBinary)
		req.Header.Set("X-API-KEY", harness.AdminKey)
		req.SetBodyRaw(body)
		if err := client.Do(req, res); err != nil || res.StatusCode() != 200 {
			return fmt.Errorf("%d %s %v", res.StatusCode(), res.Body(), err)
		}
		return nil
	}
}

func exportGRPC(b *testing.B, addr string) func([]byte) error {
	export := harness.GRPCExporter(b, addr, insecure.NewCredentials())
	return func(body []byte) error {
		_, err := export(harness.ExportTraces, body)
		return err
	}
}
