//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"promptspool/api/wire"
)

// crowd is many sidecars played by this process, each with a connection of its own,
// against a real server.
type crowd struct {
	t      testing.TB
	server *node
	zstd   *zstd.Encoder
	turned atomic.Int64 // answers 429 and 503
}

func newCrowd(t testing.TB, server *node) *crowd {
	encoder, err := zstd.NewWriter(nil,
		zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(1<<20),
		zstd.WithEncoderLevel(zstd.SpeedFastest),
	)
	if err != nil {
		t.Fatal(err)
	}
	return &crowd{t: t, server: server, zstd: encoder}
}

// batch returns a packed batch of requests, each with a prompt of promptBytes.
func (c *crowd) batch(events, promptBytes int) []byte {
	text := strings.Repeat("all work and no play ", promptBytes/21+1)[:promptBytes]
	e := wire.Event{
		ID:         wire.NewID(),
		Kind:       wire.KindRequest,
		RequestID:  wire.NewID(),
		AcceptedAt: time.Now(),
		Sidecar:    "one of many",
		Body: json.RawMessage(`{"function_name":"f","kwargs":{"prompt":"` + text + `"},` +
			`"request_response":{},"request_start_time":1,"request_end_time":2}`),
	}

	line := e.AppendLine(nil) // made once: only the ids differ
	idAt, requestAt := bytes.Index(line, []byte(e.ID)), bytes.Index(line, []byte(e.RequestID))
	plain := make([]byte, 0, events*len(line))
	for range events {
		copy(line[idAt:], wire.NewID())
		copy(line[requestAt:], wire.NewID())
		plain = append(plain, line...)
	}
	return c.zstd.EncodeAll(plain, nil)
}

// send delivers one batch, and retries as the server asks. It reports whether the batch
// was taken before ctx ended.
func (c *crowd) send(ctx context.Context, client *http.Client, key string, events int, batch []byte) bool {
	for wait := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}

		url := "http://" + c.server.addr + "/sync/events"
		req, err := http.NewRequestWithContext(ctx, "POST", url, bytes.NewReader(batch))
		if err != nil {
			c.t.Error(err)
			return false
		}
		req.Header.Set("X-API-KEY", key)
		req.Header.Set("Content-Encoding", "zstd")
		res, err := client.Do(req)
		if err != nil {
			wait = 100 * time.Millisecond
			continue
		}

		var answer wire.BatchAnswer
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		switch {
		case err != nil:
			wait = 100 * time.Millisecond
		case res.StatusCode == 200:
			if json.Unmarshal(body, &answer) != nil || answer.Accepted+answer.Duplicate != events {
				c.t.Errorf("of %d events: %s", events, body)
			}
			return true
		case res.StatusCode == 429 || res.StatusCode == 503:
			c.turned.Add(1)
			seconds, err := strconv.Atoi(res.Header.Get("Retry-After"))
			if err != nil || seconds < 1 {
				c.t.Errorf("%d without a Retry-After: %s", res.StatusCode, body)
				return false
			}
			wait = time.Duration(seconds) * time.Second
		default:
			c.t.Errorf("%d %s", res.StatusCode, body)
			return false
		}
	}
}

// ownClient returns the client of one sidecar, with a bound of its connections.
func ownClient(t testing.TB, connections int) *http.Client {
	transport := &http.Transport{
		MaxConnsPerHost:     connections,
		MaxIdleConnsPerHost: connections,
		DialContext:         (&net.Dialer{}).DialContext,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: comparing(transport)}
}

// storm lets sidecars connect together and deliver a few events each: half of them with
// the first key, the others with the remaining keys in turn. It returns how long the
// sidecars of each key took, the quickest first.
func (c *crowd) storm(keys []string, sidecars, events int, patience time.Duration) [][]time.Duration {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var mu sync.Mutex // of took
	took := make([][]time.Duration, len(keys))
	gate := make(chan struct{})

	var wait sync.WaitGroup
	for i := range sidecars {
		client, batch, key := ownClient(c.t, 1), c.batch(events, 1000), 0
		if i%2 == 1 && len(keys) > 1 {
			key = 1 + i/2%(len(keys)-1)
		}
		wait.Go(func() {
			<-gate
			begun := time.Now()
			if !c.send(ctx, client, keys[key], events, batch) {
				c.t.Errorf("sidecar %d did not get through within %v", i, patience)
			}
			mu.Lock()
			took[key] = append(took[key], time.Since(begun))
			mu.Unlock()
			client.CloseIdleConnections()
		})
	}

	close(gate)
	wait.Wait()

	for _, t := range took {
		slices.Sort(t)
	}
	return took
}

// watchMemory watches a process's own memory, without the pages of the files that it
// maps. The function that it returns ends this and returns the peak.
func watchMemory(t testing.TB, n *node) (most func() int64) {
	stop, result := make(chan struct{}), make(chan int64, 1)
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		peak := int64(0)
		for {
			peak = max(peak, memoryOf(t, n, "RssAnon"))
			select {
			case <-stop:
				result <- peak
				return
			case <-tick.C:
			}
		}
	}()

	return func() int64 {
		close(stop)
		return <-result
	}
}

// loadedServerBytesMax bounds a server's own memory under these loads.
const loadedServerBytesMax = 512 << 20

func TestThousandsOfSidecarsThatComeBackAtOnceAllGetThrough(t *testing.T) {
	t.Parallel()
	sidecars, modest := 1000, 2
	long := soak(t, 1) > 0
	if long {
		sidecars, modest = 3000, 15
	}
	server := startPlainServer(t, "127.0.0.1:0")
	keys := accountKeys(t, server, 1+modest)
	c, memory := newCrowd(t, server), watchMemory(t, server)
	const events = 5
	took := c.storm(keys, sidecars, events, 60*time.Second)
	peak, all := memory(), slices.Sorted(slices.Values(slices.Concat(took...)))
	t.Logf("%d sidecars with %d events each: median %v, last %v, %d turned away, %d MiB of memory",
		sidecars, events, all[len(all)/2], all[len(all)-1], c.turned.Load(), peak>>20)

	greedy := took[0]
	t.Logf("half of them with one key: median %v, last %v", greedy[len(greedy)/2], greedy[len(greedy)-1])
	for k, times := range took {
		if n := server.totalOf(keys[k], map[string]any{}); n != len(times)*events {
			t.Errorf("of key %d %d records arrived, of %d", k, n, len(times)*events)
		}

		median := times[len(times)/2]
		if k > 0 {
			t.Logf("%d of them with another: median %v, last %v", len(times), median, times[len(times)-1])
		}

		// Nobody waits because another key has more sidecars. Only the long form checks
		// it: it runs alone, and other tests would take turns at the processor.
		if long && median > greedy[len(greedy)/2]*3/2 {
			t.Errorf("the %d sidecars of key %d took %v, those of the greedy one %v",
				len(times), k, median, greedy[len(greedy)/2])
		}
	}

	if peak > loadedServerBytesMax {
		t.Errorf("the server had %d MiB of memory", peak>>20)
	}
}

// shares lets a greedy key and some modest ones deliver as fast as the server takes, and
// returns how many of the batches it took of each. The batches are made before: the
// server must be what is short of time.
func (c *crowd) shares(keys []string, greedy, modest, batches int, patience time.Duration) []int64 {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()

	counts, stocks := make([]atomic.Int64, len(keys)), make([]chan []byte, len(keys))
	for k := range keys {
		stocks[k] = make(chan []byte, batches+greedy)
		for range cap(stocks[k]) {
			stocks[k] <- c.batch(100, 16000)
		}
	}

	var wait sync.WaitGroup
	var all atomic.Int64
	for k, key := range keys {
		senders := modest
		if k == 0 {
			senders = greedy
		}
		client := ownClient(c.t, senders)
		for range senders {
			wait.Go(func() {
				for c.send(ctx, client, key, 100, <-stocks[k]) {
					counts[k].Add(1)
					if all.Add(1) == int64(batches) {
						cancel()
					}
				}
			})
		}
	}

	wait.Wait()
	taken := make([]int64, len(keys))
	for k := range counts {
		taken[k] = counts[k].Load()
	}
	return taken
}

// accountKeys makes keys, each of an account of its own.
func accountKeys(t *testing.T, server *node, count int) []string {
	t.Helper()
	keys := make([]string, count)
	for i := range keys {
		out, errs, code := runCommand(t, nil, "keys", "create", "--data", server.data,
			"--account", fmt.Sprint("account-", i), "--scope", "full", "-o", "json")
		var key struct{ Key string }
		if err := json.Unmarshal([]byte(out), &key); err != nil || code != 0 || key.Key == "" {
			t.Fatalf("keys create: %d %v\n%s%s", code, err, out, errs)
		}
		keys[i] = key.Key
	}
	return keys
}

func TestAGreedyKeyDoesNotStarveTheOthers(t *testing.T) {
	t.Parallel()
	server := startPlainServer(t, "127.0.0.1:0")
	c, memory := newCrowd(t, server), watchMemory(t, server)
	taken := c.shares(accountKeys(t, server, 4), 24, 4, 80, time.Minute)

	peak := memory()
	total := int64(0)
	for _, n := range taken {
		total += n
	}

	t.Logf("taken: %v; %d turned away; %d MiB of memory", taken, c.turned.Load(), peak>>20)
	// By connections the greedy one would have 24 of 36, and each other 11 %. Beside
	// other tests, which take turns at the processor, the check is only that nobody
	// starves. The long form, which runs alone, checks the shares themselves, and so do
	// the tests of Turns in package api.
	least := int64(5)
	if os.Getenv("PROMPTSPOOL_SOAK") != "" {
		least = 18
	}

	for k, n := range taken[1:] {
		if n*100 < total*least {
			t.Errorf("modest key %d has %d of %d batches", k+1, n, total)
		}
	}

	if peak > loadedServerBytesMax {
		t.Errorf("the server had %d MiB of memory", peak>>20)
	}
}

func BenchmarkSidecarsThatComeBackAtOnce(b *testing.B) {
	for range b.N {
		server := beginPlain(b, b.TempDir(), "127.0.0.1:0", "server", "--name", "central")
		if !server.takes() {
			b.Fatal("the server does not start")
		}
		const sidecars, events = 5000, 5
		begun := time.Now()
		c, memory := newCrowd(b, server), watchMemory(b, server)
		took := c.storm([]string{adminKey}, sidecars, events, 2*time.Minute)[0]

		b.ReportMetric(sidecars*events/time.Since(begun).Seconds(), "events/s")
		b.ReportMetric(took[sidecars/2].Seconds(), "s-median")
		b.ReportMetric(took[sidecars-1].Seconds(), "s-last")
		b.ReportMetric(float64(c.turned.Load()), "turned-away")
		b.ReportMetric(float64(memory()>>20), "MiB-memory")
		server.kill()
	}
}
