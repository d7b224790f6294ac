package render_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"promptspool/api/wire"
	"promptspool/registry/render"
)

func TestTheOutputOfAllTextsTogetherIsBounded(t *testing.T) {
	block := `{"type":"text","text":"{a}"}`
	blueprint := `{"content":[` + block + strings.Repeat(","+block, 19) + `]}`
	large := raw("a", `"`+strings.Repeat("x", 1<<20)+`"`)
	filled, warnings, err := kwargs(t, blueprint, `null`, render.Call{Provider: "openai", Variables: large, Keep: true})
	if err != nil || len(filled) > 17<<20 || len(warnings) != 4 {
		t.Errorf("%d bytes with %d warnings, want the bound and one for each of the 4 texts beyond it: %v, %v",
			len(filled), len(warnings), warnings, err)
	}
}

func TestARenderingEndsWithItsCall(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	work := `{% for i in range(99999) %}{% set x = i ~ 'x' %}{% endfor %}`
	block, _ := json.Marshal(strings.Repeat(work, 3))
	blueprint := `{"type":"completion","template_format":"jinja2","content":[` +
		`{"type":"text","text":` + string(block) + `},{"type":"text","text":"{{ x }}"}]}`
	p, err := render.Prepare([]byte(blueprint), nil)
	if err != nil {
		t.Fatal(err)
	}

	variables := map[string]json.RawMessage{"x": json.RawMessage(`1`)}
	c := render.Call{Provider: "openai", Model: "gpt-4o", Variables: variables, Keep: true}
	if _, _, err := p.Kwargs(c); err != nil {
		t.Errorf("a call that goes on: %v", err)
	}
	c.Context = ended
	if kwargs, _, err := p.Kwargs(c); !wire.IsCode(err, wire.CodeUnavailable) {
		t.Errorf("a call that has ended got %d bytes, %v", len(kwargs), err)
	}
}
