package queue_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"promptspool/spool/disk/disktest"
	"promptspool/spool/queue"
)

// leavesBehind in the environment allows the test of a process to leave goroutines behind.
const leavesBehind = "PROMPTSPOOL_TEST_LEAVES_BEHIND"

// inOwnProcess reports whether the test has this process to itself. If not, it runs the
// test in a process of its own. There it may leave goroutines behind, as a spool that
// failed leaves its databases open.
func inOwnProcess(t *testing.T) bool {
	t.Helper()
	if os.Getenv(leavesBehind) != "" {
		return true
	}

	child := exec.CommandContext(t.Context(), os.Args[0],
		"-test.run=^"+t.Name()+"$", "-test.timeout=5m", "-test.v")
	child.Env = append(os.Environ(), leavesBehind+"=1")

	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" ") {
		t.Fatalf("%v\n%s", err, out)
	}

	return false
}

// diskChild writes to a small disk, in a process of its own. Only Linux has such disks here.
var diskChild func(dir string) error

// TestMain looks for goroutines that were left behind. Badger leaves the ignored ones
// when it fails to open a damaged folder. A database that we forget to close leaves
// others as well.
func TestMain(m *testing.M) {
	disktest.InMemory()

	if os.Getenv(leavesBehind) != "" {
		os.Exit(m.Run())
	}
	if dir := os.Getenv("PROMPTSPOOL_TEST_DISK"); dir != "" {
		if err := diskChild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}

	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("github.com/dgraph-io/badger/v4.(*DB).monitorCache"),
		goleak.IgnoreTopFunction("github.com/dgraph-io/badger/v4.(*DB).updateSize"),
		goleak.IgnoreTopFunction("github.com/dgraph-io/badger/v4/y.(*WaterMark).process"),
		goleak.IgnoreTopFunction("github.com/dgraph-io/ristretto/v2/z.(*AllocatorPool).freeupAllocators"))
}

// open opens a spool in dir and closes it after the test. The functions change its
// settings. Benchmarks have generations of the usual size.
func open(t testing.TB, dir string, settings ...func(*queue.Config)) *queue.Queue {
	t.Helper()
	if _, isBenchmark := t.(*testing.B); isBenchmark {
		settings = append([]func(*queue.Config){generationBytes(0)}, settings...)
	}
	s, err := tryOpen(dir, settings...)
	if err != nil {
		t.Fatal(err)
	}
	running.Store(dir, s)
	t.Cleanup(func() { running.Delete(dir); closeSpool(t, s) })

	return s
}

// running are the spools that open has opened, by their folders.
var running sync.Map

// tryOpen opens a spool that the test closes itself, or that it expects not to open.
func tryOpen(dir string, settings ...func(*queue.Config)) (*queue.Queue, error) {
	c := queue.Config{
		Dir:             dir,
		Logger:          slog.New(slog.NewTextHandler(io.Discard, nil)),
		GenerationBytes: 1 << 20, // the files of larger ones take most of a test's time
	}
	for _, set := range settings {
		set(&c)
	}

	return queue.Open(c)
}

func closeSpool(t testing.TB, s *queue.Queue) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func generationBytes(n int64) func(*queue.Config) {
	return func(c *queue.Config) { c.GenerationBytes = n }
}

func bytesMax(n int64) func(*queue.Config) { return func(c *queue.Config) { c.BytesMax = n } }

func appendAll(t testing.TB, s *queue.Queue, key uint32, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := s.Append(key, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
}

// readAll reads everything from the frontier to the newest event.
func readAll(t testing.TB, s *queue.Queue) []queue.Entry {
	t.Helper()
	var all []queue.Entry
	newest, _ := s.Newest()
	for from := s.Frontier(); from <= newest; {
		ctx, cancel := context.WithCancel(t.Context())
		entries, err := await(ctx, s, from, 100, 1<<20)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entries...)
		from = entries[len(entries)-1].Seq + 1
	}

	return all
}

func texts(entries []queue.Entry) []string {
	var texts []string
	for _, e := range entries {
		texts = append(texts, string(e.Data))
	}

	return texts
}

// numbered returns the texts "event 1" to "event n".
func numbered(n int) []string {
	var texts []string
	for i := range n {
		texts = append(texts, fmt.Sprintf("event %d", i+1))
	}

	return texts
}

// copyDir copies the folder of an open spool, as a disk would look after the power failed.
func copyDir(t testing.TB, dir string) string {
	t.Helper()
	// Copying takes a while: no file may be moved during it.
	if s, ok := running.Load(dir); ok {
		s.(*queue.Queue).Rest()
	}
	target := filepath.Join(t.TempDir(), "copy")
	if out, err := exec.Command("cp", "-a", "--sparse=always", dir, target).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}

	return target
}

func wantTexts(t testing.TB, s *queue.Queue, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, texts(readAll(t, s))); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
}

// limitChecks makes rapid run n checks, unless the command line sets their number. Its
// default of 100 would spend many seconds in fsync.
func limitChecks(t *testing.T, n int) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue {
		return
	}
	if err := f.Value.Set(strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
}

// await reads from a sequence on, once there is an event that is whole.
func await(ctx context.Context, s *queue.Queue, from uint64, eventsMax, bytesMax int) ([]queue.Entry, error) {
	for {
		if err := s.Wait(ctx, from); err != nil {
			return nil, err
		}
		entries, end, err := s.Read(ctx, from, eventsMax, bytesMax)
		if err != nil || len(entries) > 0 {
			return entries, err
		}
		from = end // all of it was lost

		// What follows may never come, so what is lost must not wait for it.
		if err := s.Ack(s.Frontier() - 1); err != nil {
			return nil, err
		}
	}
}
