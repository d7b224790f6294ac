package render_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/registry/render"
)

func TestWhatOnlyAWholeJinjaHasIsFoundByName(t *testing.T) {
	for text, want := range map[string]string{
		"a\n{% autoescape true %}{% endautoescape %}": "uses the tag autoescape",
		"{% include 'x' %}":                           "the tag include",
		"{% extends 'x' %}":                           "the tag extends",
		"{% import 'x' as y %}":                       "the tag import",
		"{% from 'x' import y %}":                     "the tag from",
		"{% call f() %}{% endcall %}":                 "the function f",
		"{% block b %}{% endblock %}":                 "the tag block",
		"{% do l.append(1) %}":                        "the tag do",
		"{% for a in l %}{% break %}{% endfor %}":     "the tag break",
		"{% for a in l recursive %}{% endfor %}":      "the loop recursive",
		"{{ a|frobnicate }}":                          "the filter frobnicate",
		"{{ a|random }}":                              "the filter random",
		"{{ a|attr('x') }}":                           "the filter attr",
		"{{ a is frobnicated }}":                      "the test frobnicated",
		"{{ lipsum() }}":                              "the function lipsum",
		"{{ a.__class__() }}":                         "the method __class__",
		"{{ l.append(1) }}":                           "the method append",
		"{{ dict(**m) }}":                             "the argument **",
	} {
		blueprint, _ := json.Marshal(map[string]any{"template_format": "jinja2", "content": text})

		found := findings(t, string(blueprint), "null", nil)
		if len(found) != 1 || found[0].Path != "content[0].text" || !strings.Contains(found[0].Message, want) {
			t.Errorf("%s: %v, want %s found", text, found, want)
		}
	}
}

func TestJinjaInABlueprint(t *testing.T) {
	blueprint := chat(
		`{"role":"system","content":"{% for t in topics %}- {{ t }}\n{% endfor %}","template_format":"jinja2"},` +
			`{"role":"user","content":"{{ q|upper }} {x}"},` +
			`{"role":"user","content":"{{ q|upper }} {x}{{ gone }}","template_format":"jinja2"},` +
			`{"role":"user","content":"{% if %}","template_format":"jinja2"}`)
	checked, faults := render.Check(json.RawMessage(blueprint))
	hasVariables := strings.Contains(string(checked), `"input_variables":["topics","x","q","gone"]`) ||
		strings.Contains(string(checked), `"input_variables":["topics","q","gone"]`)
	if faults != nil || !hasVariables {
		t.Errorf("faults %v, %s", faults, checked)
	}

	variables := raw("topics", `["a","b"]`, "q", `"why"`, "x", `1`)
	call := render.Call{Provider: "openai", Variables: variables, Keep: true}
	got, warnings, err := kwargs(t, blueprint, `null`, call)
	want := `{"messages":[{"role":"system","content":"- a\n- b\n"},{"role":"user","content":"{ q|upper } 1"},` +
		`{"role":"user","content":"WHY {x}"},{"role":"user","content":"{% if %}"}]}`
	if err != nil || got != want {
		t.Errorf("error %v\n got %s\nwant %s", err, got, want)
	}
	wantWarnings := []string{
		"These variables were not given and are empty: gone.",
		`messages[3].content[0] was left as it is: it has "%}" where a value is expected (line 1, column 7).`,
	}
	if diff := cmp.Diff(wantWarnings, warnings); diff != "" {
		t.Error(diff)
	}
}
