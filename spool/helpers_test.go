package spool_test

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

	"promptspool/spool"
	"promptspool/spool/disktest"
)

// leavesBehind, in the environment, tells a process that its test may leave goroutines behind.
const leavesBehind = "PROMPTSPOOL_TEST_LEAVES_BEHIND"

// inOwnProcess reports whether this is a process of the test's own, in which it may leave
// goroutines behind, because a spool that failed leaves its databases open. Elsewhere it runs the
// test in one.
func inOwnProcess(t *testing.T) bool {
	t.Helper()
	if os.Getenv(leavesBehind) != "" {
		return true
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=5m", "-test.v")
	child.Env = append(os.Environ(), leavesBehind+"=1")
	if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" ") {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// TestMain looks for goroutines that were left behind. Badger leaves these when it fails to open a damaged folder; a
// database of ours that is not closed leaves others as well.
func TestMain(m *testing.M) {
	disktest.Main()
	if os.Getenv(leavesBehind) != "" {
		os.Exit(m.Run())
	}
	if dir := os.Getenv("PROMPTSPOOL_TEST_DISK"); dir != "" {
		if err := writeUntilStopped(dir); err != nil {
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

// open opens a spool in dir and closes it after the test. Other settings may be given as functions.
func open(t testing.TB, dir string, settings ...func(*spool.Config)) *spool.Spool {
	t.Helper()
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

func tryOpen(dir string, settings ...func(*spool.Config)) (*spool.Spool, error) {
	c := spool.Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, set := range settings {
		set(&c)
	}
	return spool.Open(c)
}

func closeSpool(t testing.TB, s *spool.Spool) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func generationBytes(n int64) func(*spool.Config) {
	return func(c *spool.Config) { c.GenerationBytes = n }
}

func bytesMax(n int64) func(*spool.Config) { return func(c *spool.Config) { c.BytesMax = n } }

func appendAll(t testing.TB, s *spool.Spool, key uint32, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := s.Append(t.Context(), key, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
}

// readAll reads everything from the frontier to the newest event.
func readAll(t testing.TB, s *spool.Spool) []spool.Entry {
	t.Helper()
	var all []spool.Entry
	newest, _ := s.Newest()
	for from := s.Frontier(); from <= newest; {
		ctx, cancel := context.WithCancel(t.Context())
		entries, err := s.Read(ctx, from, 100, 1<<20)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entries...)
		from = entries[len(entries)-1].Seq + 1
	}
	return all
}

func texts(entries []spool.Entry) []string {
	var texts []string
	for _, e := range entries {
		texts = append(texts, string(e.Data))
	}
	return texts
}

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
	if s, ok := running.Load(dir); ok { // a copy is not of one moment: nothing may be moved during it
		s.(*spool.Spool).Rest()
	}
	target := filepath.Join(t.TempDir(), "copy")
	if out, err := exec.Command("cp", "-a", "--sparse=always", dir, target).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	return target
}

func wantTexts(t testing.TB, s *spool.Spool, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, texts(readAll(t, s))); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
}

// limitChecks keeps rapid to n checks, unless the command line says how many: its 100 spend many seconds in fsync.
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
