//go:build linux

package overload

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
)

// hoard sends most of a large batch under a key, and then nothing more until the
// connection is closed: the server holds what has come.
func hoard(t *testing.T, server *harness.Node, key string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	const length = wire.BatchBodyBytesMax
	fmt.Fprintf(conn, "POST /sync/events HTTP/1.1\r\nHost: x\r\nX-API-KEY: %s\r\nContent-Length: %d\r\n\r\n",
		key, length)
	if _, err := conn.Write(make([]byte, length-1)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestAServerThatHoldsAllItMayTurnsSidecarsAwayAndTakesThemLater(t *testing.T) {
	t.Parallel()
	server := harness.StartPlainServer(t, "127.0.0.1:0")
	keys := harness.AccountKeys(t, server, 3)
	var hoards []net.Conn
	defer func() {
		for _, conn := range hoards {
			_ = conn.Close()
		}
	}()
	for _, key := range keys {
		hoards = append(hoards, hoard(t, server, key))
	}

	held := func(least float64) {
		t.Helper()
		server.Eventually(func() bool { return server.Metric("promptspool_batch_bytes") >= least }, func() string {
			return fmt.Sprintf("the server holds %v bytes of batches", server.Metric("promptspool_batch_bytes"))
		})
	}
	held(3 * wire.BatchBodyBytesMax)

	turnedAway := func(key string, bytes, status int, reason string) {
		t.Helper()
		body := strings.Repeat("\n", 1000) + strings.Repeat(" ", bytes)
		r := server.Call("POST", "/sync/events", body, "X-API-KEY", key)
		seconds, err := strconv.Atoi(r.Header.Get("Retry-After"))
		if r.Status != status || !strings.Contains(string(r.Body), reason) || err != nil || seconds < 1 {
			t.Errorf("%d, Retry-After %q: %s; want %d with the reason %q",
				r.Status, r.Header.Get("Retry-After"), r.Body, status, reason)
		}
	}
	turnedAway(keys[0], 1<<20, http.StatusTooManyRequests, "its fair share")
	turnedAway(harness.AdminKey, 31<<20, http.StatusServiceUnavailable, "memory for batches is full")

	// The remaining memory is too little for a large event, but enough for a small one.
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	large := sidecar.Track("/rest/track-request", harness.AdminKey,
		harness.With(harness.Chat(), "notes", strings.Repeat("x", 30<<20)))
	server.Eventually(
		func() bool { return server.Metric("promptspool_shed_total") >= 3 },
		func() string { return "the sidecar is not turned away" },
	)
	if n := sidecar.Waiting(); n != 1 {
		t.Errorf("%d events wait at the sidecar that is turned away; want 1", n)
	}

	for _, conn := range hoards {
		_ = conn.Close()
	}
	server.Record(large, harness.Events(1))
	sidecar.Emptied()
	if n := server.Metric("promptspool_batch_bytes"); n != 0 {
		t.Errorf("the server still holds %v bytes", n)
	}
}
