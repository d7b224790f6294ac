//go:build linux && bench

package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/proxy"
	"promptspool/spool/queue"
)

// longVariable makes the benchmarks of draining as long as their claim: a million events.
const longVariable = "PROMPTSPOOL_BENCH_LONG"

const drainBytes = 4096 // of an event's text

func drainEvents() int {
	if os.Getenv(longVariable) != "" {
		return 1_000_000
	}
	return 100_000
}

// BenchmarkDraining leaves a backlog with a sidecar and gives it a server: one that only
// counts, which is the floor; then the real one.
func BenchmarkDraining(b *testing.B) {
	for _, who := range []string{"sink", "server"} {
		b.Run(who, func(b *testing.B) {
			for range b.N {
				drainTo(b, who, drainEvents())
			}
		})
	}
}

func drainTo(b *testing.B, who string, events int) {
	b.Helper()
	dir := b.TempDir()
	defer os.RemoveAll(dir)
	fillSpool(b, filepath.Join(dir, "sidecar"), events)

	upstream := harness.FreePort(b)
	sidecar := beginMeasured(b, filepath.Join(dir, "sidecar"), upstream)
	if !sidecar.Takes() {
		b.Fatal("the sidecar does not start")
	}

	var server *harness.Node
	if who == "server" {
		server = harness.BeginPlain(b, filepath.Join(dir, "server"), upstream, "server")
		if !server.Takes() {
			b.Fatal("the server does not start")
		}
	} else {
		startSink(b, upstream)
	}

	before, begun := cpuOf(b, sidecar), time.Now()
	peak := int64(0)
	for sidecar.Waiting() != 0 {
		peak = max(peak, harness.MemoryOf(b, sidecar, "RssAnon"))
		if time.Since(begun) > backlogPatience {
			b.Fatal("the draining does not end")
		}
		harness.PauseFor(20 * time.Millisecond)
	}

	took, cpu := time.Since(begun), cpuOf(b, sidecar)-before
	fmt.Printf("\n%d events of %d bytes to the %s: %.0f/s, %.2f core-seconds of the sidecar per 10,000, "+
		"at most %.1f MiB anonymous",
		events, drainBytes, who, float64(events)/took.Seconds(), cpu.Seconds()/float64(events)*10_000,
		float64(peak)/(1<<20))
	if who != "server" {
		c := counted(b, upstream)
		fmt.Printf(", %.3f of the payload on the wire", float64(c.Travelled)/float64(c.Unpacked))
		if c.Events != int64(events) {
			b.Errorf("the sink counted %d of %d events", c.Events, events)
		}
	} else {
		server.Kill()
	}

	fmt.Println()
	sidecar.Kill()
}

// startSink runs a sink until the benchmark ends.
func startSink(b *testing.B, addr string) {
	b.Helper()
	sink := exec.Command(os.Args[0])
	sink.Env = append(os.Environ(), harness.HelperVariable+"=sink", "SINK="+addr)
	sink.Stderr = os.Stderr

	out, err := sink.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := sink.Start(); err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() { _, _ = sink.Process.Kill(), sink.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		b.Fatal("the sink: ", err)
	}
}

type sinkCount struct{ Events, Travelled, Unpacked int64 }

func counted(b *testing.B, addr string) (c sinkCount) {
	b.Helper()
	res, err := http.Get("http://" + addr + "/counted")
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&c); err != nil {
		b.Fatal(err)
	}
	return c
}

// cpuOf returns the processor time that a process has used.
func cpuOf(b testing.TB, n *harness.Node) time.Duration { return cpuOfProcess(b, n.Cmd.Process.Pid) }

func cpuOfProcess(b testing.TB, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)

	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // the kernel counts in hundredths
}

// knows is a server that accepts every key, and has no template.
type knows struct{}

func (knows) Verdict(context.Context, wire.Secret) (wire.KeyVerdict, error) {
	return wire.KeyVerdict{Success: true, Account: "a", KeyID: "k", Scope: wire.ScopeFull}, nil
}

func (knows) Version(string, string, wire.Selector) (int, bool) { return 0, false }

// fillSpool writes events into the folder of a sidecar that does not run.
func fillSpool(b *testing.B, data string, events int) {
	b.Helper()
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	spool, err := queue.Open(queue.Config{
		Dir:             filepath.Join(data, "spool"),
		BytesMax:        16 << 30,
		GenerationBytes: 16 << 20,
		Logger:          logger,
	})
	if err != nil {
		b.Fatal(err)
	}
	keys, err := proxy.OpenKeyring(proxy.KeyringConfig{
		Dir:           filepath.Join(data, "keys"),
		Asker:         knows{},
		Spool:         spool,
		SpoolBytesMax: 16 << 30,
		Logger:        logger,
	})
	if err != nil {
		b.Fatal(err)
	}
	p := proxy.New(spool, keys, knows{}, logger)
	id, err := keys.Authenticate(context.Background(), harness.AdminKey)
	if err != nil || !id.Verified {
		b.Fatal(id, err)
	}

	text := newProse(b)
	for events > 0 {
		batch := make([]wire.Event, min(events, 60))
		for i := range batch {
			batch[i] = wire.Event{
				ID:         wire.NewID(),
				Kind:       wire.KindRequest,
				RequestID:  wire.NewID(),
				AcceptedAt: time.Now(),
				Sidecar:    "pod-1",
				Body:       text.body(drainBytes),
			}
		}
		if _, err := p.Record(context.Background(), id, batch); err != nil {
			b.Fatal(err)
		}
		events -= len(batch)
	}

	keys.Close()
	if err := spool.Close(); err != nil {
		b.Fatal(err)
	}
}

// prose makes texts that pack about as well as English does (measured with zstd's fastest
// level: 0.335, the book itself 0.322): four words at a time from a book that comes with
// Go.
type prose struct{ words []string }

func newProse(b *testing.B) prose {
	b.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal("where Go is: ", err)
	}
	book, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "src/testdata/Isaac.Newton-Opticks.txt"))
	if err != nil {
		b.Fatal("the text to send: ", err)
	}
	return prose{strings.Fields(string(book))}
}

// body returns a write of about size bytes.
func (p prose) body(size int) []byte {
	var text strings.Builder
	for text.Len() < size-400 {
		i := rand.IntN(len(p.words) - 4)
		text.WriteString(strings.Join(p.words[i:i+4], " ") + " ")
	}
	quoted, _ := json.Marshal(text.String())

	return fmt.Appendf(nil, `{"function_name":"openai.ChatCompletion.create","provider_type":"openai",`+
		`"kwargs":{"model":"gpt-4","messages":[{"role":"user","content":%s}]},"request_response":{"id":"x",`+
		`"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}},`+
		`"request_start_time":1687000000.25,"request_end_time":1687000001.5,"tags":["bench"]}`,
		quoted, rand.IntN(4000), rand.IntN(2000))
}
