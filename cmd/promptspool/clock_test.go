package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/metrics"
	"promptspool/registry/prices"
)

// clockKey is the server's bootstrap key.
const clockKey = "a-bootstrap-key-of-more-than-thirty-two-characters"

// role is a server or a sidecar that runs in this process.
type role struct {
	t    *testing.T
	addr string // of its API
}

// startRole runs a role until stop is called, or the end of the test. run calls ready
// when it takes requests.
func startRole(t *testing.T, run func(ctx context.Context, ready func(addresses)) error) (r role, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	addr, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- run(ctx, func(at addresses) { addr <- at.api }) }()

	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	select {
	case a := <-addr:
		t.Cleanup(stop)
		return role{t, a}, stop
	case err := <-ended:
		t.Fatal("the role did not start: ", err)
		return role{}, nil
	}
}

// anyPort is a role that listens where the system likes.
func anyPort(data, name string) roleConfig {
	free, quiet := config.Address{At: "127.0.0.1:0"}, slog.New(slog.DiscardHandler)
	return roleConfig{data: data, name: name, listen: free, opsListen: free, logger: quiet}
}

// serverWithoutFlags runs a server whose clock is the machine's.
func serverWithoutFlags(t *testing.T) role {
	t.Helper()
	r, _ := startRole(t, func(ctx context.Context, ready func(addresses)) error {
		return server(ctx, serverConfig{
			roleConfig:   anyPort(t.TempDir(), "central"),
			bootstrapKey: clockKey,
			prices:       prices.BuiltIn(),
			ready:        func(at addresses, _ wire.Secret) { ready(at) },
		})
	})
	return r
}

// sidecarWithClock runs a sidecar with a clock of its own.
func sidecarWithClock(t *testing.T, data string, upstream role, now func() time.Time) (r role, stop func()) {
	t.Helper()
	return startRole(t, func(ctx context.Context, ready func(addresses)) error {
		return sidecar(ctx, sidecarConfig{
			roleConfig:    anyPort(data, "pod-clock"),
			upstream:      "http://" + upstream.addr,
			spoolBytesMax: 1 << 30,
			diskMax:       2 << 30,
			drain:         5 * time.Second,
			now:           now,
			ready:         ready,
		})
	})
}

// call sends a request, and decodes a 200 response into v. It returns false for any other
// status.
func (r role) call(method, path string, body, v any) bool {
	r.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		r.t.Fatal(err)
	}

	req, err := http.NewRequest(method, "http://"+r.addr+path, bytes.NewReader(text))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("X-API-KEY", clockKey)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()

	if res.StatusCode != http.StatusOK {
		return false
	}
	if err := json.NewDecoder(res.Body).Decode(v); err != nil {
		r.t.Fatal(err)
	}
	return true
}

// track sends a write and returns the request's id, if any.
func (r role) track(path string, body any) string {
	r.t.Helper()
	var answer struct {
		ID string `json:"request_id"`
	}
	if !r.call("POST", path, body, &answer) {
		r.t.Fatal(path, " is not answered with 200")
	}
	return answer.ID
}

// request logs a call.
func (r role) request() string {
	r.t.Helper()
	return r.track("/rest/track-request", map[string]any{
		"function_name": "openai.ChatCompletion.create",
		"provider_type": "openai",
		"kwargs": map[string]any{
			"model": "gpt-4", "messages": []any{map[string]any{"role": "user", "content": "Hello"}},
		},
		"request_response":   map[string]any{"id": "x", "choices": []any{}},
		"request_start_time": 1687000000.25,
		"request_end_time":   1687000001.5,
	})
}

func (r role) score(id string, value int) {
	r.t.Helper()
	r.track("/rest/track-score", map[string]any{"request_id": id, "score": value})
}

// waitsFor waits for a condition, and fails with the message after two minutes.
func (r role) waitsFor(condition func() bool, message func() string) {
	r.t.Helper()
	deadline := time.After(2 * time.Minute) // a busy machine is no fault
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			r.t.Fatal(message())
		}
	}
}

// scored waits until a record has this many events and this one score.
func (r role) scored(id string, value, events int) {
	r.t.Helper()
	var record wire.Record
	r.waitsFor(func() bool {
		record = wire.Record{}
		return r.call("GET", "/api/public/v2/requests/"+id, nil, &record) && len(record.Events) == events &&
			len(record.Scores) == 1 && record.Scores[0].Score == value
	}, func() string { return fmt.Sprintf("want the score %d and %d events: %+v", value, events, record) })
}

func TestAcceptedTimesDoNotGoBackOverARestartWithAClockThatDoes(t *testing.T) {
	server, data := serverWithoutFlags(t), t.TempDir()
	first, stop := sidecarWithClock(t, data, server, nil)
	id := first.request()
	first.score(id, 10)
	server.scored(id, 10, 2)
	stop() // everything is delivered

	anHourAgo := func() time.Time { return time.Now().Add(-time.Hour) }
	second, _ := sidecarWithClock(t, data, server, anHourAgo)
	second.score(id, 20)
	if later := second.request(); later <= id {
		t.Errorf("the id %s was minted after %s", later, id)
	}
	server.scored(id, 20, 3)
}

func TestAClockThatDiffersFromTheServersIsLogged(t *testing.T) {
	anHourAhead := func() time.Time { return time.Now().Add(time.Hour) }
	upstream, err := client.New(client.Config{URL: "http://" + serverWithoutFlags(t).addr, Now: anHourAhead})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := upstream.Verdict(t.Context(), clockKey); err != nil {
		t.Fatal(err)
	}

	var log bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it looks once
	watch := watchSkew(upstream, metrics.New("sidecar", "test"), slog.New(slog.NewTextHandler(&log, nil)))
	if err := watch(ctx); err != nil || !strings.Contains(log.String(), "clock and the server's differ") {
		t.Errorf("the log does not report the clock: %v\n%s", err, log.String())
	}
}
