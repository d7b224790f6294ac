//go:build linux

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// hoard sends most of a large batch under a key, and then nothing more until the
// connection is closed: the server holds what has come.
func hoard(t *testing.T, server *node, key string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", server.addr)
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
	server := startPlainServer(t, "127.0.0.1:0")
	keys := accountKeys(t, server, 3)
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
		server.eventually(func() bool { return server.metric("promptspool_batch_bytes") >= least }, func() string {
			return fmt.Sprintf("the server holds %v bytes of batches", server.metric("promptspool_batch_bytes"))
		})
	}
	held(3 * wire.BatchBodyBytesMax)

	turnedAway := func(key string, bytes, status int, reason string) {
		t.Helper()
		body := strings.Repeat("\n", 1000) + strings.Repeat(" ", bytes)
		r := server.call("POST", "/sync/events", body, "X-API-KEY", key)
		seconds, err := strconv.Atoi(r.Header.Get("Retry-After"))
		if r.Status != status || !strings.Contains(string(r.Body), reason) || err != nil || seconds < 1 {
			t.Errorf("%d, Retry-After %q: %s; want %d with the reason %q",
				r.Status, r.Header.Get("Retry-After"), r.Body, status, reason)
		}
	}
	turnedAway(keys[0], 1<<20, http.StatusTooManyRequests, "its fair share")
	turnedAway(adminKey, 31<<20, http.StatusServiceUnavailable, "memory for batches is full")

	// The remaining memory is too little for a large event, but enough for a small one.
	sidecar := startSidecar(t, t.TempDir(), server.addr)
	large := sidecar.track("/rest/track-request", adminKey, with(chat(), "notes", strings.Repeat("x", 30<<20)))
	server.eventually(
		func() bool { return server.metric("promptspool_shed_total") >= 3 },
		func() string { return "the sidecar is not turned away" },
	)
	if n := sidecar.waiting(); n != 1 {
		t.Errorf("%d events wait at the sidecar that is turned away; want 1", n)
	}

	for _, conn := range hoards {
		_ = conn.Close()
	}
	server.record(large, events(1))
	sidecar.emptied()
	if n := server.metric("promptspool_batch_bytes"); n != 0 {
		t.Errorf("the server still holds %v bytes", n)
	}
}

// metric returns the sum of a metric's values.
func (n *node) metric(name string) (sum float64) {
	n.t.Helper()
	for line := range strings.Lines(n.metrics()) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest == "" || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' ')+1:]), 64)
		if err != nil {
			n.t.Errorf("%s: %v", line, err)
		}
		sum += value
	}
	return sum
}
