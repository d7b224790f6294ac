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

// fullRecord refuses what comes for one request, with the cause that a server gives of a record
// at a limit, and passes on the rest.
type fullRecord struct{ id string }

func (f fullRecord) answer(b *between, w http.ResponseWriter, r *http.Request) {
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
	for line := range bytes.Lines(lines) {
		e, err := wire.ParseEvent(line)
		if err != nil {
			b.t.Error(err)
		}
		if e.RequestID != f.id {
			rest.Write(line)
			continue
		}
		refused = append(refused, wire.Result{
			ID: e.ID, Code: wire.ResultInvalid, Cause: wire.CauseLimit,
			Reason: "this request already has the most events that are kept",
		})
	}

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

// An agent reports its steps as metadata of one request: in the long form 200,000, more
// than a record lists. All are taken, and what comes after them arrives right after them.
func TestAnAgentMayReportAnyNumberOfSteps(t *testing.T) {
	t.Parallel()
	steps := 500
	if harness.Soak(t, 1) > 0 {
		steps = 200_000
	}
	listed := min(1+steps+1, 1+archive.RecordEventsMax) // with the request, and step 0 once more
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
	if len(record.Events) != listed || record.EventsTruncated != (steps > listed) {
		t.Errorf("%d events are listed, truncated: %v", len(record.Events), record.EventsTruncated)
	}
	if s := sidecar.SpoolStatus(); s["dead"] != 0.0 || s["held"] != 0.0 {
		t.Errorf("the spool says %v", s)
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
			full := fullRecord{wire.NewID()}
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
			if s["gaps"] != 0.0 || len(rows) < 10 || len(rows) > 40 || rows[0].Cause != "limit" {
				t.Errorf("%d dead letters are left of %d; the spool says %v", len(rows), acked, s)
			}
			// In any order: one may have been on its way when the sidecar died, and was refused later.
			var seqs []uint64
			for _, r := range rows {
				seqs = append(seqs, r.Seq)
			}
			if slices.Contains(seqs, 1) || !slices.Contains(seqs, uint64(acked)) {
				t.Errorf("of %d dead letters these are left, and not the newest: %v", acked, seqs)
			}
			sidecar.Stop()
			harness.Run(t, 0, "spool", "check", "--data", data)
		})
	}
}
