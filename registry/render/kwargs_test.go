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

// TestKwargs takes each file of testdata/kwargs through Check, Prepare and Kwargs and compares with the .golden file beside it: llm_kwargs, then the warnings.
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
	kwargs, warnings, err := p.Kwargs(render.Call{Provider: c.Provider, Model: c.Model, Variables: c.Variables, Overrides: c.Overrides})
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
	for _, c := range []struct{ name, provider, blueprint, metadata, field string }{
		{"a provider that is not known", "acme", chat(``), `null`, "provider"},
		{"another API of the provider", "openai", chat(``), `{"model":{"api_type":"images"}}`, "api_type"},
		{"a block that is neither text nor image", "openai", user(`{"type":"thinking","thinking":"x"}`), `null`, "prompt_template.messages[0].content[1]"},
		{"a block of an unknown type", "openai", user(`{"type":"hologram"}`), `null`, "prompt_template.messages[0].content[1]"},
		{"an image in a message that is not the user's", "openai", chat(`{"role":"system","content":[{"image_url":{"url":"x"}},{"text":"x"}]}`), `null`, "prompt_template.messages[0].content[0]"},
		{"a tool that is no function", "openai", `{"messages":[],"tools":[{"type":"web_search","name":"w"}]}`, `null`, "prompt_template.tools[0]"},
		{"an image in a completion", "openai", `{"type":"completion","content":[{"type":"image_url","image_url":{"url":"x"}}]}`, `null`, "prompt_template.content[0]"},
	} {
		kwargs, _, err := kwargs(t, c.blueprint, c.metadata, render.Call{Provider: c.provider})
		if kwargs != "" || !wire.IsCode(err, wire.CodeInvalid) || wire.AsError(err).Fields[0].Field != c.field {
			t.Errorf("%s: %s, error %v; want a 422 on %s", c.name, kwargs, err, c.field)
		}
	}
}
