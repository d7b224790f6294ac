//go:build linux

package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/metrics/partstest"
)

// How long a helper may make an app wait, in milliseconds, whatever the sidecar does: an ordinary
// call, and any call on a busy machine.
const (
	helperWaitMedian = 5.0
	helperWaitMax    = 2000.0
)

// pageHelper is the logging helper of a page, and an app that uses it.
type pageHelper struct {
	page, file, app string
	compile         string // the app and the helper, if they must be
	run             string
	calls           int      // that the app makes, of which one cannot be logged
	chunks          int      // that its streams give
	logs            []string // what is in the requests, of values that JSON does not know
}

var pageHelpers = []pageHelper{
	{
		page: "log-python", file: "spool.py", app: "case.py", run: "python3 case.py", calls: 7, chunks: 5,
		logs: []string{`"when":"2026-01-02T00:00:00"`, `"data":"AP8="`, `"response_format":"Pydantic"`,
			`"request_response":{"answer":"from pydantic"}`},
	},
	{
		page: "log-javascript", file: "spool.mjs", app: "case.mjs", run: "node case.mjs", calls: 6, chunks: 3,
		logs: []string{`"when":"1970-01-01T00:00:00.000Z"`, `"data":"eA=="`, `"n":"10"`, `"set":[1]`, `"call":"call"`},
	},
	{
		page: "log-go", file: "spool.go", app: "case.go.txt", run: "./case", calls: 7, chunks: 3,
		compile: "go build -o case spool.go case.go",
		logs:    []string{`"when":"2026-01-02T00:00:00Z"`, `"data":"AP8="`, `"Data":"eA=="`},
	},
}

// prepare writes the app and the helper, as the page shows it, into a folder.
func (h pageHelper) prepare(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	app, err := os.ReadFile("testdata/helpers/" + h.app)
	if err != nil {
		t.Fatal(err)
	}
	// An app in Go has a name that makes it no file of the module.
	files := map[string]string{strings.TrimSuffix(h.app, ".txt"): string(app)}
	for _, e := range harness.ExamplesOf(h.page) {
		if e.Rest == h.file {
			files[h.file] = e.Code
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if h.compile != "" {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", h.compile)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}

	return dir
}

// writes returns how many writes the app makes beside those that it is told to.
func (h pageHelper) writes() int { return h.calls + timedCalls + 1 } // and a score

// timedCalls are the app's last calls, which are only timed.
const timedCalls = 20

// helped is what became of an app with a helper.
type helped struct {
	MedianMS  float64 `json:"median_ms"`
	SlowestMS float64 `json:"slowest_ms"`
	IDs       []string
	stderr    string
	left      time.Duration // from its last line until it ended
}

// printed is what an app printed, and when.
type printed struct {
	text []byte
	at   time.Time
}

func (p *printed) Write(text []byte) (int, error) {
	p.text, p.at = append(p.text, text...), time.Now()
	return len(text), nil
}

// runs runs the app beside a sidecar. It sends more writes of a size beyond its calls.
func (h pageHelper) runs(t *testing.T, dir, sidecar, key string, more, size int) (did helped, err error) {
	args := append(strings.Fields(h.run), fmt.Sprint(more), fmt.Sprint(size))
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PROMPTSPOOL_SIDECAR="+sidecar)
	if key != "" {
		cmd.Env = append(cmd.Env, "PROMPTSPOOL_KEY="+key)
	}
	var stderr strings.Builder
	var out printed
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err = cmd.Run()
	did.stderr, did.left = stderr.String(), time.Since(out.at)
	if err != nil {
		return did, fmt.Errorf("%s fails because of logging: %w\n%s", h.app, err, did.stderr)
	}
	if err := json.Unmarshal(out.text, &did); err != nil {
		return did, fmt.Errorf("%s printed %s: %w", h.app, out.text, err)
	}

	return did, nil
}

// taken are the writes that a sidecar was sent: requests by id, and the requests of scores.
type taken struct {
	sync.Mutex
	requests map[string]map[string]any
	scores   []string
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
	switch id := fmt.Sprint(body["request_id"]); r.URL.Path {
	case "/track-request":
		s.requests[id] = body
	case "/rest/track-score":
		s.scores = append(s.scores, id)
	}
	_, _ = io.WriteString(w, `{"success":true}`)
}

func TestTheHelpersOfThePagesLogEveryShapeOfACall(t *testing.T) {
	t.Parallel()
	partstest.Need(t, "python3", "node")
	for _, h := range pageHelpers {
		s := &taken{requests: map[string]map[string]any{}}
		sidecar := httptest.NewServer(s)
		t.Cleanup(sidecar.Close)
		did, err := h.runs(t, h.prepare(t), sidecar.URL, harness.AdminKey, 0, 0)
		if err != nil {
			t.Fatal(err)
		}

		// The app has no id of the call that failed.
		if len(s.requests) != h.calls-1+timedCalls || len(did.IDs) != h.calls-1 {
			t.Errorf("%s: %d of %d calls arrived\n%s", h.page, len(s.requests), h.calls, did.stderr)
		}
		if len(s.scores) != 1 || s.requests[s.scores[0]] == nil {
			t.Errorf("%s: the scores of %q", h.page, s.scores)
		}

		chunks, failures := 0, 0
		for id, r := range s.requests {
			if _, err := wire.ParseID(id); err != nil {
				t.Errorf("%s: the id %s: %v", h.page, id, err)
			}
			if list, ok := r["request_response"].([]any); ok {
				chunks += len(list)
			}
			if r["status"] == "ERROR" && r["error_message"] == "the model is overloaded" {
				failures++
			}
		}
		if chunks != h.chunks || failures != 1 {
			t.Errorf("%s: %d chunks, want %d, and %d failures", h.page, chunks, h.chunks, failures)
		}

		sent, err := json.Marshal(s.requests)
		for _, text := range h.logs {
			if err != nil || !strings.Contains(string(sent), text) {
				t.Errorf("%s: no request has %s: %s", h.page, text, sent)
			}
		}
		// The call that cannot be logged, and the sum.
		isSum := strings.HasSuffix(did.stderr, "promptspool: 1 not logged in all\n")
		if strings.Count(did.stderr, "\n") != 2 || !isSum {
			t.Errorf("%s: it reports\n%s", h.page, did.stderr)
		}
	}
}

func TestTheHelpersOfThePagesNeverHoldUpAnApp(t *testing.T) {
	t.Parallel()
	partstest.Need(t, "python3", "node")
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
	breakOff := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(401)
		_, _ = io.WriteString(w, `{"success":false,`)
	}
	const tooLate, page = "did not take it in time", "<html>Sign in</html>"

	dirs := map[string]string{}
	for _, h := range pageHelpers {
		dirs[h.page] = h.prepare(t)
	}

	// Each app waits at its end for a sidecar that does not answer: most of the time the processor is idle.
	const sideBySide = 6
	var apps sync.WaitGroup
	turns := make(chan struct{}, sideBySide)
	for name, c := range map[string]struct {
		handler    http.HandlerFunc
		key        string
		more, size int
		says       string
	}{
		"hangs":        {hang, harness.AdminKey, 0, 0, tooLate},
		"hangs, many":  {hang, harness.AdminKey, 1100, 1, "the queue is full"},
		"hangs, large": {hang, harness.AdminKey, 70, 1 << 20, "the queue is full"},
		"is a page":    {answer(200, page), harness.AdminKey, 0, 0, tooLate},
		"breaks off":   {breakOff, harness.AdminKey, 0, 0, tooLate},
		"away":         {nil, harness.AdminKey, 0, 0, tooLate},
		"no key": {
			answer(401, `{"success":false,"message":"The key is missing."}`), "", 0, 0, "The key is missing.",
		},
	} {
		for _, h := range pageHelpers {
			name := name + "/" + h.page
			url := "http://127.0.0.1:1"
			if c.handler != nil {
				sidecar := httptest.NewServer(c.handler)
				t.Cleanup(sidecar.Close)
				url = sidecar.URL
			}

			apps.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()

				did, err := h.runs(t, dirs[h.page], url, c.key, c.more, c.size)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				t.Logf("%s: an ordinary call waits %.3f ms, the slowest %.1f ms; the process left after %s",
					name, did.MedianMS, did.SlowestMS, did.left)
				if did.MedianMS > helperWaitMedian || did.SlowestMS > helperWaitMax {
					t.Errorf("%s: calls waited %.1f ms for their logging, one %.1f ms",
						name, did.MedianMS, did.SlowestMS)
				}
				all := fmt.Sprintf("promptspool: %d not logged in all\n", h.writes()+c.more)
				if !strings.Contains(did.stderr, c.says) || !strings.HasSuffix(did.stderr, all) {
					t.Errorf("%s does not report %q and %q:\n%s", name, c.says, all, did.stderr)
				}
				if did.left > 15*time.Second {
					t.Errorf("%s: the process ended %s after its last line", name, did.left)
				}
			})
		}
	}
	apps.Wait()
}

// provider answers with a stream of two chunks, as OpenAI, or of three events, as Anthropic.
func provider(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	if r.URL.Path == "/v1/messages" {
		for _, event := range [][2]string{
			{"message_start", `"message":{"id":"m","content":[],"usage":{}}`},
			{"content_block_delta", `"index":0,"delta":{"type":"text_delta","text":"Hello"}`},
			{"message_stop", `"n":1`},
		} {
			fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s}\n\n", event[0], event[0], event[1])
		}
		return
	}
	for _, text := range []string{"He", "llo"} {
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", text)
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

func TestTheHelperOfThePageLogsTheStreamsOfRealPackages(t *testing.T) {
	t.Parallel()
	dir := harness.NPMModules(t, "testdata/sdk")
	script, err := os.ReadFile("testdata/helpers/packages.mjs")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"packages.mjs": string(script)}
	for _, e := range harness.ExamplesOf("log-javascript") {
		if e.Rest == "spool.mjs" {
			files[e.Rest] = e.Code
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	s := &taken{requests: map[string]map[string]any{}}
	sidecar, model := httptest.NewServer(s), httptest.NewServer(http.HandlerFunc(provider))
	t.Cleanup(sidecar.Close)
	t.Cleanup(model.Close)
	cmd := exec.CommandContext(t.Context(), "node", "packages.mjs", model.URL)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PROMPTSPOOL_KEY="+harness.AdminKey,
		"PROMPTSPOOL_SIDECAR="+sidecar.URL)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	var lengths []int
	for _, r := range s.requests {
		chunks, _ := r["request_response"].([]any)
		lengths = append(lengths, len(chunks))
	}
	slices.Sort(lengths)
	if !slices.Equal(lengths, []int{1, 2, 2, 3}) {
		t.Errorf("streams of %v chunks were logged", lengths)
	}
}
