package fstring_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"promptspool/registry/render/fstring"
	"promptspool/registry/render/language"
)

// refused matches the texts with what of Python's formats no public prompt uses.
var refused = regexp.MustCompile(`!a|:.*[{#_=+]|:[- ]|:.*[bcoxXeEgGn]\}|\.\d+\}|:0\d+,`)

func TestWhatPythonMakesOfEachText(t *testing.T) {
	content, err := os.ReadFile("testdata/fstring.json") // written by Python itself: see fstring.py
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
		got, missing, err := renderText(template, golden.Variables)
		switch {
		case want != nil && refused.MatchString(template):
			if err == nil {
				t.Errorf("%q became %q, and is not supported", template, got)
			}
		case want == nil && err == nil && missing == nil:
			t.Errorf("%q became %q; Python raises", template, got)
		case want != nil && (err != nil || missing != nil):
			t.Errorf("%q: error %v, missing %v; Python makes %q", template, err, missing, *want)
		case want != nil && got != *want:
			t.Errorf("%q became %q; Python makes %q", template, got, *want)
		}
	}
}

func renderText(template string, vars map[string]json.RawMessage) (string, []string, error) {
	f, err := fstring.Parse(template)
	if err != nil {
		return "", nil, err
	}
	return rendered(f, vars)
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

func TestWhatDiffersFromPython(t *testing.T) {
	vars := raw(
		"a", `"A"`,
		"m", `{"k":1.10,"0":"zero","k2":null,"k2":"last"}`,
		"l", `[ 1 , {"x" : "y"} ]`,
		"user-name", `"Ann"`,
		"f", `1.10`,
		"e", `1E400`,
		"z", `-0`,
	)

	for _, c := range []struct {
		template, want string
		missing        []string
	}{
		{"{gone}|{a}|{gone:>5}|{gone!r}", "|A||", []string{"gone"}},
		{"{m.k}{m[k2]}{m[0]}", "1.1lastzero", nil},
		{"{m.none}{l[7]}{l[-1]}{a[0]}{a.upper}{gone.x}", "",
			[]string{"m.none", "l[7]", "l[-1]", "a[0]", "a.upper", "gone"}},
		{"{l}", "[1, {'x': 'y'}]", nil},
		{"{l[1].x}", "y", nil},
		{"{user-name}", "Ann", nil},
		{"{f} {e} {z}", "1.1 inf 0", nil},
	} {
		got, missing, err := renderText(c.template, vars)
		if err != nil || got != c.want || !cmp.Equal(missing, c.missing) {
			t.Errorf("%q became %q, missing %q, error %v; want %q, missing %q",
				c.template, got, missing, err, c.want, c.missing)
		}
	}
}

func TestATextThatWasMeantAsJSONDoesNotParse(t *testing.T) {
	for _, template := range []string{
		`{"name": "x"}`, `{ "name": 1 }`, "{\n}", "function() { return x; }", `{'a': {b}}`, "a{}b",
		"[{1}]", "{a, b}", `\d{3}`, "{%if%}", "{ a }",
	} {
		if _, err := fstring.Parse(template); err == nil || !strings.Contains(err.Error(), "{{") {
			t.Errorf("%q: error %v, want one that shows how to write a brace", template, err)
		}
	}
}

func TestVariablesAreListedInOrderOfAppearance(t *testing.T) {
	f, err := fstring.Parse("{b} {a.x[0]} {b!r} {c:>9} {{no}}")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b", "a", "c"}, f.Variables()); diff != "" {
		t.Fatal(diff)
	}
}

func TestHostileTextsAreBounded(t *testing.T) {
	large := `"` + strings.Repeat("x", 1<<20) + `"`
	list := `[` + strings.Repeat(`[0],`, 1<<18) + `0]`
	deep := strings.Repeat("[", 500) + large + strings.Repeat("]", 500)

	for name, c := range map[string]struct{ template, value string }{
		"a width beyond the bound":            {"{a:10001}", `1`},
		"a width that overflows":              {"{a:99999999999999999999}", `1`},
		"a width from a variable":             {"{a:{a}}", `123456789`},
		"a precision beyond the bound":        {"{a:.10001f}", `1.5`},
		"too many fields":                     {strings.Repeat("{a}", 10_001), `1`},
		"an output beyond the bound":          {strings.Repeat("{a}", 17), large},
		"widths that add up beyond the bound": {strings.Repeat("{a:10000}", 2000), `1`},
		"a large value read again and again":  {strings.Repeat("{a[0]}", 10_000), list},
		"a repr made again and again, cut":    {strings.Repeat("{a!r:.1}", 10_000), list},
		"a deep value read again and again":   {strings.Repeat("{a"+strings.Repeat("[0]", 32)+"[1]}", 1000), deep},
		"a number of too many digits":         {"{a:x}", strings.Repeat("9", 1<<20)},
		"a path that is too long":             {"{a" + strings.Repeat("[0]", 33) + "}", `1`},
		"a spec within a spec within a spec":  {"{a:{a:{a}}}", `1`},
		"many braces":                         {strings.Repeat("{", 1<<20) + "{", `1`},
		"many braces in a spec":               {"{a:" + strings.Repeat("{", 1<<20), `1`},
		"many opened brackets":                {strings.Repeat("{a[", 1<<18), `1`},
	} {
		if got, _, err := renderText(c.template, raw("a", c.value)); err == nil {
			t.Errorf("%s: rendered to %d bytes, want an error", name, len(got))
		}
	}
}

func FuzzFormat(f *testing.F) {
	for _, seed := range []string{"{a}", "{a!r:>9}", "{{x}}", "{a[0].b:*>10,.3f}", "{", `{"a": 1}`} {
		f.Add(seed, `{"a":[1,"x",null,{"b":1.5e300}],"w":7}`)
	}
	f.Fuzz(func(t *testing.T, template, variables string) {
		format, err := fstring.Parse(template)
		if err != nil {
			return
		}
		var vars map[string]json.RawMessage
		if json.Unmarshal([]byte(variables), &vars) != nil {
			return
		}
		got, missing, err := rendered(format, vars)
		if err != nil {
			return
		}
		if utf8.ValidString(template) && !utf8.ValidString(got) {
			t.Errorf("%q became invalid UTF-8: %q", template, got)
		}

		again, missingAgain, _ := rendered(format, vars)
		if again != got || !cmp.Equal(missing, missingAgain) {
			t.Errorf("%q rendered twice differs: %q, %q", template, got, again)
		}
		plain := strings.ReplaceAll(strings.ReplaceAll(template, "{{", "{"), "}}", "}")
		if len(format.Variables()) == 0 && (plain != got || missing != nil) {
			t.Errorf("%q has no variables and became %q", template, got)
		}
	})
}
