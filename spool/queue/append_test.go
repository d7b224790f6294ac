package queue_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/metrics"
	"promptspool/spool/queue"
)

func TestConcurrentAppendsShareCommitsAndKeepOrder(t *testing.T) {
	const writers, each = 32, 20
	dir := t.TempDir()
	m := metrics.New("sidecar", "test")
	s := open(t, dir, func(c *queue.Config) { c.Metrics = m }, generationBytes(20_000))

	var wg sync.WaitGroup
	for w := range uint32(writers) {
		wg.Go(func() {
			for i := range each {
				if err := s.Append(w, []byte(fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()

	if got := commits(t, m); got >= writers*each {
		t.Errorf("%d appends made %d commits, so none was shared", writers*each, got)
	}

	check := func(s *queue.Queue) {
		t.Helper()
		all := readAll(t, s)
		if len(all) != writers*each {
			t.Fatalf("read %d events, appended %d", len(all), writers*each)
		}

		seen := make(map[uint32]int)
		for i, e := range all {
			if e.Seq != uint64(i+1) {
				t.Fatalf("event %d has sequence %d", i+1, e.Seq)
			}
			if string(e.Data) != fmt.Sprint(seen[e.Key]) {
				t.Fatalf("writer %d: %q came at place %d", e.Key, e.Data, seen[e.Key])
			}
			seen[e.Key]++
		}
	}

	check(s)
	check(open(t, copyDir(t, dir)))
}

// commits counts the commits that m has seen.
func commits(t *testing.T, m *metrics.Metrics) uint64 {
	t.Helper()
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "promptspool_spool_commit_events" {
			return f.GetMetric()[0].GetHistogram().GetSampleCount()
		}
	}
	t.Fatal("the metric for commits is missing")

	return 0
}

func TestTheCallerMayUseItsBytesAgain(t *testing.T) {
	s := open(t, t.TempDir())
	data := []byte("event 1")
	appendAll(t, s, 7)
	if err := s.Append(7, data); err != nil {
		t.Fatal(err)
	}
	copy(data, "XXXXX")
	wantTexts(t, s, numbered(1))
}

func TestWhatFitsInNoCommitIsRefused(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Append(7, make([]byte, 20<<20), make([]byte, 20<<20)); err == nil {
		t.Error("an append of 40 MiB succeeded")
	}
	if err := s.Append(7, make([][]byte, 5000)...); err == nil {
		t.Error("an append of 5,000 events succeeded")
	}
	if st := s.Status(); st.Events != 0 || st.Next != 1 {
		t.Errorf("status %+v", st)
	}
}

func TestKeyUsageFollowsAppendAndAck(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	appendAll(t, s, 1, "one", "two")
	appendAll(t, s, 2, "three")

	want := func(s *queue.Queue, key uint32, events int, bytes int64) {
		t.Helper()
		if e, b := s.KeyUsage(key); e != events || b != bytes {
			t.Errorf("key %d: %d events, %d bytes; want %d, %d", key, e, b, events, bytes)
		}
	}

	want(s, 1, 2, 6)
	want(s, 2, 1, 5)

	if err := s.Ack(2); err != nil {
		t.Fatal(err)
	}
	want(s, 1, 0, 0)

	closeSpool(t, s)
	s = open(t, dir)
	want(s, 1, 0, 0)
	want(s, 2, 1, 5)

	if diff := cmp.Diff([]uint32{2}, s.Keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestAppendAfterCloseIsRefused(t *testing.T) {
	s := open(t, t.TempDir())
	closeSpool(t, s)
	if err := s.Append(7, []byte("x")); !errors.Is(err, queue.ErrClosed) {
		t.Fatalf("append after Close: %v", err)
	}
	if err := s.Ack(0); !errors.Is(err, queue.ErrClosed) {
		t.Fatalf("ack after Close: %v", err)
	}
	if err := s.Bury(letter("why", queue.Entry{Seq: 1})); !errors.Is(err, queue.ErrClosed) {
		t.Fatalf("bury after Close: %v", err)
	}
}
