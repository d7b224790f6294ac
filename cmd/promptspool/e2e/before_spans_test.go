//go:build linux

package e2e

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics/parts"
	"promptspool/spool/archive/postgres/postgrestest"
)

// beforeSpans holds a spool, and archives of both kinds with the same records, as the last version
// that knew no spans left them.
const beforeSpans = "testdata/before_spans.tar.gz"

// beforeVariable names a binary of that version, to write beforeSpans anew:
//
//	PROMPTSPOOL_BEFORE=BINARY go test ./cmd/promptspool/e2e -run BeforeSpans
const beforeVariable = "PROMPTSPOOL_BEFORE"

// beforeBytes is the average size of the requests in beforeSpans; see contentOf.
const beforeBytes = 100

// leftBefore lists the ids of the requests in beforeSpans.
type leftBefore struct {
	Delivered []string // that the archives have, each with a score
	Waiting   []string // in the spool
}

// leaveBefore makes beforeSpans with an older binary.
func leaveBefore(t *testing.T, binary string) {
	t.Helper()
	dir, dsn := t.TempDir(), postgrestest.DSN(t)
	start := func(data string, env []string, args ...string) *node {
		t.Helper()
		n := begin(t, binary, env, data, freePort(t), args...)
		if !n.takes() {
			t.Fatalf("%s ended before it took calls:\n%s", args[0], n.logged())
		}
		return n
	}

	server := start(filepath.Join(dir, "server"), nil, "server")
	shared := start(t.TempDir(), []string{"PROMPTSPOOL_ARCHIVE=" + dsn}, "server")
	sidecar := start(filepath.Join(dir, "sidecar"), nil, "sidecar", "--name", "pod-1",
		"--upstream", "http://"+server.addr, "--drain", "0s", "--spool-free-min", "16MiB")

	send := func(n *node, id string) {
		t.Helper()
		r := n.call("POST", "/rest/track-request", contentOf(id, beforeBytes), "X-API-KEY", adminKey)
		if r.Status != 200 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
	}

	var left leftBefore
	for i := range 20 {
		id := wire.NewID()
		left.Delivered = append(left.Delivered, id)
		for _, n := range []*node{sidecar, shared} {
			send(n, id)
			n.track("/rest/track-score", adminKey, score(id, i))
		}
	}
	sidecar.emptied()
	server.stop()
	shared.stop()
	for range 10 {
		id := wire.NewID()
		left.Waiting = append(left.Waiting, id)
		send(sidecar, id)
	}
	sidecar.stop()

	programs, err := filepath.Glob("/usr/lib/postgresql/*/bin/pg_dump")
	if err != nil || len(programs) == 0 {
		t.Fatal("no pg_dump")
	}
	dump := tool(t, programs[0], "--inserts", "--no-owner", "--no-privileges", dsn)
	// Commands of psql, which newer releases write.
	dump = regexp.MustCompile(`(?m)^\\.*\n`).ReplaceAllString(dump, "")
	text, err := json.Marshal(left)
	if err != nil {
		t.Fatal(err)
	}

	for name, content := range map[string]string{"database.sql": dump, "left.json": string(text)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tool(t, "tar", "--create", "--gzip", "--sparse", "--file", beforeSpans, "--exclude", "control.sock",
		"--directory", dir, "server", "sidecar", "database.sql", "left.json")
}

// What was written before there were spans is upgraded where it is, though server and sidecar are
// killed at it, and spans are written beside it.
func TestWhatWasWrittenBeforeSpansIsUpgradedThoughItIsKilled(t *testing.T) {
	t.Parallel()
	if binary := os.Getenv(beforeVariable); binary != "" {
		leaveBefore(t, binary)
	}

	t.Run("Badger", func(t *testing.T) {
		t.Parallel()
		dir := unpack(t, beforeSpans)
		data := filepath.Join(dir, "server")
		upgrade(t, dir, func(addr string) *node {
			return begin(t, program(t), nil, data, addr, "server")
		}, "--data", data)
	})

	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		parts.Need(t, "postgres")
		dir, data, dsn := unpack(t, beforeSpans), t.TempDir(), postgrestest.DSN(t)
		dump, err := os.ReadFile(filepath.Join(dir, "database.sql"))
		if err != nil {
			t.Fatal(err)
		}
		execute(t, postgrestest.Connect(t, dsn), string(dump))

		upgrade(t, dir, func(addr string) *node {
			return begin(t, program(t), []string{"PROMPTSPOOL_ARCHIVE=" + dsn}, data, addr, "server")
		}, "--archive", dsn)
	})
}

// unpack returns a folder with the content of an archive of folders.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	dir := t.TempDir()
	tool(t, "tar", "--extract", "--no-same-owner", "--file", archive, "--directory", dir)

	return dir
}

// upgrade kills a sidecar in its first moments on an older spool, gives it spans to deliver, kills the
// server in its first moments on an older archive, and then wants everything at the server.
func upgrade(t *testing.T, dir string, start func(addr string) *node, check ...string) {
	text, err := os.ReadFile(filepath.Join(dir, "left.json"))
	if err != nil {
		t.Fatal(err)
	}
	var left leftBefore
	if err := json.Unmarshal(text, &left); err != nil {
		t.Fatal(err)
	}

	addr, sidecarAddr := freePort(t), freePort(t)
	sidecar := func() *node {
		return begin(t, program(t), nil, filepath.Join(dir, "sidecar"), sidecarAddr,
			"sidecar", "--name", "pod-1", "--upstream", "http://"+addr)
	}

	// Some die before they have upgraded anything, some after, and some while they deliver.
	killed := func(n *node, within int) {
		pauseFor(time.Duration(rand.IntN(within)) * time.Millisecond)
		n.kill()
	}
	for range 2 {
		killed(sidecar(), 100)
	}
	pod := sidecar()
	if !pod.takes() {
		t.Fatalf("the sidecar does not open the older spool:\n%s", pod.logged())
	}
	o := startOracle(t, adminKey)
	o.spans = 1
	o.loaded(pod, 2, 500, 100)
	for range rounds(t, 4, 0.1) {
		killed(start(addr), 300)
	}

	server := start(addr)
	if !server.takes() {
		t.Fatalf("the server does not open the older archive:\n%s", server.logged())
	}
	pod.emptied()

	if s := pod.spoolStatus(); s["gaps"] != 0.0 || s["dead"] != 0.0 || s["held"] != 0.0 {
		t.Errorf("the spool says %v", s)
	}
	if a := o.wantAll(server); a.Spans != a.Acked {
		t.Errorf("the oracle says %+v", a)
	}
	before := append(left.Delivered, left.Waiting...)
	for i, id := range before {
		want := events(1)
		if i < len(left.Delivered) {
			want = func(r wire.Record) bool { return len(r.Events) == 2 && r.Scores[0].Score == i }
		}
		if r := server.record(id, want); string(r.Request) != string(contentOf(id, beforeBytes)) {
			t.Errorf("the older record %s is %s", id, r.Request)
		}
	}
	if n := server.total(map[string]any{}); n != len(before) {
		t.Errorf("%d records are listed, want the %d older ones", n, len(before))
	}

	// The last version before listed them by their arrival; they all started in June 2023.
	june := map[string]any{"filter": "time:2023-06-17..2023-06-18"}
	server.eventually(func() bool { return server.total(june) == len(before) },
		func() string { return "not all older records are listed by their start" })

	server.stop()
	out, errs, code := runCommand(t, nil, append([]string{"archive", "check"}, check...)...)
	if code != 0 {
		t.Errorf("archive check: %d %s%s", code, out, errs)
	}
}
