package render_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/registry/render"
)

// prepare checks a blueprint and prepares it.
func prepare(t rapid.TB, blueprint, metadata string) *render.Prepared {
	t.Helper()
	checked, faults := render.Check(json.RawMessage(blueprint))
	if len(faults) > 0 {
		t.Fatalf("%s: %v", blueprint, faults)
	}
	p, err := render.Prepare(checked, json.RawMessage(metadata))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sameAsAnew compares the results of Kwargs, the first time and by a plan if there is
// one, with the result without plans.
func sameAsAnew(t rapid.TB, p *render.Prepared, c render.Call) {
	t.Helper()
	want, wantWarnings, wantErr := p.Anew(c)
	space := []byte("left behind by the earlier call")

	for range 2 {
		got, warnings, err := p.Kwargs(c)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || !slices.Equal(warnings, wantWarnings) {
			t.Fatalf("%+v: got %q, %v, want %q, %v", c, warnings, err, wantWarnings, wantErr)
		}
		// A value may keep its escapes.
		if string(got) != string(want) && cmp.Diff(decoded(t, want), decoded(t, got)) != "" {
			t.Fatalf("%+v:\n got %s\nwant %s", c, got, want)
		}
		c.Buffer = &space
	}
}

func decoded(t rapid.TB, raw json.RawMessage) (v any) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return v
}

func TestAPlanMakesWhatIsMadeWithoutOne(t *testing.T) {
	plain := []string{"{a}", "{b}", "word", " ", "{{}}", "é"}
	words := []string{
		"{a}", "{b}", "{a}{b}", "{gone}", "{{}}", "{a!r}", "{b.c}", "{a:>5}", "{", " ", "\n", "\"", "\\", "é",
		"\u2028", "<b>", "\ue000", "\ue0000\ue001", "Human:", `{{"x": 1}}`, "word",
	}
	values := []string{
		`"x"`, `""`, `" "`, `"\n\nHuman: {a}"`, `"a\"b\\c\u00e9\ud83d\ude00\ud800"`, "\"\u2028<&>\"", `{"c":1}`,
		`[1,"2"]`, `1`, `-0`, `1.50`, `1e300`, `true`, `null`, `"{\"json\":1}"`,
	}
	roles := []string{"system", "user", "user", "assistant", "tool", "developer", "function", "placeholder"}

	planned, all := 0, 0
	scene := func(t *rapid.T) {
		words := words
		if rapid.Bool().Draw(t, "plain") {
			words = plain
		}
		text := func(name string) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 6).Draw(t, name), "")
		}
		var messages []any
		for i := range rapid.IntRange(1, 3).Draw(t, "messages") {
			m := map[string]any{
				"role": rapid.SampledFrom(roles).Draw(t, "role"), "name": "a", "tool_call_id": "1",
			}
			var content []any
			for range rapid.IntRange(0, 2).Draw(t, "blocks") {
				content = append(content, map[string]any{"type": "text", "text": text("text")})
			}

			m["content"] = append([]any{}, content...)
			if i == 0 && rapid.IntRange(0, 9).Draw(t, "picture") == 0 {
				image := map[string]any{"url": "https://x/" + text("url")}
				m["content"] = []any{map[string]any{"type": "image_url", "image_url": image}}
			}
			if rapid.IntRange(0, 9).Draw(t, "format") == 0 {
				m["template_format"] = "jinja2"
			}
			messages = append(messages, m)
		}

		blueprint := map[string]any{"type": "chat", "messages": append([]any{}, messages...)}
		if rapid.IntRange(0, 9).Draw(t, "completion") == 0 {
			block := map[string]any{"type": "text", "text": text("text")}
			blueprint = map[string]any{"type": "completion", "content": []any{block}}
		}

		raw, err := json.Marshal(blueprint)
		if err != nil {
			t.Fatal(err)
		}

		checked, faults := render.Check(raw)
		if faults != nil {
			return // jinja2 with a feature that it lacks
		}
		p, err := render.Prepare(checked, json.RawMessage(
			`{"model":{"provider":"openai","name":"gpt-4o","parameters":{"stop":"{a}","top_k":3}}}`))
		if err != nil {
			t.Fatal(err)
		}

		for range rapid.IntRange(1, 4).Draw(t, "calls") {
			c := render.Call{
				Provider: rapid.SampledFrom(append(render.Providers(), "", "nobody")).Draw(t, "provider"),
				Model:    rapid.SampledFrom([]string{"", "m"}).Draw(t, "model"),
			}
			if rapid.IntRange(0, 9).Draw(t, "filled") > 0 {
				c.Variables = map[string]json.RawMessage{}
				for _, name := range []string{"a", "b"} {
					if rapid.IntRange(0, 9).Draw(t, "given") > 0 {
						c.Variables[name] = json.RawMessage(rapid.SampledFrom(values).Draw(t, name))
					}
				}
			}

			sameAsAnew(t, p, c)
			if all++; p.Planned(c) {
				planned++
			}
		}
	}

	for range 10 {
		rapid.Check(t, scene)
	}
	if planned < all/10 {
		t.Errorf("of %d calls %d were planned: the test compares little", all, planned)
	}
}

// Which calls are planned is listed here, or the test above could compare a thing with
// itself.
func TestWhatIsPlanned(t *testing.T) {
	const plain = `{"role":"system","content":"You are {who}. {{}}"},` +
		`{"role":"user","content":"{what}, says {who}"},{"role":"assistant","content":null}`
	vars := raw("who", `"Ann"`, "what", `1`)

	for _, c := range []struct {
		name, messages string
		call           render.Call
		want           bool
	}{
		{"variables in texts", plain, render.Call{Variables: vars}, true},
		{"all as it was written", plain, render.Call{}, true},
		{"another model", plain, render.Call{Variables: vars, Model: "m"}, true},
		{"a variable that is missing", plain, render.Call{Variables: raw("who", `"Ann"`)}, false},
		{"an object", plain, render.Call{Variables: raw("who", `"Ann"`, "what", `{}`)}, false},
		{"overrides", plain, render.Call{Variables: vars, Overrides: raw("top_p", `1`)}, false},
		{"too much text", plain,
			render.Call{Variables: raw("who", `"`+strings.Repeat("x", 10<<20)+`"`, "what", `1`)}, false},
		{"a placeholder", plain + `,{"role":"placeholder","name":"who"}`, render.Call{Variables: vars}, false},
		{"the result of a tool, which may be JSON",
			plain + `,{"role":"tool","tool_call_id":"1","content":"a {who}"}`, render.Call{Variables: vars}, false},
		{"a text that may become empty", `{"role":"user","content":" {who}"}`, render.Call{Variables: vars}, false},
		{"a field with a format", `{"role":"user","content":"a {who:>9}"}`, render.Call{Variables: vars}, false},
		{"a text that looks like a hole",
			`{"role":"user","content":"a {who} ` + "\ue0000\ue001" + `"}`, render.Call{Variables: vars}, false},
	} {
		p := prepare(t, chat(c.messages), `{"model":{"provider":"openai","name":"gpt-4o"}}`)
		if got := p.Planned(c.call); got != c.want {
			t.Errorf("%s: planned is %v", c.name, got)
		}
		sameAsAnew(t, p, c.call)
	}
}

func TestPlansAreBoundedAndMadeAtTheSameTime(t *testing.T) {
	p := prepare(t, chat(`{"role":"user","content":"`+strings.Repeat("Long. ", 1000)+`{who}"}`), `null`)
	var callers sync.WaitGroup
	for i := range 64 {
		callers.Go(func() {
			c := render.Call{Provider: "openai", Model: fmt.Sprint("m", i%16), Variables: raw("who", `"Ann"`)}
			got, _, err := p.Kwargs(c)
			want, _, _ := p.Anew(c)
			if err != nil || string(got) != string(want) {
				t.Errorf("%s, %v, want %s", got, err, want)
			}
		})
	}

	callers.Wait()
	planned := 0
	for i := range 16 {
		if p.Planned(render.Call{Provider: "openai", Model: fmt.Sprint("m", i), Variables: raw("who", `"Ann"`)}) {
			planned++
		}
	}
	if planned != 2 {
		t.Errorf("%d plans of 6 KB are kept, want two: there is space for twice as many bytes as the blueprint has",
			planned)
	}
}
