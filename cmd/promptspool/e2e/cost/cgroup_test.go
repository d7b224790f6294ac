//go:build linux

package cost

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
)

// serverCgroupBytes is what a server has that four callers send huge lists to.
const serverCgroupBytes = 512 << 20

// hugeLists are exports of some 31 MB whose lists have millions of the smallest elements, or too
// many spans. Packed they are a few KB.
func hugeLists() map[string]*shape {
	lists := map[string]*shape{"330,000 spans": {
		name:   "330,000 spans",
		method: "POST",
		path:   "/v1/traces",
		header: []string{"Content-Type", "application/json"},
		body: func(int) string {
			var b strings.Builder
			b.WriteString(`{"resourceSpans":[{"scopeSpans":[{"spans":[{}`)
			for i := range 330_000 {
				fmt.Fprintf(&b, `,{"traceId":"%032x","spanId":"%016x","name":"n"}`, i+1, i+1)
			}
			return b.String() + `]}]}]}`
		},
	}}
	for _, s := range otlpShapes() {
		switch s.name {
		case "protobuf /v1/traces.resource_spans.scope_spans.spans.attributes of {}",
			"protobuf /v1/traces.resource_spans.scope_spans.spans.attributes.value.kvlist_value.values of {}",
			"protobuf /v1/traces.resource_spans.resource.attributes of {}",
			"protobuf /v1/traces.resource_spans.scope_spans.spans.events of {}",
			"JSON /v1/traces .resourceSpans[].scopeSpans[].spans[].attributes of {}":
			lists[s.name] = s
		}
	}

	return lists
}

// A sidecar in its small cgroup, and in the long form a server with four such callers in
// one of 512 MiB, take exports of huge lists, or refuse them, and go on.
func TestHugeListsOfAnExportInASmallCgroup(t *testing.T) {
	t.Parallel()
	plain, err := harness.PlainBinary()
	if err != nil {
		t.Fatal(err)
	}
	upstream := harness.StartPlainServer(t, "127.0.0.1:0")
	sidecar := harness.Begin(t, harness.LimitMemory(t, plain, harness.CgroupBytes), nil, t.TempDir(), "127.0.0.1:0",
		"sidecar", "--upstream", "http://"+upstream.Addr)
	if !sidecar.Takes() {
		t.Fatal("the sidecar does not start")
	}
	sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat()) // so that the key is known

	type limited struct {
		role    string
		node    *harness.Node
		callers int
	}
	nodes := []limited{{"sidecar", sidecar, 1}}
	long := harness.Soak(t, 1) > 0
	if long {
		server := harness.Begin(t, harness.LimitMemory(t, plain, serverCgroupBytes), nil, t.TempDir(),
			"127.0.0.1:0", "server")
		if !server.Takes() {
			t.Fatal("the server does not start")
		}
		nodes = append(nodes, limited{"server", server, 4})
	}
	for name, s := range inOrder(hugeLists()) {
		if !long && name != "protobuf /v1/traces.resource_spans.scope_spans.spans.attributes of {}" {
			continue
		}
		body := s.body(shapeLarge)
		for _, of := range nodes {
			m := meter{t, of.node.Cmd.Process.Pid}
			before, peak := m.processor(), harness.WatchMemory(t, of.node)
			var callers sync.WaitGroup
			for range of.callers {
				callers.Go(func() { sendHuge(t, of.node, s, body) })
			}
			callers.Wait()
			t.Logf("%s to the %s, %d at once, %d MB each: %v of the processor, %d MiB", name, of.role, of.callers,
				len(body)/1e6, (m.processor() - before).Round(time.Millisecond), peak()>>20)
			if of.node.Ended() {
				t.Fatalf("%s: the %s ended: signal %v", name, of.role, of.node.DiedOf())
			}
		}
	}
}

// sendHuge sends a body until it is answered otherwise than with 503.
func sendHuge(t *testing.T, n *harness.Node, s *shape, body string) {
	for begun := time.Now(); time.Since(begun) < 5*time.Minute; {
		req, err := http.NewRequest(s.method, "http://"+n.Addr+s.path, bytes.NewReader([]byte(body)))
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("X-API-KEY", harness.AdminKey)
		req.Header.Set(s.header[0], s.header[1])
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusServiceUnavailable {
			if res.StatusCode != http.StatusOK {
				t.Errorf("%s: %d", s.name, res.StatusCode)
			}
			return
		}
		harness.PauseFor(time.Second)
	}
	t.Errorf("%s never gets through", s.name)
}
