//go:build linux

package delivery

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

const lateKey = "a-key-that-the-server-learns-late-and-not-at-first"

// startHolding starts a server, and a sidecar with events of lateKey, which the server
// does not know. It waits until they are held, and returns their request ids.
func startHolding(t *testing.T, count int) (sidecar, server *harness.Node, ids []string) {
	t.Helper()
	address := harness.FreePort(t)
	sidecar = harness.StartSidecar(t, t.TempDir(), address)
	for range count {
		ids = append(ids, sidecar.Track("/rest/track-request", lateKey, harness.Chat()))
	}
	server = harness.StartServer(t, t.TempDir(), address)
	sidecar.Emptied()
	return sidecar, server, ids
}

// dead lists the held and dead events in a sidecar's folder.
func dead(t *testing.T, data string) []deadLetter {
	t.Helper()
	return promptspoolJSON[struct{ Items []deadLetter }](t, 0, "dead", "list", "--data", data).Items
}

// exported returns the lines that a command prints, each an event.
func exported(t *testing.T, args ...string) []string {
	t.Helper()
	out, _ := harness.Run(t, 0, args...)
	return strings.Split(strings.TrimSuffix(out, "\n"), "\n")
}

func TestHeldEventsAreExportedReplayedUnderAnotherKeyAndPurged(t *testing.T) {
	t.Parallel()
	sidecar, server, ids := startHolding(t, 4)
	rows := dead(t, sidecar.Data)
	if len(rows) != 4 || rows[0].Lane != "held" || rows[0].Kind != "request" ||
		rows[0].RequestID != ids[0] || rows[0].Reason == "" {
		t.Fatalf("%+v", rows)
	}
	seq := func(i int) string { return fmt.Sprint(rows[i].Seq) }

	shown, _ := harness.Run(t, 0, "dead", "show", seq(0), "--data", sidecar.Data)
	if !strings.Contains(shown, ids[0]) || strings.Contains(shown, lateKey) {
		t.Errorf("show prints %s", shown)
	}
	if all := exported(t, "dead", "export", "--data", sidecar.Data); len(all) != 4 {
		t.Errorf("dead export prints %q", all)
	}
	held := exported(t, "dead", "export", "--lane", "held", "--data", sidecar.Data)
	if len(held) != 4 || !strings.Contains(held[1], ids[1]) || strings.Contains(strings.Join(held, ""), lateKey) {
		t.Errorf("the held lane: %q", held)
	}
	for _, none := range [][]string{{"spool", "export"}, {"dead", "export", "--lane", "dead"}} {
		out, errs := harness.Run(t, 0, append(none, "--data", sidecar.Data)...)
		if out != "" || !strings.HasPrefix(errs, "0 events") {
			t.Errorf("%v: %q %q", none, out, errs)
		}
	}
	_, errs := harness.Run(t, 2, "dead", "export", "--lane", "other", "--data", sidecar.Data)
	if !strings.Contains(errs, "held") {
		t.Errorf("an unknown lane: %s", errs)
	}

	_, errs = harness.Run(t, 1, "dead", "purge", seq(1), "--data", sidecar.Data)
	if !strings.Contains(errs, "1 event") || len(dead(t, sidecar.Data)) != 4 {
		t.Errorf("purge without --yes says %s", errs)
	}
	out, _ := harness.Run(t, 0, "dead", "purge", seq(1), "--yes", "--data", sidecar.Data)
	if !strings.Contains(out, "1 event removed.") {
		t.Errorf("purge says %s", out)
	}
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte(harness.AdminKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	harness.Run(t, 0, "dead", "replay", seq(0), "--key-file", keyFile, "--data", sidecar.Data)
	server.Record(ids[0], harness.Events(1))

	// The others, in the folder alone: what was purged stays away.
	sidecar.Stop()
	if got := dead(t, sidecar.Data); !slices.Equal(got, rows[2:]) {
		t.Errorf("left are %+v, want the last two of %+v", got, rows)
	}
	stopped := exported(t, "dead", "export", "--lane", "held", "--data", sidecar.Data)
	if !slices.Equal(stopped, held[2:]) {
		t.Errorf("the held lane of the stopped one: %q, want %q", stopped, held[2:])
	}
	harness.Run(t, 0, "dead", "replay", seq(2), "--key-file", keyFile, "--data", sidecar.Data)
	harness.Run(t, 0, "dead", "purge", "--all", "--yes", "--data", sidecar.Data)
	if got := dead(t, sidecar.Data); len(got) != 0 {
		t.Errorf("after the purge: %+v", got)
	}
	harness.Run(t, 0, "spool", "drain", "--data", sidecar.Data, "--upstream", "http://"+server.Addr)
	server.Record(ids[2], harness.Events(1))
	if n := server.Total(nil); n != 2 {
		t.Errorf("%d records, want the two that were replayed", n)
	}
	if found := harness.FilesHolding(t, sidecar.Data, lateKey); len(found) > 0 {
		t.Errorf("the unknown key is still in %v", found)
	}
}
