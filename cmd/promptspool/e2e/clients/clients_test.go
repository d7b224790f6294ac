//go:build linux

package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
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

	"github.com/google/go-cmp/cmp"

	"promptspool/cmd/promptspool/e2e/harness"
)

// clientCall is a call for a provider's client to make.
type clientCall struct {
	Name     string         `json:"name"`
	Provider string         `json:"provider"`
	Kwargs   map[string]any `json:"kwargs"`
}

// TestTheProvidersOwnClientsTakeLLMKwargs makes every call of the goldens of llm_kwargs
// with the client that the provider publishes, and compares what the client sends with
// what it was given.
func TestTheProvidersOwnClientsTakeLLMKwargs(t *testing.T) {
	t.Parallel()
	calls := goldenCalls(t)
	var mu sync.Mutex
	sent := make(map[string]map[string]any)
	listener := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		content, _ := io.ReadAll(r.Body)
		var body map[string]any
		if err := json.Unmarshal(content, &body); err != nil {
			t.Errorf("%s: the client sent to %s: %s", name, path, content)
		}
		mu.Lock()
		sent[name] = body
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest) // nobody reads the answer, and every client knows this one
		_, _ = io.WriteString(w, `{"message":"no model here"}`)
	}))
	listener.Config.Protocols = new(http.Protocols)
	listener.Config.Protocols.SetHTTP1(true)
	listener.Config.Protocols.SetUnencryptedHTTP2(true) // Amazon's client speaks nothing else
	listener.Start()
	defer listener.Close()

	input, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	node := exec.CommandContext(ctx, "node", "clients.mjs", listener.URL)
	node.Dir = harness.NPMModules(t, "testdata/clients")
	node.Stdin = bytes.NewReader(input)
	out, err := node.Output()

	var errors map[string]string
	if err == nil {
		err = json.Unmarshal(out, &errors)
	}
	if err != nil {
		t.Fatalf("node: %v\n%s", err, out)
	}

	if cmp.Equal(any(onTheWire(calls[0])), plain(sent[calls[1].Name])) {
		t.Errorf("%s and %s are taken for the same; the comparison does not work", calls[0].Name, calls[1].Name)
	}
	for _, c := range calls {
		got, ok := sent[c.Name]
		if !ok {
			t.Errorf("%s: the client sent nothing: %s", c.Name, errors[c.Name])
			continue
		}
		if diff := cmp.Diff(any(onTheWire(c)), plain(got)); diff != "" {
			t.Errorf("%s: what was given and what was sent (-given +sent):\n%s", c.Name, diff)
		}
	}
}

// goldenCalls returns the goldens of llm_kwargs.
func goldenCalls(t *testing.T) []clientCall {
	t.Helper()
	const dir = "../../../../registry/render/testdata/kwargs"
	files, err := filepath.Glob(dir + "/*.golden")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d goldens, error %v", len(files), err)
	}

	var calls []clientCall
	for _, file := range files {
		c := clientCall{Name: strings.TrimSuffix(filepath.Base(file), ".golden")}
		if c.Name == "anthropic-completion" { // its newest client has no text completions any more
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, c.Name+".json"))
		if err == nil {
			err = json.Unmarshal(content, &c)
		}
		if err == nil {
			content, err = os.ReadFile(file)
		}
		if err == nil {
			err = json.NewDecoder(bytes.NewReader(content)).Decode(&c.Kwargs) // warnings follow
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		calls = append(calls, c)
	}
	return calls
}

// onTheWire returns the body in which a client sends its arguments: as they are, with a
// few exceptions.
func onTheWire(c clientCall) map[string]any {
	body := maps.Clone(c.Kwargs)
	switch {
	case c.Provider == "amazon.bedrock": // in the URL
		delete(body, "modelId")
	// Google: the model is in the URL, the names are in camel case, and some of the
	// configuration is beside it.
	case body["generation_config"] != nil:
		config := camel(body["generation_config"]).(map[string]any)
		contents := body["contents"]
		if contents == nil {
			contents = body["history"]
		}
		body = map[string]any{"contents": camel(contents), "generationConfig": config}
		for _, name := range []string{"systemInstruction", "tools", "toolConfig"} {
			if v, ok := config[name]; ok {
				body[name] = v
				delete(config, name)
			}
		}
	}

	return body
}

// plain removes what clients add by themselves, and writes the types of schemas in lower
// case, as they were given.
func plain(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for name, value := range v {
			kind, isText := value.(string)
			switch {
			case name == "stream" && value == false,
				name == "prefix" && value == false,
				name == "index" && value == 0.0:
				delete(v, name)
			case name == "type" && isText:
				v[name] = strings.ToLower(kind)
			default:
				v[name] = plain(value)
			}
		}
	}

	return v
}

// camel turns names into camel case, except those that the caller chose.
func camel(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = camel(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, value := range v {
			parts := strings.Split(name, "_")
			for i := 1; i < len(parts); i++ {
				parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
			}
			if !slices.Contains([]string{"function_declarations", "args", "response"}, name) {
				value = camel(value)
			}
			out[strings.Join(parts, "")] = value
		}
		return out
	}

	return v
}
