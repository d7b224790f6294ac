//go:build linux

package overload

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
)

// unfinished are calls that never end, each of another kind.
func unfinished() map[string]string {
	const head = "POST /rest/track-request HTTP/1.1\r\nHost: localhost\r\nX-API-KEY: " + harness.AdminKey + "\r\n"
	return map[string]string{
		"nothing":                   "",
		"half a head":               head[:60],
		"a long head without end":   head + "X-Long: " + strings.Repeat("x", 15<<10),
		"a body that does not come": head + "Content-Length: 1000\r\n\r\n{",
		"chunks without a last one": head + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
		"a call, and then nothing":  "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n",
	}
}

// begun opens a connection that begins a call.
func begun(t *testing.T, addr, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, _ = io.WriteString(conn, text) // it may be cut already
	return conn
}

// Thousands of callers begin a call and never end it, at a sidecar in a small cgroup.
// They cost little memory, and apps and probes are answered meanwhile, on new connections
// and on one that they keep.
func TestThousandsOfHalfOpenConnectionsCostLittleAndHinderNobody(t *testing.T) {
	t.Parallel()
	plain, err := harness.PlainBinary()
	if err != nil {
		t.Fatal(err)
	}
	program := harness.LimitMemory(t, plain, harness.CgroupBytes)
	sidecar := harness.Begin(t, program, nil, t.TempDir(), "127.0.0.1:0", "sidecar", "--upstream",
		"http://"+harness.FreePort(t))
	if !sidecar.Takes() {
		t.Fatal("the sidecar does not start")
	}

	fresh := &http.Client{Transport: harness.Comparing(&http.Transport{DisableKeepAlives: true})}
	kept := &http.Client{Transport: harness.Comparing(&http.Transport{MaxConnsPerHost: 1})}
	defer kept.CloseIdleConnections()
	body := string(harness.BodyOf(4 << 10))
	slowest, calls := time.Duration(0), 0

	for round := range 100 {
		for _, text := range unfinished() {
			for range 6 {
				begun(t, sidecar.Addr, text)
			}
		}
		begun(t, sidecar.Ops, "GET /livez HTTP/1.1\r\nHost: loc")
		begun(t, sidecar.Ops, "")

		for _, client := range []*http.Client{fresh, kept} {
			asked := time.Now()
			req, err := http.NewRequest("POST", "http://"+sidecar.Addr+"/rest/track-request", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-API-KEY", harness.AdminKey)
			res, err := client.Do(req)
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode != 200 {
				t.Fatalf("round %d: %d", round, res.StatusCode)
			}
			slowest, calls = max(slowest, time.Since(asked)), calls+1
		}

		res, err := fresh.Get("http://" + sidecar.Ops + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 200 {
			t.Errorf("round %d: the probe is answered with %d", round, res.StatusCode)
		}
	}

	const connectionsMax = 1024 // of a sidecar's API
	open, held := sidecar.Metric("promptspool_connections"), harness.MemoryOf(t, sidecar, "RssAnon")
	t.Logf("3,800 unfinished calls: %v connections are open, %d MiB anonymous memory; "+
		"%d calls meanwhile, the slowest took %v", open, held>>20, calls, slowest)
	if open > connectionsMax*5/4+200 {
		t.Errorf("%v connections are open", open)
	}
	if held > 60<<20 {
		t.Errorf("the unfinished calls cost %d bytes of memory", held)
	}
	if sidecar.Waiting() != calls {
		t.Errorf("%d calls were answered 200, and %d events wait", calls, sidecar.Waiting())
	}
}
