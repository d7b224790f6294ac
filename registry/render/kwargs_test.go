package render_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/registry/render"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestKwargs takes each file of testdata/kwargs through Check, Prepare and Kwargs and
// compares the result with the .golden file beside it: llm_kwargs, then the warnings.
func TestKwargs(t *testing.T) {
	files, err := filepath.Glob("testdata/kwargs/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases found: %v", err)
	}

	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			got := kwargsOf(t, file)
			golden := strings.TrimSuffix(file, ".json") + ".golden"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func kwargsOf(t *testing.T, file string) []byte {
	t.Helper()
	var c struct {
		Provider, Model      string
		Blueprint, Metadata  json.RawMessage
		Variables, Overrides map[string]json.RawMessage
	}

	content, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(content, &c)
	}
	if err != nil {
		t.Fatal(err)
	}

	blueprint, faults := render.Check(c.Blueprint)
	faults = append(faults, render.CheckMetadata(c.Metadata)...)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	p, err := render.Prepare(blueprint, c.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	kwargs, warnings, err := p.Kwargs(render.Call{
		Provider:  c.Provider,
		Model:     c.Model,
		Variables: c.Variables,
		Overrides: c.Overrides,
	})
	if err != nil {
		t.Fatal(err)
	}

	var indented bytes.Buffer
	if err := json.Indent(&indented, kwargs, "", "  "); err != nil {
		t.Fatal(err)
	}
	for _, w := range warnings {
		indented.WriteString("\n" + w)
	}
	indented.WriteByte('\n')
	return indented.Bytes()
}

func TestWhatAProviderCannotExpressIsRefused(t *testing.T) {
	user := func(block string) string {
		return chat(`{"role":"user","content":[{"type":"text","text":"x"},` + block + `]}`)
	}
	const (
		first  = "prompt_template.messages[0].content[0]"
		second = "prompt_template.messages[0].content[1]"
		tool   = "prompt_template.tools[0]"
	)

	for _, c := range []struct{ name, provider, blueprint, metadata, field string }{
		{"a provider that is not known", "acme", chat(``), `null`, "provider"},
		{"another API of the provider", "openai", chat(``), `{"model":{"api_type":"images"}}`, "api_type"},
		{"a block that is neither text nor image", "openai",
			user(`{"type":"thinking","thinking":"x"}`), `null`, second},
		{"a block of an unknown type", "openai", user(`{"type":"hologram"}`), `null`, second},
		{"an image in a message that is not the user's", "openai",
			chat(`{"role":"system","content":[{"image_url":{"url":"x"}},{"text":"x"}]}`), `null`, first},
		{"a tool that is no function", "openai",
			`{"messages":[],"tools":[{"type":"web_search","name":"w"}]}`, `null`, tool},
		{"audio by url", "openai",
			user(`{"type":"media","media":{"type":"audio/mpeg","url":"https://x/a.mp3"}}`), `null`, second},
		{"an image of the assistant, in a response", "openai",
			chat(`{"role":"assistant","content":[{"image_url":{"url":"x"}}]}`),
			`{"model":{"provider":"openai","api_type":"responses"}}`, first},
		{"audio", "anthropic", user(`{"type":"media","media":{"type":"audio/mpeg","url":"x"}}`), `null`, second},
		{"thinking that is not signed", "anthropic",
			chat(`{"role":"assistant","content":[{"type":"thinking","thinking":"x"}]}`), `null`, first},
		{"an item of a response", "anthropic", user(`{"type":"shell_call"}`), `null`, second},
		{"an image among the system's texts", "anthropic",
			chat(`{"role":"system","content":[{"text":"x"},{"image_url":{"url":"x"}}]}`), `null`, second},
		{"arguments that are no object", "anthropic",
			chat(`{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"[1"}}]}`),
			`null`, "prompt_template.messages[0]"},
		{"a tool of another provider", "anthropic",
			`{"messages":[],"tools":[{"type":"web_search","name":"t","provider":"openai","config":{}}]}`, `null`, tool},
		{"a tool that it does not have", "anthropic",
			`{"messages":[],"tools":[{"type":"image_generation","name":"t","provider":"anthropic","config":{}}]}`,
			`null`, tool},
		{"a choice that it does not have", "anthropic",
			`{"messages":[],"tools":[{"function":{"name":"f"}}],"tool_choice":"sometimes"}`,
			`null`, "prompt_template.tool_choice"},
		{"the result of a function that nobody called", "mistral",
			chat(`{"role":"function","name":"f","content":"x"}`), `null`, "prompt_template.messages[0]"},
		{"the result of a call that nobody made", "google",
			chat(`{"role":"tool","tool_call_id":"1","content":"x"}`), `null`, "prompt_template.messages[0]"},
		{"a search result", "google", user(`{"type":"web_search_tool_result","tool_use_id":"1"}`), `null`, second},
		{"an image as the result of a tool", "google",
			chat(`{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":""}}]},` +
				`{"role":"tool","tool_call_id":"1","content":[{"image_url":{"url":"x"}}]}`),
			`null`, "prompt_template.messages[1].content[0]"},
		{"a shell", "google", `{"messages":[],"tools":[{"type":"shell","name":"t","config":{}}]}`, `null`, tool},
		{"a built-in tool", "mistral",
			`{"messages":[],"tools":[{"type":"web_search","name":"t","config":{}}]}`, `null`, tool},
		{"video", "mistral", user(`{"type":"media","media":{"type":"video/mp4","url":"x"}}`), `null`, second},
		{"an image that is not in S3", "amazon.bedrock",
			user(`{"image_url":{"url":"https://x/a.png"}}`), `null`, second},
		{"no tool at all", "amazon.bedrock",
			`{"messages":[],"tools":[{"function":{"name":"f"}}],"tool_choice":"none"}`,
			`null`, "prompt_template.tool_choice"},
		{"a PDF", "cohere", user(`{"type":"media","media":{"type":"application/pdf","url":"x"}}`), `null`, second},
		{"an image in a completion", "openai",
			`{"type":"completion","content":[{"type":"image_url","image_url":{"url":"x"}}]}`,
			`null`, "prompt_template.content[0]"},
	} {
		kwargs, _, err := kwargs(t, c.blueprint, c.metadata, render.Call{Provider: c.provider})
		if kwargs != "" || !wire.IsCode(err, wire.CodeInvalid) || wire.AsError(err).Fields[0].Field != c.field {
			t.Errorf("%s: %s, error %v; want a 422 on %s", c.name, kwargs, err, c.field)
		}
	}
}

func TestOverridesAndModels(t *testing.T) {
	for name, value := range map[string]string{
		"api_key": `"x"`, "baseURL": `"x"`, "base_url": `"x"`, "extra_headers": `{}`, "aws_session_token": `"x"`,
		"httpOptions": `{}`, "dangerouslyAllowBrowser": `true`, "defaultHeaders": `{}`,
		"generation_config": `{"temperature":1,"http_options":{"base_url":"x"}}`,
		"generationConfig":  `{"httpOptions":{}}`,
	} {
		for _, provider := range render.Providers() {
			got, _, err := kwargs(t, chat(``), `null`, render.Call{Provider: provider, Overrides: raw(name, value)})
			field := "model_parameter_overrides." + name
			if got != "" || !wire.IsCode(err, wire.CodeInvalid) ||
				!strings.HasPrefix(wire.AsError(err).Fields[0].Field, field) {
				t.Errorf("%s, %s=%s: %s, %v", provider, name, value, got, err)
			}
		}
	}

	const claude = `{"model":{"provider":"anthropic","name":"claude-x"}}`
	for provider, want := range map[string]string{
		"google":   `{"history":[],"generation_config":{}}`,
		"vertexai": `{"model":"claude-x","max_tokens":4096,"messages":[]}`,
	} {
		got, _, err := kwargs(t, chat(``), claude, render.Call{Provider: provider})
		if err != nil || got != want {
			t.Errorf("a Claude on %s: %s, error %v; want %s", provider, got, err, want)
		}
	}

	const metadata = `{"model":{"provider":"openai","name":"a","parameters":{"model":"b","n":1}}}`
	overrides := raw("n", `2`, "x", `{"token":1}`)
	got, _, err := kwargs(t, chat(``), metadata, render.Call{Model: "c", Overrides: overrides})
	if want := `{"model":"c","messages":[],"n":2,"x":{"token":1}}`; err != nil || got != want {
		t.Errorf("%s, error %v; want %s", got, err, want)
	}
}
