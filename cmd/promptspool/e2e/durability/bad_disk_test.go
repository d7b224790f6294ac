//go:build linux

package durability

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/disk/disktest"
)

// longChat returns a call of some 8 KB that packing does not make shorter.
func longChat() map[string]any {
	noise := make([]byte, 6000)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	call := harness.Chat()
	call["kwargs"].(map[string]any)["messages"] = []map[string]string{
		{"role": "user", "content": base64.StdEncoding.EncodeToString(noise)},
	}
	return call
}

// trackLong writes count long chats and returns their ids.
func trackLong(n *harness.Node, count int) (ids []string) {
	n.T.Helper()
	for range count {
		ids = append(ids, n.Track("/rest/track-request", harness.AdminKey, longChat()))
	}
	return ids
}

// fileOf returns the first file that a pattern matches.
func fileOf(t *testing.T, pattern string) string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no file matches %s (%v)", pattern, err)
	}
	return paths[0]
}

// One block under a killed sidecar's backlog is unreadable. Its tools report what is
// lost, and it starts, delivers the rest, counts what it lost, and takes writes.
func TestASidecarOnADiskWithABadBlockDeliversTheRest(t *testing.T) {
	t.Parallel()
	volume, upstream := disktest.MountVolume(t, "ext4"), harness.FreePort(t)
	data, copied := filepath.Join(volume.Dir, "data"), filepath.Join(volume.Dir, "copied")
	start := func() *harness.Node {
		return harness.BeginPlain(t, data, "127.0.0.1:0", "sidecar", "--name", "pod-1", "--upstream",
			"http://"+upstream)
	}
	sidecar := start()
	if !sidecar.Takes() {
		t.Fatal("the sidecar does not start")
	}
	const written = 60
	trackLong(sidecar, written)
	sidecar.Kill()
	harness.Tool(t, "cp", "-a", data, copied)
	for _, folder := range []string{data, copied} {
		volume.Break(fileOf(t, filepath.Join(folder, "spool", "gen-*", "*.vlog")), 400_000)
	}

	checked, _ := harness.Run(t, 1, "spool", "check", "--data", data)
	var lost int
	for n := 1; n <= 3; n++ {
		want := fmt.Sprintf("Damaged: %s lost; %d events queued and whole", quantity(n), written-n)
		if strings.Contains(checked, want) {
			lost = n
		}
	}
	if lost == 0 {
		t.Fatalf("spool check says %s", checked)
	}

	status, _ := harness.Run(t, 0, "spool", "status", "--data", data)
	if !strings.Contains(status, quantity(lost)+", by damage") {
		t.Errorf("spool status says %s", status)
	}

	file := filepath.Join(t.TempDir(), "events")
	_, said := harness.Run(t, 1, "spool", "export", "--data", data, file)
	if want := fmt.Sprintf("the disk lost %s", quantity(lost)); !strings.Contains(said, want) {
		t.Errorf("spool export says %s", said)
	}
	if exported, err := os.ReadFile(file); err != nil || strings.Count(string(exported), "\n") != written-lost {
		t.Errorf("not everything that is whole was exported: %v", err)
	}

	repaired, _ := harness.Run(t, 0, "spool", "repair", "--data", data)
	if !strings.Contains(repaired, "no whole copy") || !strings.Contains(repaired, "Nothing was changed") {
		t.Errorf("spool repair says %s", repaired)
	}

	server := harness.StartPlainServer(t, upstream)

	_, said = harness.Run(t, 1, "spool", "drain", "--data", copied, "--upstream", "http://"+upstream)
	if want := fmt.Sprintf("it lost %s", quantity(lost)); !strings.Contains(said, want) {
		t.Errorf("spool drain says %s", said)
	}
	if got := server.Total(nil); got != written-lost {
		t.Errorf("%d events were drained", got)
	}

	if sidecar = start(); !sidecar.Takes() {
		t.Fatalf("the sidecar does not start on the disk:\n%s", sidecar.Logged())
	}
	trackLong(sidecar, 1)
	sidecar.Emptied()
	if got := server.Total(nil); got != written-lost+1 {
		t.Errorf("%d records, want %d", got, written-lost+1)
	}
	if s := sidecar.SpoolStatus(); s["gaps"] != float64(lost) {
		t.Errorf("%d events are lost, the spool says %v", lost, s)
	}
	if want := fmt.Sprintf("promptspool_spool_gaps_total %d\n", lost); !strings.Contains(sidecar.Metrics(), want) {
		t.Errorf("the metrics lack %s", want)
	}

	// The rest is delivered, and what was lost is not forgotten by that.
	for _, running := range []bool{true, false} {
		if !running {
			sidecar.Stop()
		}
		checked, _ = harness.Run(t, 0, "spool", "check", "--data", data)
		for _, want := range []string{
			fmt.Sprintf("\nLost earlier: %s, number", quantity(lost)), ", found 20",
			"\nSet aside: " + filepath.Join(data, "spool", "quarantine", "gen-"),
			fmt.Sprintf("\nSound now: 0 events queued, each is whole. Lost earlier: %s.\n", quantity(lost)),
		} {
			if !strings.Contains(checked, want) {
				t.Errorf("running %v: spool check does not say %q, but\n%s", running, want, checked)
			}
		}
	}
	t.Log(checked)

	// A person has dealt with it.
	if err := os.RemoveAll(filepath.Join(data, "spool", "quarantine")); err != nil {
		t.Fatal(err)
	}
	checked, _ = harness.Run(t, 0, "spool", "check", "--data", data)
	if !strings.HasSuffix(checked, "\nSound: 0 events queued, each is whole, and none is missing.\n") {
		t.Errorf("spool check says %s", checked)
	}
}

// A block of an older value log goes bad. A read of it ends the server, with the file's
// name; the next start leaves the block out and says so, and from then on the server
// runs.
func TestAServerThatMeetsABadBlockEndsOnceAndGoesOnWithoutIt(t *testing.T) {
	t.Parallel()
	volume := disktest.MountVolume(t, "xfs")
	data := filepath.Join(volume.Dir, "data")
	start := func() *harness.Node { return harness.BeginPlain(t, data, "127.0.0.1:0", "server", "--name", "central") }
	var server *harness.Node
	var ids []string
	for range 2 { // each has a value log of its own
		if server = start(); !server.Takes() {
			t.Fatalf("the server does not start:\n%s", server.Logged())
		}
		ids = append(ids, trackLong(server, 40)...)
		server.Stop()
	}
	bad := filepath.Join(data, "archive", "000001.vlog")
	volume.Break(bad, 250_000)

	if server = start(); !server.Takes() {
		t.Fatalf("a block that is not needed keeps the server from starting:\n%s", server.Logged())
	}
	for _, id := range ids {
		if _, err := server.Try("GET", "/api/public/v2/requests/"+id, nil, "X-API-KEY", harness.AdminKey); err != nil {
			break
		}
	}
	server.Eventually(server.Ended,
		func() string { return "the server meets the block and goes on:\n" + server.Logged() })
	signal, last := server.DiedOf(), harness.LastLine(server.Logged())
	if signal > 0 || !strings.Contains(last, filepath.Dir(bad)) {
		t.Errorf("the server ends with signal %v, and its last line is %s", signal, last)
	}

	if server = start(); !server.Takes() {
		t.Fatalf("the server does not start again:\n%s", server.Logged())
	}
	for _, want := range []string{"crashed", bad, "archive check"} {
		if !strings.Contains(server.Logged(), want) {
			t.Errorf("the log does not report what was met and lost: %q is missing in\n%s", want, server.Logged())
		}
	}
	whole := 0
	for _, id := range ids {
		r := server.Get("/api/public/v2/requests/" + id)
		if r.Status == http.StatusOK {
			whole++
		} else if r.Status != http.StatusInternalServerError {
			t.Errorf("record %s: %d %s", id, r.Status, r.Body)
		}
	}
	if whole < len(ids)-2 || whole == len(ids) {
		t.Errorf("%d of %d records are whole", whole, len(ids))
	}

	trackLong(server, 1)
	if m := server.Metrics(); !strings.Contains(m, "promptspool_archive_quarantined 1\n") {
		t.Error("the metrics do not report the file that was set aside")
	}

	// A fault in a goroutine of Badger's: it writes to a file that was truncated under it.
	if err := os.Truncate(fileOf(t, filepath.Join(data, "archive", "*.mem")), 0); err != nil {
		t.Fatal(err)
	}
	_, _ = server.Try("POST", "/rest/track-request", harness.Chat(), "X-API-KEY", harness.AdminKey)
	server.Eventually(server.Ended, func() string { return "the server writes where no file is, and goes on" })
	if server = start(); !server.Takes() || !strings.Contains(server.Logged(), "reading every file") {
		t.Fatalf("after a crash:\n%s", server.Logged())
	}
	server.Stop()
	if server = start(); !server.Takes() || strings.Contains(server.Logged(), "crashed") {
		t.Errorf("the server still reports the crash:\n%s", server.Logged())
	}
	server.Stop()
}

// quantity returns a number of events as the commands print it.
func quantity(events int) string {
	if events == 1 {
		return "1 event"
	}
	return fmt.Sprintf("%d events", events)
}
