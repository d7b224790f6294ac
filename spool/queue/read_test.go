package queue_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/spool/queue"
)

type readResult struct {
	texts []string
	err   error
}

// parkedRead starts a Read from sequence 1 of an empty spool and returns when it waits.
func parkedRead(ctx context.Context, s *queue.Queue) <-chan readResult {
	result := make(chan readResult, 1)
	ctx, waits := queue.Parking(ctx)
	go func() {
		entries, err := await(ctx, s, 1, 10, 1000)
		result <- readResult{texts(entries), err}
	}()
	<-waits

	return result
}

func TestReadWaitsForAnAppend(t *testing.T) {
	s := open(t, t.TempDir())
	result := parkedRead(t.Context(), s)
	appendAll(t, s, 7, "event 1")
	want := readResult{texts: numbered(1)}
	if diff := cmp.Diff(want, <-result, cmp.AllowUnexported(readResult{})); diff != "" {
		t.Fatalf("result (-want +got):\n%s", diff)
	}
}

func TestReadEndsWithItsContextAndWithTheSpool(t *testing.T) {
	for want, end := range map[error]func(cancel func(), s *queue.Queue){
		context.Canceled: func(cancel func(), _ *queue.Queue) { cancel() },
		queue.ErrClosed:  func(_ func(), s *queue.Queue) { closeSpool(t, s) },
	} {
		s := open(t, t.TempDir())
		ctx, cancel := context.WithCancel(t.Context())
		result := parkedRead(ctx, s)
		end(cancel, s)
		if r := <-result; !errors.Is(r.err, want) {
			t.Errorf("read: %v, want %v", r.err, want)
		}
		cancel()
	}
}

func TestReadKeepsToItsBoundsButGivesOne(t *testing.T) {
	s := open(t, t.TempDir(), generationBytes(300))
	appendAll(t, s, 7, numbered(6)...) // 7 bytes each, a generation each

	for _, test := range []struct {
		name                string
		from                uint64
		eventsMax, bytesMax int
		want                []string
	}{
		{"by events", 1, 2, 1000, numbered(6)[:2]},
		{"by bytes", 2, 10, 20, numbered(6)[1:3]},
		{"one, however large", 3, 10, 1, numbered(6)[2:3]},
		{"to the end", 5, 10, 1000, numbered(6)[4:]},
	} {
		t.Run(test.name, func(t *testing.T) {
			entries, err := await(t.Context(), s, test.from, test.eventsMax, test.bytesMax)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, texts(entries)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
