package jinja_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/registry/render/jinja"
	"promptspool/registry/render/language"
)

// renderJinja renders a text by itself.
func renderJinja(template string, vars map[string]json.RawMessage) (string, []string, error) {
	j, err := jinja.Parse(template)
	if err != nil {
		return "", nil, err
	}
	return rendered(j, vars)
}

// differs are the texts of jinja.json for which our result is not Jinja's, with our result.
var differs = map[string]string{
	"{{ 9000000000 * 9000000000 }}": "makes an integer beyond 64 bits",
	"{{ big + 1 }}":                 "has an integer + an integer, which cannot be calculated",
}

// golden is what Jinja makes of texts, null where it raises.
type golden struct {
	Variables map[string]json.RawMessage
	Cases     [][2]*string
}

// readGolden reads what Jinja itself has written: see jinja.py.
func readGolden(t testing.TB) (g golden) {
	t.Helper()
	content, err := os.ReadFile("testdata/jinja.json")
	if err == nil {
		err = json.Unmarshal(content, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestWhatJinjaMakesOfEachText(t *testing.T) {
	golden := readGolden(t)
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
		{"{{ m.k }}{{ m.none }}{{ m['none2'].x }}{{ gone.x.y }}", "v",
			[]string{"m", "gone"}, []string{"m.none", "m.none2", "gone"}},
		{"{% if gone %}x{% endif %}{{ gone is defined }}{{ gone|default('d') }}{{ gone or 'e' }}" +
			"{{ a if gone else '' }}", "Falsede", []string{"gone", "a"}, nil},
		{"{% for x in gone %}{{ x }}{% endfor %}" +
			"{% for k, v in m.items() %}{{ k }}{{ v }}{{ loop.index }}{% endfor %}", "kv1",
			[]string{"gone", "m"}, []string{"gone"}},
		{"{% set b = a %}{{ b }}{% for c in [b] %}{{ c }}{% endfor %}{{ c }}{{ range(2)|list }}", "AA[0, 1]",
			[]string{"a", "c"}, []string{"c"}},
		{"{{ m.items }}{{ m.keys }}", "", []string{"m"}, []string{"m.items", "m.keys"}},
	} {
		j, err := jinja.Parse(c.template)
		if err != nil {
			t.Fatal(c.template, err)
		}

		got, missing, err := rendered(j, raw("a", `"A"`, "m", `{"k":"v"}`))
		if err != nil || got != c.want || !cmp.Equal(missing, c.missing) || !cmp.Equal(j.Variables(), c.variables) {
			t.Errorf("%s became %q, error %v, missing %q of %q; want %q, missing %q of %q",
				c.template, got, err, missing, j.Variables(), c.want, c.missing, c.variables)
		}
	}
}

// rendered renders a text by itself.
func rendered(t language.Template, vars map[string]json.RawMessage) (string, []string, error) {
	r := language.NewRendering(vars)
	b, err := t.AppendTo(nil, &r)
	return string(b), r.Missing, err
}

// raw makes variables of JSON texts.
func raw(pairs ...string) map[string]json.RawMessage {
	vars := make(map[string]json.RawMessage)
	for i := 0; i < len(pairs); i += 2 {
		vars[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	return vars
}
