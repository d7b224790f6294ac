//go:build linux

package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
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

// Crowd is many sidecars played by this process, each with a connection of its own,
// against a real server.
type Crowd struct {
	t       testing.TB
	server  *Node
	encoder *zstd.Encoder
	Turned  atomic.Int64 // answers 429 and 503
}

// NewCrowd returns a crowd that calls a server.
func NewCrowd(t testing.TB, server *Node) *Crowd {
	encoder, err := zstd.NewWriter(nil,
		zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(1<<20),
		zstd.WithEncoderLevel(zstd.SpeedFastest),
	)
	if err != nil {
		t.Fatal(err)
	}
	return &Crowd{t: t, server: server, encoder: encoder}
}

// Batch returns a packed batch of requests, each with a prompt of promptBytes.
func (c *Crowd) Batch(events, promptBytes int) []byte {
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
	return c.encoder.EncodeAll(plain, nil)
}

// Send delivers one batch, and retries as the server asks. It reports whether the batch
// was taken before ctx ended.
func (c *Crowd) Send(ctx context.Context, client *http.Client, key string, events int, batch []byte) bool {
	for wait := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}

		url := "http://" + c.server.Addr + "/sync/events"
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
			c.Turned.Add(1)
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

// Storm lets sidecars connect together and deliver a few events each. Half of them have
// the first key, the others the remaining keys in turn. It returns how long the
// sidecars of each key took, the quickest first.
func (c *Crowd) Storm(keys []string, sidecars, events int, patience time.Duration) [][]time.Duration {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var mu sync.Mutex // of took
	took := make([][]time.Duration, len(keys))
	gate := make(chan struct{})

	var wait sync.WaitGroup
	for i := range sidecars {
		client, batch, key := OwnClient(c.t, 1), c.Batch(events, 1000), 0
		if i%2 == 1 && len(keys) > 1 {
			key = 1 + i/2%(len(keys)-1)
		}
		wait.Go(func() {
			<-gate
			begun := time.Now()
			if !c.Send(ctx, client, keys[key], events, batch) {
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

// OwnClient returns the client of one sidecar, with a bound of its connections.
func OwnClient(t testing.TB, connections int) *http.Client {
	transport := &http.Transport{
		MaxConnsPerHost:     connections,
		MaxIdleConnsPerHost: connections,
		DialContext:         (&net.Dialer{}).DialContext,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: Comparing(transport)}
}

// AccountKeys makes keys, each of an account of its own.
func AccountKeys(t *testing.T, server *Node, count int) []string {
	t.Helper()
	keys := make([]string, count)
	for i := range keys {
		out, errs, code := RunWith(t, nil, "keys", "create", "--data", server.Data,
			"--project", fmt.Sprint("account-", i), "--scope", "full", "-o", "json")
		var key struct{ Key string }
		if err := json.Unmarshal([]byte(out), &key); err != nil || code != 0 || key.Key == "" {
			t.Fatalf("keys create: %d %v\n%s%s", code, err, out, errs)
		}
		keys[i] = key.Key
	}
	return keys
}
