//go:build linux

package overload

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/queue"
)

const (
	largeBodyBytes  = 31 << 20
	largeBodyWriter = 3 // together with the exports, more than the cgroup holds; 16 in the long form
)

// A sidecar in a small cgroup gets large bodies from all sides, writes and spans, more than
// it could hold, while its server is away. It may answer 503, and every writer gets through
// by retrying; it must not be killed, and what was answered 200 is on its disk. Then the
// server comes.
func TestASmallCgroupBearsManyLargeBodies(t *testing.T) {
	t.Parallel()
	program := harness.LimitMemory(t, harness.Program(t), harness.CgroupBytes)
	upstream := harness.FreePort(t)
	arguments := []string{"sidecar", "--upstream", "http://" + upstream, "--spool-bytes-max", "16GiB"}
	sidecar, server := startWithoutServer(t, program, upstream, arguments...)

	text := largeText(t)
	var ids []string
	refused, atOnce := 0, largeBodyWriter
	if harness.Soak(t, 1) > 0 {
		atOnce = 16
	}
	for range harness.Rounds(t, 1, 0.05) {
		var mu sync.Mutex
		var writers sync.WaitGroup
		for range atOnce {
			writers.Go(func() {
				id, again := sendLarge(t, sidecar, text)
				mu.Lock()
				defer mu.Unlock()
				ids, refused = append(ids, id), refused+again
			})
		}
		for i, form := range []string{harness.OTLPJSON, harness.OTLPBinary} {
			writers.Go(func() { exportLarge(t, sidecar, largeTraces[i], form) })
		}
		writers.Wait()
		if t.Failed() || sidecar.Ended() {
			t.Fatalf("the sidecar ended: %v\n%s", sidecar.Ended(), sidecar.Logged())
		}
	}
	t.Logf("%d bodies of %d MiB, %d times 503, %s; %d MiB resident at most",
		len(ids), largeBodyBytes>>20, refused, harness.HeldBy(t, sidecar), harness.MemoryOf(t, sidecar, "VmHWM")>>20)

	sidecar.Kill()
	wantLarge(t, filepath.Join(sidecar.Data, "spool"), ids, text)

	sidecar = harness.Begin(t, program, nil, sidecar.Data, "127.0.0.1:0", arguments...)
	server = harness.BeginPlain(t, server.Data, upstream, "server")
	if !server.Takes() || !sidecar.Takes() {
		t.Fatal("server or sidecar do not start again")
	}
	isEmpty := func() bool { return sidecar.Ended() || sidecar.Waiting() == 0 }
	harness.Reached(t, 2*time.Minute, isEmpty, "the spool does not empty")
	emptied := time.Now()
	// A little more than after small events: the generation after a large one has the
	// usual size, not the smallest.
	harness.Reached(t, 10*time.Second, func() bool { return harness.Occupied(t, sidecar.Data) <= 40<<20 },
		"10 s after everything was delivered the data takes more than 40 MiB of disk")
	t.Logf("%s after everything was delivered: %s", time.Since(emptied).Round(time.Millisecond),
		harness.HeldBy(t, sidecar))
	if got := server.Total(nil); got != len(ids)+1 {
		t.Errorf("%d records, want %d", got, len(ids)+1)
	}

	// They are also exported through the sidecar: it does not hold what it passes on.
	exported := len(ids) + 1
	for _, trace := range largeTraces {
		r := server.Get(fmt.Sprintf("/api/public/v2/traces/%x", trace))
		spans, _ := r.JSON["spans"].([]any)
		if len(spans) == 0 || len(spans)%largeSpans > 0 {
			t.Errorf("a trace has %d spans, of which %d were sent together", len(spans), largeSpans)
		}
		exported += len(spans)
	}
	if got := exportedEvents(t, sidecar); got != exported {
		t.Errorf("%d events are exported, want %d", got, exported)
	}
	if sidecar.Ended() {
		t.Fatalf("the sidecar ended: signal %v", sidecar.DiedOf())
	}
}

// exportedEvents exports everything, and returns the number of events.
func exportedEvents(t *testing.T, n *harness.Node) (events int) {
	t.Helper()
	req, err := http.NewRequest("POST", "http://"+n.Addr+"/api/public/v2/requests/export", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-API-KEY", harness.AdminKey)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()

	lines, done := bufio.NewReader(res.Body), false
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 && done {
			return events
		}
		if err != nil {
			t.Fatalf("%d: after %d events: %v", res.StatusCode, events, err)
		}
		if done = bytes.HasPrefix(line, []byte(`{"export":`)); !done {
			events++
		}
	}
}

// startWithoutServer starts a sidecar that knows the key of its server, which is then
// killed.
func startWithoutServer(t *testing.T, program, upstream string, arguments ...string) (sidecar, server *harness.Node) {
	t.Helper()
	server = harness.BeginPlain(t, t.TempDir(), upstream, "server")
	sidecar = harness.Begin(t, program, nil, t.TempDir(), "127.0.0.1:0", arguments...)
	if !server.Takes() || !sidecar.Takes() {
		t.Fatal("server or sidecar do not start")
	}
	sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	sidecar.Emptied()
	server.Kill()

	return sidecar, server
}

// A process that takes more than the cgroup allows must end, or the limit has no effect.
func TestASmallCgroupEndsAProcessThatHoldsMore(t *testing.T) {
	program := harness.LimitMemory(t, os.Args[0], harness.CgroupBytes)
	glutton := harness.Begin(t, program, []string{harness.HelperVariable + "=glutton"}, t.TempDir(), "127.0.0.1:0")
	harness.Reached(t, 30*time.Second, glutton.Ended, "a process with twice what the cgroup allows goes on")
}

// runGlutton takes twice what the cgroup allows.
func runGlutton() {
	held := make([]byte, 2*harness.CgroupBytes)
	for i := 0; i < len(held); i += os.Getpagesize() {
		held[i] = 1
	}
	select {}
}

// largeText returns JSON text that does not pack.
func largeText(t *testing.T) []byte {
	t.Helper()
	random := make([]byte, largeBodyBytes*3/4)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.AppendEncode(nil, random)
}

// sendLarge sends one write until it is accepted, and returns its id and how often it was
// retried.
func sendLarge(t *testing.T, n *harness.Node, text []byte) (id string, again int) {
	id = wire.NewID()
	head := fmt.Appendf(nil, `{"request_id":%q,"function_name":"f","kwargs":{"model":"gpt-4","image":"`, id)
	tail := []byte(`"},"request_response":{},"request_start_time":1687000000.25,"request_end_time":1687000001.5}`)

	return id, sendUntilTaken(t, n, "/rest/track-request", "application/json", head, text, tail)
}

// sendUntilTaken sends the parts of a body until they are accepted, and returns how often
// that was retried.
func sendUntilTaken(t *testing.T, n *harness.Node, path, form string, parts ...[]byte) (again int) {
	for begun := time.Now(); time.Since(begun) < 5*time.Minute; again++ {
		var readers []io.Reader
		length := 0
		for _, part := range parts {
			readers, length = append(readers, bytes.NewReader(part)), length+len(part)
		}
		req, err := http.NewRequest("POST", "http://"+n.Addr+path, io.MultiReader(readers...))
		if err != nil {
			t.Error(err)
			return again
		}
		req.ContentLength = int64(length)
		req.Header.Set("X-API-KEY", harness.AdminKey)
		req.Header.Set("Content-Type", form)

		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return again
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()

		after, err := strconv.Atoi(res.Header.Get("Retry-After"))
		switch {
		case res.StatusCode == 200:
			return again
		case res.StatusCode != 503 || err != nil:
			t.Errorf("%s: %d, Retry-After %q", path, res.StatusCode, res.Header.Get("Retry-After"))
			return again
		}
		harness.PauseFor(time.Duration(after) * time.Second)
	}
	t.Errorf("%s never gets through", path)
	return again
}

// largeSpans is how many spans a large export has: some 20 MiB, as a Collector may send.
const largeSpans = 2500

// largeTraces are the traces of large exports.
var largeTraces = [][16]byte{{1}, {2}}

// exportLarge sends spans until they are accepted.
func exportLarge(t *testing.T, n *harness.Node, trace [16]byte, form string) {
	spans := make([]*harness.SpanSent, largeSpans)
	for i := range spans {
		spans[i] = harness.NewSpan(trace)
	}
	sendUntilTaken(t, n, "/v1/traces", form, harness.ExportOf(spans, 4096, form))
}

// wantLarge checks that the folder of a spool holds whole writes with these ids.
func wantLarge(t *testing.T, dir string, ids []string, text []byte) {
	t.Helper()
	folder, err := queue.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()

	there := map[string]bool{}
	for e, err := range folder.Waiting() {
		if err != nil {
			t.Fatal(err)
		}
		event, err := wire.ParseEvent(e.Data)
		if err != nil {
			t.Fatal(err)
		}
		there[event.RequestID] = bytes.Contains(event.Body, text)
	}
	for _, id := range ids {
		if !there[id] {
			t.Errorf("%s was answered 200 and is not on the disk as it was sent", id)
		}
	}
}
