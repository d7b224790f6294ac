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

// TestKwargs takes each file of testdata/kwargs through Check, Fill and Kwargs and compares with the .golden file beside it.
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
	filled, _ := render.Fill(blueprint, c.Variables)
	kwargs, err := render.Kwargs(c.Provider, render.Call{Blueprint: filled, Metadata: c.Metadata, Model: c.Model, Overrides: c.Overrides})
	if err != nil {
		t.Fatal(err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, kwargs, "", "  "); err != nil {
		t.Fatal(err)
	}
	indented.WriteByte('\n')
	return indented.Bytes()
}

func TestWhatAProviderCannotExpressIsRefused(t *testing.T) {
	chat := func(members string) string { return `{"type":"chat",` + members + `}` }
	for _, c := range []struct{ name, provider, blueprint, metadata, field string }{
		{"a provider that is not known", "acme", chat(`"messages":[]`), `null`, "provider"},
		{"another API of the provider", "openai", chat(`"messages":[]`), `{"model":{"api_type":"responses"}}`, "api_type"},
		{"a block that is neither text nor image", "openai", chat(`"messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"thinking"}]}]`), `null`, "prompt_template.messages[0].content[1]"},
		{"images from a variable", "openai", chat(`"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":""},"image_variable":"v"}]}]`), `null`, "prompt_template.messages[0].content[0].image_variable"},
		{"a tool that is no function", "openai", chat(`"messages":[],"tools":[{"type":"web_search","name":"w"}]`), `null`, "prompt_template.tools[0]"},
		{"an image in a completion", "openai", `{"type":"completion","content":[{"type":"image_url","image_url":{"url":"x"}}]}`, `null`, "prompt_template.content[0]"},
	} {
		kwargs, err := render.Kwargs(c.provider, render.Call{Blueprint: json.RawMessage(c.blueprint), Metadata: json.RawMessage(c.metadata)})
		if kwargs != nil || !wire.IsCode(err, wire.CodeInvalid) || wire.AsError(err).Fields[0].Field != c.field {
			t.Errorf("%s: %s, error %v; want a 422 on %s", c.name, kwargs, err, c.field)
		}
	}
}
