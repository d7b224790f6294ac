package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"promptspool/api/client"
	"promptspool/api/ops"
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

// An earlier bootstrap key works until it is revoked, so people must learn of it.
func TestAnEarlierBootstrapKeyIsLogged(t *testing.T) {
	data, key := t.TempDir(), wire.Secret(clockKey)
	for _, c := range []struct {
		key  wire.Secret
		want int
	}{{key, 0}, {key, 0}, {key + "2", 1}, {key + "3", 2}} {
		var log bytes.Buffer
		role := anyPort(data, "central")
		role.logger = slog.New(slog.NewTextHandler(&log, nil))
		_, stop := startRole(t, func(ctx context.Context, ready func(addresses)) error {
			return server(ctx, serverConfig{
				roleConfig:   role,
				bootstrapKey: c.key,
				prices:       prices.BuiltIn(),
				ready:        func(at addresses, _ wire.Secret) { ready(at) },
			})
		})
		stop()
		if got := strings.Count(log.String(), "an earlier bootstrap key still works"); got != c.want {
			t.Errorf("%d are logged, want %d: %s", got, c.want, log.String())
		}
	}
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
			len(record.Scores) == 1 && record.Scores[0].Number == float64(value)
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

// line is the network between a sidecar and its server, which can be cut.
type line struct {
	role
	cut atomic.Bool
}

func lineTo(t *testing.T, server role) *line {
	t.Helper()
	l := &line{role: role{t: t}}
	pass := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: server.addr})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.cut.Load() {
			panic(http.ErrAbortHandler) // the connection ends without an answer
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	l.addr = strings.TrimPrefix(front.URL, "http://")

	return l
}

// with returns the status of a call with a key, and the id in the answer.
func (r role) with(key, path, body string) (status int, id string) {
	r.t.Helper()
	req, err := http.NewRequest("POST", "http://"+r.addr+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("X-API-KEY", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()

	var answer struct {
		ID string `json:"request_id"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, answer.ID
}

// A sidecar is cut off for a day. Meanwhile one key ends, one is rotated, one is revoked; one has
// no right to score, which the sidecar cannot know.
func TestASidecarThatWasCutOffDeliversWhatItsKeysCouldLog(t *testing.T) {
	var passed atomic.Int64 // time, for both
	now := func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	after := func(d time.Duration) { passed.Store(int64(d)) }

	serverData, data := t.TempDir(), t.TempDir()
	server, _ := startRole(t, func(ctx context.Context, ready func(addresses)) error {
		return server(ctx, serverConfig{
			roleConfig:   anyPort(serverData, "central"),
			bootstrapKey: clockKey,
			prices:       prices.BuiltIn(),
			now:          now,
			ready:        func(at addresses, _ wire.Secret) { ready(at) },
		})
	})
	control := func(method, path string, body, answer any) {
		t.Helper()
		if err := ops.Control(t.Context(), serverData, method, path, body, answer); err != nil {
			t.Fatal(err)
		}
	}
	create := func(scope wire.Scope, life time.Duration) (k ops.CreatedKey) {
		t.Helper()
		n := ops.NewKey{NewKey: wire.NewKey{Account: "default", Scope: scope}}
		if life > 0 {
			n.ExpiresAt = new(now().Add(life))
		}
		control("POST", "/keys", n, &k)
		return k
	}

	good, ends := create(wire.ScopeApp, 0), create(wire.ScopeApp, 12*time.Hour)
	rotated, revoked := create(wire.ScopeApp, 0), create(wire.ScopeApp, 0)
	logs := create(wire.ScopeLog, 0)

	line := lineTo(t, server)
	sidecar, _ := sidecarWithClock(t, data, line.role, now)
	const request = `{"function_name":"f","kwargs":{},"request_response":{},` +
		`"request_start_time":1,"request_end_time":2}`
	logged := func(k ops.CreatedKey) (id string) {
		t.Helper()
		status, id := sidecar.with(k.Secret, "/track-request", request)
		if status != http.StatusOK {
			t.Fatalf("a call with the key %s is answered %d", k.ID, status)
		}
		return id
	}
	var there, absent []string
	for _, k := range []ops.CreatedKey{good, ends, rotated, revoked} {
		there = append(there, logged(k))
	}
	server.arrives(there...)

	line.cut.Store(true)
	after(time.Hour)
	there = append(there, logged(good), logged(ends), logged(rotated), logged(logs))
	held := logged(revoked)
	scored := fmt.Sprintf(`{"request_id":%q,"score":1}`, there[0])
	if status, _ := sidecar.with(logs.Secret, "/rest/track-score", scored); status != http.StatusOK {
		t.Fatalf("a score on trust is answered %d", status)
	}

	// The operator works at the server meanwhile.
	var next ops.RotatedKey
	control("POST", "/keys/rotate", ops.Rotation{ID: rotated.ID, Overlap: 2 * time.Hour}, &next)
	control("DELETE", "/keys/"+revoked.ID, nil, new(wire.Key))
	after(6 * time.Hour)
	there = append(there, logged(ends), logged(next.CreatedKey))
	absent = append(absent, logged(rotated), held)
	after(24 * time.Hour)
	if status, _ := sidecar.with(ends.Secret, "/track-request", request); status != http.StatusUnauthorized {
		t.Errorf("a key that has ended is answered %d", status)
	}
	there = append(there, logged(good))

	// What could be logged arrives, and the rest is where a person finds it.
	line.cut.Store(false)
	server.arrives(there...)
	var lanes struct {
		Items []struct {
			Lane   string `json:"lane"`
			Kind   string `json:"kind"`
			Of     string `json:"request_id"`
			Reason string `json:"reason"`
		} `json:"items"`
	}
	server.waitsFor(func() bool {
		list := say(t, "dead", "list", "--data", data, "-o", "json")
		if err := json.Unmarshal([]byte(list.Out), &lanes); err != nil {
			t.Fatalf("%v: %+v", err, list)
		}
		return len(lanes.Items) == 3
	}, func() string { return fmt.Sprintf("in the lanes are %+v; want three", lanes.Items) })

	want := map[string]string{
		"dead score " + there[0]:    "the key " + logs.ID + " has the scope log, and may not score",
		"dead request " + absent[0]: "the key " + rotated.ID + " expired on ",
		"held request " + absent[1]: "This API key was revoked.",
	}
	for _, e := range lanes.Items {
		reason, ok := want[e.Lane+" "+e.Kind+" "+e.Of]
		if !ok || !strings.HasPrefix(e.Reason, reason) {
			t.Errorf("%s: %s of %s, for %q", e.Lane, e.Kind, e.Of, e.Reason)
		}
	}
	for _, id := range absent {
		if server.call("GET", "/api/public/v2/requests/"+id, nil, new(wire.Record)) {
			t.Errorf("the server has the request %s", id)
		}
	}

	// Another key of the project delivers what its own could not.
	replayed := say(t, "dead", "replay", "--data", data, "--all", "--lane", "dead",
		"--key-file", written(t, "key", good.Secret))
	if replayed.Code != 0 {
		t.Errorf("%+v", replayed)
	}
	server.arrives(absent[0])
	server.scored(there[0], 1, 2)
}

// arrives waits until the server has these requests.
func (r role) arrives(ids ...string) {
	r.t.Helper()
	for _, id := range ids {
		r.waitsFor(func() bool { return r.call("GET", "/api/public/v2/requests/"+id, nil, new(wire.Record)) },
			func() string { return "the request " + id + " does not arrive" })
	}
}
