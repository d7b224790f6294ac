//go:build linux

package clients

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
)

// providers stands in for OpenAI and Anthropic: chat completions and messages, also
// streamed.
type providers struct {
	*httptest.Server
	mu    sync.Mutex
	calls []providerCall // under mu
}

// providerCall is a call of a provider's client.
type providerCall struct {
	Path     string
	Model    string
	Messages json.RawMessage
	Stream   bool

	Temperature float64
	MaxTokens   int `json:"max_tokens"`
}

func startProviders(t *testing.T) *providers {
	t.Helper()

	p := &providers{}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)

	return p
}

func (p *providers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := providerCall{Path: r.URL.Path}
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}

	p.mu.Lock()
	p.calls = append(p.calls, call)
	p.mu.Unlock()

	answer := map[bool]string{true: openAIStream, false: openAIAnswer}[call.Stream]
	if strings.HasSuffix(r.URL.Path, "/v1/messages") {
		answer = map[bool]string{true: anthropicStream, false: anthropicAnswer}[call.Stream]
	}
	w.Header().Set("Content-Type", map[bool]string{true: "text/event-stream", false: "application/json"}[call.Stream])
	_, _ = io.WriteString(w, answer)
}

// openAIChunk begins each event of OpenAI's stream.
const openAIChunk = `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"gpt-4o-answered",`

const (
	openAIAnswer = `{"id":"x","object":"chat.completion","created":1,"model":"gpt-4o-answered","choices":[{"index":0,` +
		`"message":{"role":"assistant","content":"hey"},"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`
	openAIStream = openAIChunk +
		`"choices":[{"index":0,"delta":{"role":"assistant","content":"he"},"finish_reason":null}]}` + "\n\n" +
		openAIChunk + `"choices":[{"index":0,"delta":{"content":"y"},"finish_reason":"stop"}]}` + "\n\n" +
		openAIChunk + `"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}` + `

data: [DONE]

`
	anthropicAnswer = `{"id":"m","type":"message","role":"assistant","model":"claude-answered",` +
		`"content":[{"type":"text","text":"hey"}],` +
		`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":4}}`
	anthropicStream = `event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude-answered",` +
		`"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hey"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":4}}

event: message_stop
data: {"type":"message_stop"}

`
)

// sdkRun is the result of a step of run.mjs.
type sdkRun struct {
	Value json.RawMessage
	Error string
	Said  []string // warnings, and attempts that failed
}

// ran is the value that the SDK's run returns.
type ran struct {
	RequestID string          `json:"request_id"`
	GroupID   string          `json:"group_id"`
	Blueprint json.RawMessage `json:"prompt_blueprint"`
}

// sdkRunner is a node with both SDKs in it.
type sdkRunner struct {
	t    *testing.T
	in   io.Writer
	out  *bufio.Scanner
	errs *strings.Builder
}

func startRunner(t *testing.T, sidecar *harness.Node, p *providers) *sdkRunner {
	t.Helper()

	r := &sdkRunner{t: t, errs: &strings.Builder{}}
	cmd := exec.CommandContext(t.Context(), "node", "run.mjs")
	cmd.Dir = harness.NPMModules(t, "testdata/sdk")
	cmd.Stderr = r.errs
	url := "http://" + harness.ComparingProxy(t, sidecar.Addr)
	cmd.Env = append(os.Environ(),
		"PROMPTLAYER_API_URL="+url, "PROMPTLAYER_BASE_URL="+url, "PROMPTLAYER_API_KEY="+harness.AdminKey,
		"OPENAI_BASE_URL="+p.URL+"/direct", "OPENAI_API_KEY=sk-not-a-key",
		"ANTHROPIC_BASE_URL="+p.URL+"/direct", "ANTHROPIC_API_KEY=sk-ant-not-a-key")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})

	r.in, r.out = in, bufio.NewScanner(out)
	r.out.Buffer(nil, 1<<20)

	return r
}

// phase has both SDKs do the steps of a phase. The results are named "old NAME" and "new
// NAME".
func (r *sdkRunner) phase(name string) map[string]sdkRun {
	r.t.Helper()

	if _, err := fmt.Fprintln(r.in, name); err != nil {
		r.t.Fatal(err)
	}
	var results map[string]sdkRun
	if !r.out.Scan() || json.Unmarshal(r.out.Bytes(), &results) != nil {
		r.t.Fatalf("%s: %s %v\n%s", name, r.out.Text(), r.out.Err(), r.errs)
	}
	for step, s := range results {
		if s.Error != "" || len(s.Said) > 0 {
			r.t.Errorf("%s, %s: %s %q", name, step, s.Error, s.Said)
		}
	}

	return results
}

func (s sdkRun) ran(t *testing.T) (r ran) {
	t.Helper()

	if err := json.Unmarshal(s.Value, &r); err != nil || r.RequestID == "" {
		t.Fatalf("the step returned %s: %v", s.Value, err)
	}

	return r
}

// TestThePublishedJavaScriptSDKsRunTemplates has promptlayer 1.0.46 and 1.3.6 run
// templates with the providers' own clients, unmodified and with nothing but the base URL
// set: with the server, without it, and when it is back with other provider base URLs.
func TestThePublishedJavaScriptSDKsRunTemplates(t *testing.T) {
	t.Parallel()

	p := startProviders(t)
	data := t.TempDir()
	serve := func(addr, via string) *harness.Node {
		return harness.Launch(t, data, addr, "server", "--name", "central",
			"--provider-base-url", "openai="+p.URL+via, "--provider-base-url", "anthropic="+p.URL+via)
	}
	server := serve("127.0.0.1:0", "/one")
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	runner := startRunner(t, sidecar, p)

	up := runner.phase("up")
	p.wants(t, "/one", 6)
	checkRuns(t, server, up, "openai", "openaiStreamed", "anthropic", "anthropicStreamed", "overridden")
	for _, sdk := range []string{"old", "new"} {
		tracked := up[sdk+" tracked"].ran(t)
		r := server.Record(tracked.RequestID, harness.Events(4))
		isGrouped := tracked.GroupID != "" && r.GroupIDs[0] == tracked.GroupID
		if r.Scores[0].Number != 77 || r.Metadata["plan"] != "pro" || r.Metadata["user"] != "ann" || !isGrouped {
			t.Errorf("%s: the tracked record: %+v", sdk, r)
		}
	}

	addr := server.Addr
	server.Stop()
	away := runner.phase("away")
	p.wants(t, "/one", 2)
	for _, sdk := range []string{"old", "new"} {
		list := string(away[sdk+" all"].Value)
		if !strings.Contains(list, `"run/openai"`) || !strings.Contains(list, `"run/anthropic"`) {
			t.Errorf("%s: without the server these templates are listed: %s", sdk, list)
		}
	}

	server = serve(addr, "/two")
	sidecar.Eventually(func() bool {
		ask := map[string]any{"label": "prod"}
		r := sidecar.Call("POST", "/prompt-templates/run/openai", ask, "X-API-KEY", harness.AdminKey)
		through, _ := r.JSON["provider_base_url"].(map[string]any)
		return through["url"] == p.URL+"/two"
	}, func() string { return "the sidecar does not hear of the other base URL" })
	back := runner.phase("back")
	p.wants(t, "/two", 1)
	checkRuns(t, server, away, "openai", "anthropicStreamed")
	checkRuns(t, server, back, "openai")
}

// wants checks the arguments that both SDKs sent since the last time, and that they came
// through the base URL.
func (p *providers) wants(t *testing.T, via string, each int) {
	t.Helper()

	p.mu.Lock()
	defer p.mu.Unlock()

	if len(p.calls) != 2*each {
		t.Errorf("the providers were called %d times, want %d", len(p.calls), 2*each)
	}
	for _, c := range p.calls {
		claude := strings.HasPrefix(c.Model, "claude-")
		path := via + map[bool]string{true: "/v1/messages", false: "/chat/completions"}[claude]
		known := c.Model == "gpt-4o" && c.Temperature == 0.5 ||
			c.Model == "claude-next" && c.MaxTokens == 9 ||
			c.Model == "claude-haiku-4-5" && c.MaxTokens == 4096
		if c.Path != path || !known || !strings.Contains(string(c.Messages), "Hi Ann") {
			t.Errorf("a provider was called with %+v %s, want it through %s", c, c.Messages, path)
		}
	}
	p.calls = nil
}

// checkRuns checks that the steps of both SDKs returned blueprints, and are at the server.
func checkRuns(t *testing.T, server *harness.Node, results map[string]sdkRun, steps ...string) {
	t.Helper()

	for _, sdk := range []string{"old ", "new "} {
		for _, step := range steps {
			run := results[sdk+step].ran(t)
			if b := string(run.Blueprint); !strings.Contains(b, "hey") || !strings.Contains(b, `"assistant"`) {
				t.Errorf("%s%s: its blueprint is %s", sdk, step, b)
			}

			name, answered := "run/openai", "gpt-4o-answered"
			if strings.HasPrefix(step, "anthropic") {
				name = "run/anthropic"
			}
			if step != "openai" && step != "openaiStreamed" {
				answered = "claude-answered"
			}
			r := server.Record(run.RequestID, func(wire.Record) bool { return true })
			isVersion := r.Prompt != nil && r.Prompt.Name == name && r.Prompt.Version != nil && *r.Prompt.Version == 1
			if !isVersion || r.Model != answered || r.Tokens == nil || *r.Tokens != 7 ||
				r.Tags[0] != "run" || !strings.Contains(string(r.Request), `"hey"`) {
				t.Errorf("%s%s: its record is %+v", sdk, step, r)
			}
		}
	}
}
