//go:build linux

package durability

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

// Others fill a server's disk to the last block while it is written, and again before it
// stops. It answers 503, sidecars keep their events, and it resumes by itself when there
// is space. A start on the full disk reports what is missing.
func TestAServerOnAFullDiskGoesOnWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	disk := harness.NewImage(t, harness.Ext4, t.TempDir(), 128, true)
	addr := harness.FreePort(t)
	data, outside := filepath.Join(disk.Mount, "data"), filepath.Join(disk.Mount, "of others")
	start := func() *harness.Node { return harness.BeginPlain(t, data, addr, "server", "--name", "central") }
	server := start()
	if !server.Takes() {
		t.Fatal("the server does not start")
	}
	sidecar := harness.StartSidecar(t, t.TempDir(), addr)
	// A sidecar that starts does not know how long it was told to wait.
	empty := func() {
		t.Helper()
		sidecar.Kill()
		sidecar = harness.StartSidecar(t, sidecar.Data, addr)
		sidecar.Emptied()
	}
	o := harness.StartOracle(t, harness.AdminKey)
	o.Loaded(sidecar, 4, 2000, 100)
	o.Load(sidecar, 4, 2000, 0)

	fill(t, outside)
	var last harness.Reply
	server.Eventually(func() bool {
		var err error
		last, err = server.Try("POST", "/rest/track-request", harness.Chat(), "X-API-KEY", harness.AdminKey)
		return server.Ended() || err == nil && last.Status == http.StatusServiceUnavailable
	}, func() string { return fmt.Sprintf("a write on a full disk: %d %s", last.Status, last.Body) })
	if server.Ended() {
		t.Fatalf("the server ended: signal %v\n%s", server.DiedOf(), harness.LastLine(server.Logged()))
	}
	if last.Header.Get("Retry-After") == "" || !strings.Contains(string(last.Body), "--free-min") {
		t.Errorf("the refusal: %v %s", last.Header, last.Body)
	}
	if server.Total(nil) == 0 {
		t.Error("nothing is found while the disk is full")
	}

	free := func() {
		t.Helper()
		if err := os.Remove(outside); err != nil {
			t.Fatal(err)
		}
	}
	free()
	o.Halt()
	server.Eventually(func() bool { return writeOne(server).Status == http.StatusOK },
		func() string { return "the server takes no writes when there is space" })
	empty()

	o.Loaded(sidecar, 4, 2000, o.Count().Acked+20)
	fill(t, outside)
	o.Loaded(sidecar, 4, 2000, o.Count().Acked+20)
	server.Stop()
	server = start()
	if server.Takes() {
		t.Error("the server starts on a full disk")
		server.Stop()
	} else if server.DiedOf() > 0 || !strings.Contains(harness.LastLine(server.Logged()), "free") {
		t.Errorf("on a full disk the server ends without asking for free space: signal %v, %s",
			server.DiedOf(), harness.LastLine(server.Logged()))
	}

	free()
	if server = start(); !server.Takes() {
		t.Fatalf("the server does not start when there is space:\n%s", server.Logged())
	}
	empty()
	o.WantAll(server)
}

// fill writes a file until not one block of the disk is free.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for size := 1 << 20; size >= 512; size /= 2 {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
	}

	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
}
