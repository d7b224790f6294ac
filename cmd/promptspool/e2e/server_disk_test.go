//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Others fill a server's disk to the last block while it is written, and again before it
// stops. It answers 503, sidecars keep their events, and it resumes by itself when there
// is room. A start on the full disk reports what is missing.
func TestAServerOnAFullDiskGoesOnWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	disk, addr := newImage(t, 128), freePort(t)
	data, outside := filepath.Join(disk.mount, "data"), filepath.Join(disk.mount, "of others")
	start := func() *node { return beginPlain(t, data, addr, "server", "--name", "central") }
	server := start()
	if !server.takes() {
		t.Fatal("the server does not start")
	}
	sidecar := startSidecar(t, t.TempDir(), addr)
	o := startOracle(t, adminKey)
	o.loaded(sidecar, 4, 2000, 100)
	o.load(sidecar, 4, 2000, 0)

	fill(t, outside)
	var last reply
	server.eventually(func() bool {
		var err error
		last, err = server.try("POST", "/rest/track-request", chat(), "X-API-KEY", adminKey)
		return server.ended() || err == nil && last.Status == http.StatusServiceUnavailable
	}, func() string { return fmt.Sprintf("a write on a full disk: %d %s", last.Status, last.Body) })
	if server.ended() {
		t.Fatalf("the server ended: signal %v\n%s", server.diedOf(), lastLine(server.logged()))
	}
	if last.Header.Get("Retry-After") == "" || !strings.Contains(string(last.Body), "--free-min") {
		t.Errorf("the refusal: %v %s", last.Header, last.Body)
	}
	if server.total(nil) == 0 {
		t.Error("nothing is found while the disk is full")
	}

	free := func() {
		t.Helper()
		if err := os.Remove(outside); err != nil {
			t.Fatal(err)
		}
	}
	free()
	o.halt()
	sidecar.emptied()

	o.loaded(sidecar, 4, 2000, o.count().Acked+20)
	fill(t, outside)
	o.loaded(sidecar, 4, 2000, o.count().Acked+20)
	server.stop()
	server = start()
	if server.takes() {
		t.Error("the server starts on a full disk")
		server.stop()
	} else if server.diedOf() > 0 || !strings.Contains(lastLine(server.logged()), "free") {
		t.Errorf("on a full disk the server ends without asking for free space: signal %v, %s",
			server.diedOf(), lastLine(server.logged()))
	}

	free()
	if server = start(); !server.takes() {
		t.Fatalf("the server does not start when there is room:\n%s", server.logged())
	}
	sidecar.emptied()
	o.wantAll(server)
}
