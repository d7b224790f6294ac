package admission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics"
)

// slowStore records one write after the other, so many bytes a second, and counts them by key.
type slowStore struct {
	perSecond int

	mu    sync.Mutex
	bytes map[string]int
	most  int           // bytes that were recorded at the same time
	now   int           // bytes that are being recorded
	disk  chan struct{} // full while one writes
}

func (s *slowStore) Record(_ context.Context, id wire.Identity, events []wire.Event) ([]wire.Result, error) {
	n := 0
	for _, e := range events {
		n += len(e.Body)
	}

	s.mu.Lock()
	s.now += n
	s.most = max(s.most, s.now)
	s.mu.Unlock()

	// A channel, because time does not advance in a bubble while a goroutine waits for a mutex.
	s.disk <- struct{}{}
	time.Sleep(time.Duration(n) * time.Second / time.Duration(s.perSecond))
	<-s.disk

	s.mu.Lock()
	s.now -= n
	s.bytes[id.KeyID] += n
	s.mu.Unlock()

	return make([]wire.Result, len(events)), nil
}

// load makes so many callers write batches of a key, one after the other, until a time. A caller
// that is refused retries after the time it was given.
func load(t *testing.T, r wire.Recorder, key string, callers, bytes int, until time.Time, wait *sync.WaitGroup) {
	batch := []wire.Event{{Body: make([]byte, bytes)}}
	for range callers {
		wait.Go(func() {
			for time.Now().Before(until) {
				_, err := r.Record(t.Context(), wire.Identity{KeyID: key}, batch)
				if e := (*wire.Error)(nil); errors.As(err, &e) {
					if e.RetryAfter <= 0 {
						t.Errorf("a refusal without Retry-After: %v", e)
						return
					}
					time.Sleep(e.RetryAfter)
				}
			}
		})
	}
}

func TestAGreedyKeyLeavesTheOthersTheirShare(t *testing.T) {
	for _, c := range []struct {
		name  string
		turns bool
		fair  bool
	}{
		{"with turns", true, true},
		{"without, as a control", false, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &slowStore{perSecond: 8 << 20, bytes: map[string]int{}, disk: make(chan struct{}, 1)}
			var r wire.Recorder = store
			if c.turns {
				r = NewWriteQueue(store, metrics.New("server", "test"))
			}

			var wait sync.WaitGroup
			until := time.Now().Add(2 * time.Minute)
			load(t, r, "greedy", 200, 1<<20, until, &wait)
			for i := range 4 {
				load(t, r, fmt.Sprint("modest ", i), 24, 1<<20, until, &wait)
			}
			wait.Wait()

			total := 0
			for _, n := range store.bytes {
				total += n
			}
			share := func(key string) float64 { return float64(store.bytes[key]) / float64(total) }
			if got := share("greedy"); (got < 0.30) != c.fair {
				t.Errorf("%s: the greedy key, of five, has %.0f %%", c.name, 100*got)
			}
			for i := range 4 {
				if got := share(fmt.Sprint("modest ", i)); (got > 0.15) != c.fair {
					t.Errorf("%s: modest key %d has %.0f %%", c.name, i, 100*got)
				}
			}
			if c.turns && store.most > recordingBytesMax {
				t.Errorf("%d bytes were recorded at once", store.most)
			}
		})
	}
}

func TestAKeyThatSendsLittleDoesNotWaitBehindOneThatSendsMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{perSecond: 8 << 20, bytes: map[string]int{}, disk: make(chan struct{}, 1)}
		queue := NewWriteQueue(store, metrics.New("server", "test"))
		var wait sync.WaitGroup
		load(t, queue, "greedy", 100, 1<<20, time.Now().Add(time.Minute), &wait)
		time.Sleep(10 * time.Second)

		small := []wire.Event{{Body: make([]byte, 1000)}}
		for range 10 {
			begun := time.Now()
			if _, err := queue.Record(t.Context(), wire.Identity{KeyID: "modest"}, small); err != nil {
				t.Fatal(err)
			}

			// It waits for what is being recorded, 16 MiB at 8 MiB/s, but not for the 84 MiB that
			// wait.
			if took := time.Since(begun); took > 2500*time.Millisecond {
				t.Errorf("it waited %v", took)
			}
		}
		wait.Wait()
	})
}

// A body of many megabytes takes seconds to read, of however many callers.
func TestASmallWriteNeverWaitsForALargeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reading := make(chan struct{})
		queue := NewWriteQueue(sizedRecorder(func(bytes int) {
			if bytes >= largeWriteBytes {
				<-reading
			}
		}), metrics.New("server", "test"))

		var wait sync.WaitGroup
		for i := range 10 {
			large := []wire.Event{{Body: make([]byte, wire.BodyBytesMax-1<<20)}}
			wait.Go(func() {
				id := wire.Identity{KeyID: fmt.Sprint("large ", i%2)}
				if _, err := queue.Record(t.Context(), id, large); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()

		begun := time.Now()
		small := []wire.Event{{Body: make([]byte, 1000)}}
		if _, err := queue.Record(t.Context(), wire.Identity{KeyID: "small"}, small); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("it waited %v", took)
		}
		close(reading)
		wait.Wait()
	})
}

// sizedRecorder calls itself with the bytes of each write.
type sizedRecorder func(bytes int)

func (r sizedRecorder) Record(_ context.Context, _ wire.Identity, events []wire.Event) ([]wire.Result, error) {
	r(len(events[0].Body))
	return make([]wire.Result, len(events)), nil
}

func TestAWriteThatWaitsTooLongIsRefusedAndDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		blocked := recorderFunc(func(context.Context) error {
			<-gate
			return nil
		})
		queue := NewWriteQueue(blocked, metrics.New("server", "test"))
		big := []wire.Event{{Body: make([]byte, recordingBytesMax)}}

		var wait sync.WaitGroup
		wait.Go(func() { _, _ = queue.Record(t.Context(), wire.Identity{KeyID: "a"}, big) })
		synctest.Wait()
		for range 3 {
			wait.Go(func() {
				_, err := queue.Record(t.Context(), wire.Identity{KeyID: "b"}, big)
				if e := wire.AsError(err); err == nil || e.Status() != 503 || e.RetryAfter <= 0 {
					t.Errorf("after %v: %v", writeWaitMax, err)
				}
			})
		}

		leaving, leave := context.WithCancel(t.Context())
		wait.Go(func() {
			if _, err := queue.Record(leaving, wire.Identity{KeyID: "c"}, big); err == nil {
				t.Error("the write of a caller who left was recorded")
			}
		})
		synctest.Wait()
		leave()

		time.Sleep(writeWaitMax + time.Second)
		close(gate)
		wait.Wait()
		if _, err := queue.Record(t.Context(), wire.Identity{KeyID: "d"}, big); err != nil {
			t.Errorf("the next write: %v", err)
		}
	})
}

// Of two keys that are refused, one has so many writes waiting that its own are in the way. The
// other is refused because the server records nothing.
func TestARefusalSaysWhetherItIsTheKeysOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{}, 1)
		queue := NewWriteQueue(recorderFunc(func(context.Context) error {
			<-gate
			return nil
		}), metrics.New("server", "test"))
		big := []wire.Event{{Body: make([]byte, recordingBytesMax)}}
		affected := func(key string) <-chan wire.Affected {
			answer := make(chan wire.Affected, 1)
			go func() {
				_, err := queue.Record(t.Context(), wire.Identity{KeyID: key}, big)
				if err != nil {
					answer <- wire.AsError(err).Affects
				}
			}()
			synctest.Wait()
			return answer
		}

		affected("a")
		affected("many")
		many, one := affected("many"), affected("one")
		gate <- struct{}{} // a's write ends, and the first of many is recorded
		if who := <-many; who != wire.AffectsKey {
			t.Errorf("the next of a key's own writes: %q", who)
		}
		if who := <-one; who != "" {
			t.Errorf("another key's only write: %q", who)
		}
		close(gate)
	})
}

type recorderFunc func(context.Context) error

func (f recorderFunc) Record(ctx context.Context, _ wire.Identity, events []wire.Event) ([]wire.Result, error) {
	return make([]wire.Result, len(events)), f(ctx)
}
