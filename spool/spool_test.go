package spool_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"promptspool/spool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a spool in dir and closes it after the test. Other settings may be given as functions.
func open(t testing.TB, dir string, settings ...func(*spool.Config)) *spool.Spool {
	t.Helper()
	s, err := tryOpen(dir, settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeSpool(t, s) })
	return s
}

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

func TestAnAcknowledgedEventIsInTheCopyOfTheDisk(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	want := numbered(20)
	appendAll(t, s, 7, want...)

	after := open(t, copyDir(t, dir))
	wantTexts(t, after, want)
	if st := after.Status(); st.Gaps != 0 || st.Events != 20 || st.Next != 21 {
		t.Fatalf("status %+v", st)
	}
	appendAll(t, after, 7, "event 21")
	wantTexts(t, after, numbered(21))
}

func TestTheSpoolSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, generationBytes(1000))
	appendAll(t, s, 7, numbered(20)...)
	wantTexts(t, s, numbered(20))
	closeSpool(t, s)
	s = open(t, dir)
	wantTexts(t, s, numbered(20))
}

var _ = bytes.Equal
var _ = errors.Is
var _ = os.Remove
var _ = strings.Cut
