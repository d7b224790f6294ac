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
		"a\n{% autoescape true %}{% endautoescape %}":        "uses the tag autoescape",
		"{% include 'x' %}":                                  "the tag include",
		"{% extends 'x' %}":                                  "the tag extends",
		"{% import 'x' as y %}":                              "the tag import",
		"{% from 'x' import y %}":                            "the tag from",
		"{% call f() %}{% endcall %}":                        "the tag call",
		"{% filter upper %}a{% endfilter %}":                 "the tag filter",
		"{% block b %}{% endblock %}":                        "the tag block",
		"{% do l.append(1) %}":                               "the tag do",
		"{% for a in l %}{% break %}{% endfor %}":            "the tag break",
		"{% for a in l recursive %}{% endfor %}":             "the loop recursive",
		"{{ a|frobnicate }}":                                 "the filter frobnicate",
		"{{ a|random }}":                                     "the filter random",
		"{{ a|attr('x') }}":                                  "the filter attr",
		"{{ a is frobnicated }}":                             "the test frobnicated",
		"{{ lipsum() }}":                                     "the function lipsum",
		"{{ a.__class__() }}":                                "the method __class__",
		"{{ l.append(1) }}":                                  "the method append",
		"{{ dict(**m) }}":                                    "the argument **",
		"{% with a = 1 %}{{ a }}{% endwith %}":               "the tag with, which is not supported; write {% set %}",
		"{{ a|groupby('x') }}":                               "the filter groupby, which is not supported; let the app",
		"{{ a|map('escape') }}":                              "the filter escape",
		"{{ a|map(attribute='b', default=1) }}":              "the argument default of map",
		"{{ a|sort(attribute='b,c') }}":                      "the argument attribute with several names",
		"{{ a|int(0, 16) }}":                                 "the argument base of int",
		"{{ '%s %x'|format(a, b) }}":                         "the format %x",
		"{{ '%(b)s'|format(b=a) }}":                          "the format %(",
		"{{ a is divisibleby 3 }}":                           "the test divisibleby",
		"{{ a|select('odd')|list }}":                         "the test odd",
		"{{ a.isdigit() }}":                                  "the method isdigit",
		"{% for b in a %}{{ loop.revindex }}{% endfor %}":    "the member loop.revindex",
		"{% for b in a %}{{ loop.cycle(1, 2) }}{% endfor %}": "the method cycle",
		"{{ 2 ** a }}":                                       "the operator **",
		"{{ '%s' % a }}":                                     "the operator % of a text",
		"{{ 1_000 + 1e3 }}":                                  "the number 1_000, which is not supported; write",
		"{{ 1 < a < 3 }}":                                    "a chain of comparisons, which is not supported; write",
		"{{ a[::2] }}":                                       "a slice with a step, which is not supported",
		"{{ a[1::-1] }}":                                     "a slice with a step, which is not supported",
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
