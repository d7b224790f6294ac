//go:build linux

package delivery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/archive"
	"promptspool/spool/crashpoint"
)

// fullRecord refuses what comes for one request beyond a limit, with the cause that a server
// gives, and passes on the rest.
type fullRecord struct {
	id    string
	limit int

	mu   sync.Mutex
	kept map[string]bool // under mu; ids of its events
}

func (f *fullRecord) answer(b *between, w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
	d, err := zstd.NewReader(bytes.NewReader(readAll(r)), zstd.WithDecoderConcurrency(1))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer d.Close()
	lines, err := io.ReadAll(d)
	if err != nil {
		panic(http.ErrAbortHandler)
	}

	var rest bytes.Buffer
	var refused []wire.Result
	f.mu.Lock()
	for line := range bytes.Lines(lines) {
		e, err := wire.ParseEvent(line)
		if err != nil {
			b.t.Error(err)
		}
		if e.RequestID != f.id || f.kept[e.ID] || len(f.kept) < f.limit {
			rest.Write(line)
			if e.RequestID == f.id {
				f.kept[e.ID] = true
			}
			continue
		}
		refused = append(refused, wire.Result{
			ID: e.ID, Code: wire.ResultInvalid, Cause: wire.CauseLimit,
			Reason: fmt.Sprintf("request %s already has %d events, the most that are kept", f.id, f.limit),
		})
	}
	f.mu.Unlock()

	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	p := b.pass(r, encoder.EncodeAll(rest.Bytes(), nil))
	var answered wire.BatchAnswer
	if p.status == 200 && json.Unmarshal(p.body, &answered) == nil {
		answered.Refused = append(answered.Refused, refused...)
		p.body, _ = json.Marshal(answered)
	}
	answer(w, p)
}

// trackStep is one metadata write of a request.
func trackStep(n *harness.Node, id string, number, bytes int) (harness.Reply, error) {
	return n.Try("POST", "/rest/track-metadata", map[string]any{
		"api_key": harness.AdminKey, "request_id": id,
		"metadata": map[string]string{"step": fmt.Sprint(number), "of": strings.Repeat("x", bytes)},
	})
}

// trackSteps makes so many metadata writes of a request, several at a time.
func trackSteps(t *testing.T, sidecar *harness.Node, id string, steps int) {
	t.Helper()
	var writers sync.WaitGroup
	numbers := make(chan int)
	for range 8 {
		writers.Go(func() {
			for i := range numbers {
				if r, err := trackStep(sidecar, id, i, 1); err != nil || r.Status != 200 {
					t.Errorf("step %d: %+v, %v", i, r, err)
				}
			}
		})
	}
	for i := range steps {
		numbers <- i
	}
	close(numbers)
	writers.Wait()
}

// An agent reports its steps as metadata of one request: more than a record lists, in the long
// form 200,000. All are taken, and what comes after them arrives right after them.
func TestAnAgentMayReportAnyNumberOfSteps(t *testing.T) {
	t.Parallel()
	steps := archive.RecordEventsMax + 500
	if harness.Soak(t, 1) > 0 {
		steps = 200_000
	}
	server := harness.StartPlainServer(t, "127.0.0.1:0")
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	agents := wire.NewID()
	sidecar.Track("/rest/track-request", harness.AdminKey, harness.With(harness.Chat(), "request_id", agents))
	begun := time.Now()
	trackSteps(t, sidecar, agents, steps)
	trackSteps(t, sidecar, agents, 1) // step 0, once more
	written := time.Since(begun)

	other := sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	harness.Reached(t, 10*time.Minute, func() bool { return sidecar.Metric("promptspool_spool_events") <= 1 },
		"the steps are not delivered")
	turn := time.Now()
	server.Record(other, harness.Events(1))
	after := time.Since(turn)
	t.Logf("%d steps were written in %v and delivered %v after the first; the next request arrived %v after them",
		steps, written, turn.Sub(begun), after)
	if after > time.Second {
		t.Errorf("the next request arrived %v after its turn", after)
	}

	sidecar.Emptied()
	record := server.Record(agents, func(r wire.Record) bool { return r.Metadata["step"] == "0" })
	if !record.EventsTruncated || len(record.Events) != 1+archive.RecordEventsMax {
		t.Errorf("%d events are listed, truncated: %v", len(record.Events), record.EventsTruncated)
	}
	if s := sidecar.SpoolStatus(); s["dead"] != 0.0 || s["held"] != 0.0 {
		t.Errorf("the spool says %v", s)
	}
}

// A server refuses what a record has no room for.
func TestEventsBeyondTheLimitOfARecordHoldUpNoOtherRequest(t *testing.T) {
	t.Parallel()
	limit, excess := 400, 80
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	middle := startBetween(t, server.Addr)
	sidecar := harness.StartSidecar(t, t.TempDir(), middle.addr)
	agents := wire.NewID()
	full := &fullRecord{id: agents, limit: limit + 1, kept: map[string]bool{}} // the request is one, too
	middle.set(full.answer)
	sidecar.Track("/rest/track-request", harness.AdminKey, harness.With(harness.Chat(), "request_id", agents))

	trackSteps(t, sidecar, agents, limit+excess)

	begun := time.Now()
	others := []string{
		sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat()),
		sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat()),
	}
	for _, id := range others {
		server.Record(id, harness.Events(1))
	}
	sidecar.Emptied()
	t.Logf("after %d steps, %d of them refused, other requests arrived in %v", limit+excess, excess, time.Since(begun))

	if s := sidecar.SpoolStatus(); s["dead"] != float64(excess) || s["dropped"] != 0.0 || s["held"] != 0.0 {
		t.Errorf("the spool says %v", s)
	}
	if n := sidecar.Metric("promptspool_forward_paused"); n != 0 {
		t.Error("forwarding is paused")
	}
	if log := sidecar.Logged(); strings.Contains(log, "versions") || !strings.Contains(log, "record is at a limit") {
		t.Error("the log blames versions, or does not tell of the limit")
	}

	// The tools know them, beside the sidecar and in the folder of a stopped one.
	rows := dead(t, sidecar.Data)
	if len(rows) != excess || rows[0].Lane != "dead" || rows[0].Cause != "limit" || rows[0].RequestID != agents {
		t.Fatalf("dead list: %d rows, the first is %+v", len(rows), rows[0])
	}
	out, _ := harness.Run(t, 0, "dead", "list", "--data", sidecar.Data)
	if !strings.Contains(out, "CAUSE") || strings.Count(out, " limit ") != excess {
		t.Errorf("dead list says\n%s", out)
	}
	sidecar.Stop()
	if stopped := dead(t, sidecar.Data); !slices.Equal(stopped, rows) {
		t.Errorf("dead list of the stopped sidecar: %d rows", len(stopped))
	}
	sequence := fmt.Sprint(rows[0].Seq)
	if out, _ := harness.Run(t, 0, "dead", "show", sequence, "--data", sidecar.Data); !strings.Contains(out, "limit") {
		t.Errorf("dead show says\n%s", out)
	}
	if lines := exported(t, "spool", "export", "--lane", "dead", "--data", sidecar.Data); len(lines) != excess {
		t.Errorf("%d lines are exported", len(lines))
	}
	harness.Run(t, 0, "spool", "check", "--data", sidecar.Data)
	harness.Run(t, 0, "dead", "purge", sequence, "--yes", "--data", sidecar.Data)
	harness.Run(t, 0, "dead", "replay", "--all", "--lane", "dead", "--data", sidecar.Data)
	if left := exported(t, "spool", "export", "--data", sidecar.Data); len(left) != excess-1 {
		t.Errorf("%d events are in the spool again; want %d", len(left), excess-1)
	}
}

// Beyond their share of the lanes the oldest dead letters of limits are dropped. The sidecar dies
// on the way, and neither loses nor invents any but these.
func TestDyingWhileDeadLettersOfLimitsAreDroppedLosesNoOther(t *testing.T) {
	t.Parallel()
	for _, point := range []string{crashpoint.LaneDropCounted, crashpoint.LaneDropped} {
		t.Run(point, func(t *testing.T) {
			server := harness.StartPlainServer(t, "127.0.0.1:0")
			middle := startBetween(t, server.Addr)
			full := &fullRecord{id: wire.NewID()}
			middle.set(full.answer)
			program, err := harness.CrashBinary()
			if err != nil {
				t.Fatal(err)
			}
			data := t.TempDir()
			start := func(env ...string) *harness.Node {
				return harness.Begin(t, program, env, data, "127.0.0.1:0", "sidecar", "--name", "pod-1",
					"--upstream", "http://"+middle.addr, "--spool-bytes-max", "16MiB") // a share is 256 KiB
			}

			sidecar := start("PROMPTSPOOL_CRASH_AT=" + point + ":2")
			acked := 0
			for sidecar.Takes() && !sidecar.Ended() && acked < 1000 {
				if r, err := trackStep(sidecar, full.id, acked, 8<<10); err == nil && r.Status == 200 {
					acked++
				}
			}
			if sidecar.DiedOf() != syscall.SIGKILL {
				t.Fatalf("the point %s was not reached in %d writes", point, acked)
			}

			sidecar = start()
			if !sidecar.Takes() {
				t.Fatal("the sidecar does not start after the crash")
			}
			sidecar.Emptied()
			s := sidecar.SpoolStatus()
			rows := dead(t, data)
			if s["gaps"] != 0.0 || len(rows) < 10 || len(rows) > 40 {
				t.Errorf("%d dead letters are left of %d; the spool says %v", len(rows), acked, s)
			}
			if first, last := rows[0].Seq, rows[len(rows)-1].Seq; first == 1 || last < uint64(acked) {
				var seqs []uint64
				for _, r := range rows {
					seqs = append(seqs, r.Seq)
				}
				t.Errorf("of %d dead letters these are left, and not the newest: %v", acked, seqs)
			}
			sidecar.Stop()
			harness.Run(t, 0, "spool", "check", "--data", data)
		})
	}
}
