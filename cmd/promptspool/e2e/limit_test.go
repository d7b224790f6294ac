//go:build linux

package e2e

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
func trackStep(n *node, id string, number, bytes int) (reply, error) {
	return n.try("POST", "/rest/track-metadata", map[string]any{
		"api_key": adminKey, "request_id": id,
		"metadata": map[string]string{"step": fmt.Sprint(number), "of": strings.Repeat("x", bytes)},
	})
}

// trackSteps makes so many metadata writes of a request, several at a time.
func trackSteps(t *testing.T, sidecar *node, id string, steps int) {
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
	if soak(t, 1) > 0 {
		steps = 200_000
	}
	server := startPlainServer(t, "127.0.0.1:0")
	sidecar := startSidecar(t, t.TempDir(), server.addr)
	agents := wire.NewID()
	sidecar.track("/rest/track-request", adminKey, with(chat(), "request_id", agents))
	begun := time.Now()
	trackSteps(t, sidecar, agents, steps)
	trackSteps(t, sidecar, agents, 1) // step 0, once more
	written := time.Since(begun)

	other := sidecar.track("/rest/track-request", adminKey, chat())
	reached(t, 10*time.Minute, func() bool { return sidecar.metric("promptspool_spool_events") <= 1 },
		"the steps are not delivered")
	turn := time.Now()
	server.record(other, events(1))
	after := time.Since(turn)
	t.Logf("%d steps were written in %v and delivered %v after the first; the next request arrived %v after them",
		steps, written, turn.Sub(begun), after)
	if after > time.Second {
		t.Errorf("the next request arrived %v after its turn", after)
	}

	sidecar.emptied()
	record := server.record(agents, func(r wire.Record) bool { return r.Metadata["step"] == "0" })
	if !record.EventsTruncated || len(record.Events) != 1+archive.RecordEventsMax {
		t.Errorf("%d events are listed, truncated: %v", len(record.Events), record.EventsTruncated)
	}
	if s := sidecar.spoolStatus(); s["dead"] != 0.0 || s["held"] != 0.0 {
		t.Errorf("the spool says %v", s)
	}
}

// A server refuses what a record has no room for.
func TestEventsBeyondTheLimitOfARecordHoldUpNoOtherRequest(t *testing.T) {
	t.Parallel()
	limit, excess := 400, 80
	server := startServer(t, t.TempDir(), "127.0.0.1:0")
	middle := startBetween(t, server.addr)
	sidecar := startSidecar(t, t.TempDir(), middle.addr)
	agents := wire.NewID()
	full := &fullRecord{id: agents, limit: limit + 1, kept: map[string]bool{}} // the request is one, too
	middle.set(full.answer)
	sidecar.track("/rest/track-request", adminKey, with(chat(), "request_id", agents))

	trackSteps(t, sidecar, agents, limit+excess)

	begun := time.Now()
	others := []string{
		sidecar.track("/rest/track-request", adminKey, chat()),
		sidecar.track("/rest/track-request", adminKey, chat()),
	}
	for _, id := range others {
		server.record(id, events(1))
	}
	sidecar.emptied()
	t.Logf("after %d steps, %d of them refused, other requests arrived in %v", limit+excess, excess, time.Since(begun))

	if s := sidecar.spoolStatus(); s["dead"] != float64(excess) || s["dropped"] != 0.0 || s["held"] != 0.0 {
		t.Errorf("the spool says %v", s)
	}
	if n := sidecar.metric("promptspool_forward_paused"); n != 0 {
		t.Error("forwarding is paused")
	}
	if log := sidecar.logged(); strings.Contains(log, "versions") || !strings.Contains(log, "record is at a limit") {
		t.Error("the log blames versions, or does not tell of the limit")
	}

	// The tools know them, beside the sidecar and in the folder of a stopped one.
	rows := dead(t, sidecar.data)
	if len(rows) != excess || rows[0].Lane != "dead" || rows[0].Cause != "limit" || rows[0].RequestID != agents {
		t.Fatalf("dead list: %d rows, the first is %+v", len(rows), rows[0])
	}
	out, _ := promptspool(t, 0, "dead", "list", "--data", sidecar.data)
	if !strings.Contains(out, "CAUSE") || strings.Count(out, " limit ") != excess {
		t.Errorf("dead list says\n%s", out)
	}
	sidecar.stop()
	if stopped := dead(t, sidecar.data); !slices.Equal(stopped, rows) {
		t.Errorf("dead list of the stopped sidecar: %d rows", len(stopped))
	}
	sequence := fmt.Sprint(rows[0].Seq)
	if out, _ := promptspool(t, 0, "dead", "show", sequence, "--data", sidecar.data); !strings.Contains(out, "limit") {
		t.Errorf("dead show says\n%s", out)
	}
	if lines := exported(t, "spool", "export", "--lane", "dead", "--data", sidecar.data); len(lines) != excess {
		t.Errorf("%d lines are exported", len(lines))
	}
	promptspool(t, 0, "spool", "check", "--data", sidecar.data)
	promptspool(t, 0, "dead", "purge", sequence, "--yes", "--data", sidecar.data)
	promptspool(t, 0, "dead", "replay", "--all", "--lane", "dead", "--data", sidecar.data)
	if left := exported(t, "spool", "export", "--data", sidecar.data); len(left) != excess-1 {
		t.Errorf("%d events are in the spool again; want %d", len(left), excess-1)
	}
}

// Beyond their share of the lanes the oldest dead letters of limits are dropped. The sidecar dies
// on the way, and neither loses nor invents any but these.
func TestDyingWhileDeadLettersOfLimitsAreDroppedLosesNoOther(t *testing.T) {
	t.Parallel()
	for _, point := range []string{crashpoint.LaneDropCounted, crashpoint.LaneDropped} {
		t.Run(point, func(t *testing.T) {
			server := startPlainServer(t, "127.0.0.1:0")
			middle := startBetween(t, server.addr)
			full := &fullRecord{id: wire.NewID()}
			middle.set(full.answer)
			program, err := crashBinary()
			if err != nil {
				t.Fatal(err)
			}
			data := t.TempDir()
			start := func(env ...string) *node {
				return begin(t, program, env, data, "127.0.0.1:0", "sidecar", "--name", "pod-1",
					"--upstream", "http://"+middle.addr, "--spool-bytes-max", "16MiB") // a share is 256 KiB
			}

			sidecar := start("PROMPTSPOOL_CRASH_AT=" + point + ":2")
			acked := 0
			for sidecar.takes() && !sidecar.ended() && acked < 1000 {
				if r, err := trackStep(sidecar, full.id, acked, 8<<10); err == nil && r.Status == 200 {
					acked++
				}
			}
			if sidecar.diedOf() != syscall.SIGKILL {
				t.Fatalf("the point %s was not reached in %d writes", point, acked)
			}

			sidecar = start()
			if !sidecar.takes() {
				t.Fatal("the sidecar does not start after the crash")
			}
			sidecar.emptied()
			s := sidecar.spoolStatus()
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
			sidecar.stop()
			promptspool(t, 0, "spool", "check", "--data", data)
		})
	}
}
