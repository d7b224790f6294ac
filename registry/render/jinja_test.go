package render_test

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/registry/render"
)

// renderJinja renders a text by itself.
func renderJinja(template string, vars map[string]json.RawMessage) (string, []string, error) {
	j, err := render.ParseJinja(template)
	if err != nil {
		return "", nil, err
	}
	return j.Render(vars)
}

// differs are texts of jinja.json of which we make something else than Jinja, and what.
var differs = map[string]string{
	"{{ 10 ** 30 }}": "makes an integer beyond 64 bits",
	"{{ big + 1 }}":  "has an integer + an integer, which cannot be calculated",
}

func TestWhatJinjaMakesOfEachText(t *testing.T) {
	content, err := os.ReadFile("testdata/jinja.json") // written by Jinja itself: see jinja.py
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Variables map[string]json.RawMessage
		Cases     [][2]*string
	}
	if err := json.Unmarshal(content, &golden); err != nil {
		t.Fatal(err)
	}
	for _, c := range golden.Cases {
		template, want := *c[0], c[1]
		got, _, err := renderJinja(template, golden.Variables)
		if other, ok := differs[template]; ok {
			if err != nil && err.Error() != other || err == nil && got != other {
				t.Errorf("%q became %q, error %v; want %q", template, got, err, other)
			}
			continue
		}
		switch {
		case err != nil && strings.Contains(err.Error(), "mistake in promptspool"):
			t.Errorf("%q: %v", template, err)
		case want == nil && err == nil:
			t.Errorf("%q became %q; Jinja raises", template, got)
		case want != nil && err != nil:
			t.Errorf("%q: error %v; Jinja makes %q", template, err, *want)
		case want != nil && got != *want:
			t.Errorf("%q became\n%q; Jinja makes\n%q", template, got, *want)
		}
	}
}

func TestWhatIsNotThereIsEmptyAndNamedWhereItIsWritten(t *testing.T) {
	for _, c := range []struct {
		template, want string
		variables      []string
		missing        []string
	}{
		{"{{ a }}{{ gone }}{{ a ~ gone2 }}", "AA", []string{"a", "gone", "gone2"}, []string{"gone", "gone2"}},
		{"{{ m.k }}{{ m.none }}{{ m['none2'].x }}{{ gone.x.y }}", "v", []string{"m", "gone"}, []string{"m.none", "m.none2", "gone"}},
		{"{% if gone %}x{% endif %}{{ gone is defined }}{{ gone|default('d') }}{{ gone or 'e' }}{{ a if gone else '' }}", "Falsede", []string{"gone", "a"}, nil},
		{"{% for x in gone %}{{ x }}{% endfor %}{% for k, v in m.items() %}{{ k }}{{ v }}{{ loop.index }}{% endfor %}", "kv1", []string{"gone", "m"}, []string{"gone"}},
		{"{% set b = a %}{{ b }}{% with c = b %}{{ c }}{% endwith %}{{ c }}{{ range(2)|list }}", "AA[0, 1]", []string{"a", "c"}, []string{"c"}},
		{"{{ m.items }}{{ m.keys }}", "", []string{"m"}, []string{"m.items", "m.keys"}},
	} {
		j, err := render.ParseJinja(c.template)
		if err != nil {
			t.Fatal(c.template, err)
		}
		got, missing, err := j.Render(raw("a", `"A"`, "m", `{"k":"v"}`))
		if err != nil || got != c.want || !cmp.Equal(missing, c.missing) || !cmp.Equal(j.Variables(), c.variables) {
			t.Errorf("%s became %q, error %v, missing %q of %q; want %q, missing %q of %q", c.template, got, err, missing, j.Variables(), c.want, c.missing, c.variables)
		}
	}
}

func TestWhatOnlyAWholeJinjaHasIsFoundByName(t *testing.T) {
	for text, want := range map[string]string{
		"a\n{% macro f() %}{% endmacro %}":        "uses the tag macro",
		"{% include 'x' %}":                       "the tag include",
		"{% extends 'x' %}":                       "the tag extends",
		"{% import 'x' as y %}":                   "the tag import",
		"{% from 'x' import y %}":                 "the tag from",
		"{% call f() %}{% endcall %}":             "the tag call",
		"{% block b %}{% endblock %}":             "the tag block",
		"{% do l.append(1) %}":                    "the tag do",
		"{% for a in l %}{% break %}{% endfor %}": "the tag break",
		"{% for a in l recursive %}{% endfor %}":  "the loop recursive",
		"{{ a|frobnicate }}":                      "the filter frobnicate",
		"{{ a|random }}":                          "the filter random",
		"{{ a|attr('x') }}":                       "the filter attr",
		"{{ a is frobnicated }}":                  "the test frobnicated",
		"{{ lipsum() }}":                          "the function lipsum",
		"{{ a.__class__() }}":                     "the method __class__",
		"{{ l.append(1) }}":                       "the method append",
		"{{ dict(**m) }}":                         "the argument **",
	} {
		blueprint, _ := json.Marshal(map[string]any{"template_format": "jinja2", "content": text})
		found := findings(t, string(blueprint), "null", nil)
		if len(found) != 1 || found[0].Path != "content[0].text" || !strings.Contains(found[0].Message, want) {
			t.Errorf("%s: %v, want %s found", text, found, want)
		}
	}
}

func TestJinjaInABlueprint(t *testing.T) {
	blueprint := chat(`{"role":"system","content":"{% for t in topics %}- {{ t }}\n{% endfor %}","template_format":"jinja2"},` +
		`{"role":"user","content":"{{ q|upper }} {x}"},{"role":"user","content":"{{ q|upper }} {x}{{ gone }}","template_format":"jinja2"},{"role":"user","content":"{% if %}","template_format":"jinja2"}`)
	checked, faults := render.Check(json.RawMessage(blueprint))
	if faults != nil || !strings.Contains(string(checked), `"input_variables":["topics","x","q","gone"]`) && !strings.Contains(string(checked), `"input_variables":["topics","q","gone"]`) {
		t.Errorf("faults %v, %s", faults, checked)
	}
	got, warnings, err := kwargs(t, blueprint, `null`, render.Call{Provider: "openai", Variables: raw("topics", `["a","b"]`, "q", `"why"`, "x", `1`)})
	want := `{"messages":[{"role":"system","content":"- a\n- b\n"},{"role":"user","content":"{ q|upper } 1"},{"role":"user","content":"WHY {x}"},{"role":"user","content":"{% if %}"}]}`
	if err != nil || got != want {
		t.Errorf("error %v\n got %s\nwant %s", err, got, want)
	}
	if diff := cmp.Diff([]string{"These variables were not given and are empty: gone.",
		`messages[3].content[0] was left as it is: it has "%}" where a value is expected (line 1, column 7).`}, warnings); diff != "" {
		t.Error(diff)
	}
}

// Jinja takes comments out one after the other, from the left, each time from the beginning.
func TestStriptagsTakesOutWhatJinjaDoes(t *testing.T) {
	for text, want := range map[string]string{
		"a<!-- b -->c":              "ac",
		"<!-<!-- x -->- y -->z":     "z",
		"<<!-- x -->!-- y -->z":     "z",
		"a <b>c</b> <!-- d -- e":    "a c <!-- d -- e",
		"<!--a--><!--b--><i>c</i>d": "cd",
		"<<b>c>":                    "c>",
	} {
		vars := map[string]json.RawMessage{"text": json.RawMessage(strconv.Quote(text))}
		if got, _, err := renderJinja("{{ text|striptags }}", vars); got != want || err != nil {
			t.Errorf("%q becomes %q, %v; want %q", text, got, err, want)
		}
	}
}
