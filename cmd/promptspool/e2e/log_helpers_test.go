//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics/parts"
)

// How long a helper may make an app wait, in milliseconds, whatever the sidecar does: an ordinary
// call, and any call on a busy machine.
const (
	helperWaitMedian = 5.0
	helperWaitMax    = 2000.0
)

// pageHelper is the logging helper of a page, and an app that uses it.
type pageHelper struct {
	page, program, file, app string
	calls                    int // that the app makes, of which one cannot be logged
}

var pageHelpers = []pageHelper{
	{"log-python", "python3", "spool.py", "case.py", 7},
	{"log-javascript", "node", "spool.mjs", "case.mjs", 5},
}

// helped is what became of an app with a helper.
type helped struct {
	MedianMS  float64 `json:"median_ms"`
	SlowestMS float64 `json:"slowest_ms"`
	IDs       []string
	stderr    string
	took      time.Duration
}

// run runs the app beside a sidecar. It sends more writes beyond its calls.
func (h pageHelper) run(t *testing.T, sidecar, key string, more int) (did helped) {
	t.Helper()
	dir := t.TempDir()
	app, err := os.ReadFile("testdata/helpers/" + h.app)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{h.app: string(app)}
	for _, e := range examplesOf(h.page) {
		if e.rest == h.file {
			files[h.file] = e.code
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	cmd := exec.CommandContext(t.Context(), h.program, h.app, fmt.Sprint(more))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PROMPTSPOOL_SIDECAR="+sidecar)
	if key != "" {
		cmd.Env = append(cmd.Env, "PROMPTSPOOL_KEY="+key)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	began := time.Now()
	out, err := cmd.Output()
	did.stderr, did.took = stderr.String(), time.Since(began)
	if err != nil {
		t.Fatalf("%s fails because of logging: %v\n%s", h.app, err, did.stderr)
	}
	if err := json.Unmarshal(out, &did); err != nil {
		t.Fatalf("%s printed %s: %v", h.app, out, err)
	}

	return did
}

// taken are the requests that a sidecar was sent, by id.
type taken struct {
	sync.Mutex
	requests map[string]map[string]any
}

// ServeHTTP is a sidecar that takes what it is sent.
func (s *taken) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, `{"success":false,"message":"The body is not JSON."}`, 400)
		return
	}
	s.Lock()
	defer s.Unlock()
	if r.URL.Path == "/track-request" {
		s.requests[fmt.Sprint(body["request_id"])] = body
	}
	_, _ = io.WriteString(w, `{"success":true}`)
}

func TestTheHelpersOfThePagesLogEveryShapeOfACall(t *testing.T) {
	t.Parallel()
	parts.Need(t, "python3", "node")
	for _, h := range pageHelpers {
		s := &taken{requests: map[string]map[string]any{}}
		sidecar := httptest.NewServer(s)
		t.Cleanup(sidecar.Close)
		did := h.run(t, sidecar.URL, adminKey, 0)

		// Twenty are only timed. The app has no id of the call that failed.
		if len(s.requests) != h.calls-1+20 || len(did.IDs) != h.calls-1 {
			t.Errorf("%s: %d of %d calls arrived\n%s", h.page, len(s.requests), h.calls, did.stderr)
		}
		streams, failures := 0, 0
		for id, r := range s.requests {
			if _, err := wire.ParseID(id); err != nil {
				t.Errorf("%s: the id %s: %v", h.page, id, err)
			}
			if chunks, ok := r["request_response"].([]any); ok {
				streams += len(chunks)
			}
			if r["status"] == "ERROR" && r["error_message"] == "the model is overloaded" {
				failures++
			}
		}
		if want := map[string]int{"log-python": 5, "log-javascript": 3}[h.page]; streams != want || failures != 1 {
			t.Errorf("%s: %d chunks, want %d, and %d failures", h.page, streams, want, failures)
		}
		if lines := strings.Count(did.stderr, "\n"); lines != 1 {
			t.Errorf("%s: it reports not just the call that cannot be logged:\n%s", h.page, did.stderr)
		}
	}
}

func TestTheHelpersOfThePagesNeverHoldUpAnApp(t *testing.T) {
	t.Parallel()
	parts.Need(t, "python3", "node")
	// It holds each call until its caller gives up.
	hang := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not see the caller leave
		<-r.Context().Done()
	}
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}

	for name, c := range map[string]struct {
		handler http.HandlerFunc
		key     string
		more    int
		says    string
	}{
		"hangs":       {hang, adminKey, 0, "did not take it in time"},
		"hangs, full": {hang, adminKey, 1100, "the queue is full"},
		"is a page":   {answer(200, "<html>Sign in</html>"), adminKey, 0, "did not take it in time"},
		"lies":        {answer(200, `{"success":false}`), adminKey, 0, "did not take it in time"},
		"no key": {
			answer(401, `{"success":false,"message":"The key is missing."}`), "", 0, "The key is missing.",
		},
		"away": {nil, adminKey, 0, "did not take it in time"},
	} {
		for _, h := range pageHelpers {
			t.Run(name+"/"+h.page, func(t *testing.T) {
				t.Parallel()
				url := "http://127.0.0.1:1"
				if c.handler != nil {
					sidecar := httptest.NewServer(c.handler)
					t.Cleanup(sidecar.Close)
					url = sidecar.URL
				}

				did := h.run(t, url, c.key, c.more)
				if did.MedianMS > helperWaitMedian || did.SlowestMS > helperWaitMax {
					t.Errorf("calls waited %.1f ms for their logging, one %.1f ms", did.MedianMS, did.SlowestMS)
				}
				if !strings.Contains(did.stderr, c.says) {
					t.Errorf("it does not report %q:\n%s", c.says, did.stderr)
				}
				if did.took > 15*time.Second {
					t.Errorf("the process ended after %s", did.took)
				}
			})
		}
	}
}
