package jinja_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"promptspool/metrics/cputimetest"
	"promptspool/registry/render/fstring"
	"promptspool/registry/render/jinja"
)

// hostile returns templates that want more time or memory than there is, in jinja2 unless
// they begin with f:.
func hostile() map[string]string {
	double := "{% set a = 'xxxxxxxxxxxxxxxx' %}" + strings.Repeat("{% set a = a ~ a %}", 60) + "{{ a }}"
	nested := "{% set a = [] %}" + strings.Repeat("{% set a = [a, a] %}", 60)
	forever := "{% for a in range(99999) %}"
	loop := func(depth int) string {
		return strings.Repeat("{% for a in range(100000) %}", depth) + "x" + strings.Repeat("{% endfor %}", depth)
	}

	return map[string]string{
		"nested loops":             loop(5),
		"nested loops without end": strings.Repeat(forever, 90) + strings.Repeat("{% endfor %}", 90),
		"repeated":                 "{{ 'a' * 100000000000 }}",
		"repeated nothing":         "{{ '' * 9000000000000000000 }}",
		"doubled text":             double,
		"doubled list":             nested + "{{ a }}",
		"doubled list as JSON":     nested + "{{ a|tojson(indent=1000) }}",
		"doubled list compared":    nested + "{% set b = [a] %}{{ b == [a] }}{{ a in b }}",
		"doubled list sorted":      nested + "{{ [a, a, a]|sort }}",
		"deep list": "{% set n = namespace(a=[]) %}{% for i in range(99999) %}{% set n.a = [n.a] %}" +
			"{% endfor %}{{ n.a }}",
		"a namespace in itself": "{% set n = namespace(a=1) %}{% set n.a = n %}" +
			"{{ n }}{{ n == n }}{{ n.a.a.a.a is defined }}",
		"range":                    "{{ range(1000000000000)|length }}",
		"ranges":                   "{% for a in range(99999) %}{% set b = range(99999) %}{% endfor %}",
		"indent":                   "{{ text|indent(100000000) }}",
		"indent by text":           "{{ text|indent(text) }}",
		"replace chain":            "{{ 'aa'" + strings.Repeat("|replace('a', 'aaaaaaaaaa')", 50) + " }}",
		"join":                     "{{ range(99999)|join(text) }}",
		"split":                    "{% for a in range(9999) %}{% set b = text.split(' ') %}{% endfor %}",
		"format":                   "{{ '%999999999d'|format(1) }}{{ '%.99999999f'|format(1.5) }}",
		"format at its bound":      "{% for a in range(99999) %}{{ '%9999d'|format(1) }}{% endfor %}",
		"map of map":               "{{ range(9999)|map('string')|map('upper')|list|length }}",
		"unique":                   "{{ range(99999)|unique|length }}{{ range(99999)|unique|length }}",
		"attribute path":           "{{ [m]|map(attribute=text)|list }}",
		"contains":                 "{% for a in range(99999) %}{{ 'zzzz' in text }}{% endfor %}",
		"find":                     "{% for a in range(99999) %}{{ text.find('zzzz') }}{% endfor %}",
		"equal texts":              "{% for a in range(99999) %}{% if text == text ~ '' %}{% endif %}{% endfor %}",
		"trim":                     "{% for a in range(99999) %}{{ text.strip(text) }}{% endfor %}",
		"strip of many characters": "{{ ('z' * 1000000).strip('a' * 1000000 ~ 'z') }}",
		"lower":                    "{% for a in range(99999) %}{% set b = big|lower %}{% endfor %}",
		"upper selected":           forever + "{{ [big]|select('eq', big|upper)|list|length }}{% endfor %}",
		"length":                   forever + "{{ [big]|map('length')|first }}{% endfor %}",
		"int":                      forever + "{{ [big]|map('int')|first }}{% endfor %}",
		"float":                    "{% for a in range(99999) %}{% set b = big|float %}{% endfor %}",
		"key":                      "{% set d = dict(a=1) %}" + forever + "{% set b = d.get(big) %}{% endfor %}",
		"startswith": "{% for a in range(99) %}" +
			"{% set b = big.startswith([" + strings.Repeat("big,", 9999) + "'x']) %}{% endfor %}",
		"large attribute":        forever + "{{ [m]|map(attribute=big)|list|length }}{% endfor %}",
		"split of a large text":  "{{ ('a ' * 1000000).split(' ', 900000)|length }}",
		"format of many places":  "{{ ('%s' * 1000000)|format(1) }}{{ ('%%' * 1000000)|format }}",
		"format of a large text": "{% for a in range(99999) %}{% set b = big|format %}{% endfor %}",
		"many scopes": strings.Repeat("{% for a in [1] %}", 90) +
			"{% for i in range(99999) %}{{ gone }}{% endfor %}" + strings.Repeat("{% endfor %}", 90),
		"a macro without end": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
		"macros without end": "{% macro f(n) %}{{ g(n) }}{{ g(n) }}{% endmacro %}" +
			"{% macro g(n) %}{{ f(n) }}{% endmacro %}{{ g(1) }}",
		"doubling macros": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% else %}x{% endif %}" +
			"{% endmacro %}{{ f(150) }}",
		"many arguments": "{% macro f(a) %}{% endmacro %}" +
			forever + "{{ f(" + strings.Repeat("a=1,", 40000) + ") }}{% endfor %}",
		"many parameters": "{% macro f(" + strings.Repeat("a,", 40000) + "a) %}{% endmacro %}" +
			forever + "{{ f(1) }}{% endfor %}",
		"many defaults": "{% macro f(" + strings.Repeat("a=big~1,", 20000) + "a=1) %}{% endmacro %}" +
			forever + "{{ f() }}{% endfor %}",
		"macros in expressions": "{% macro f(n) %}" + "{{ [" + strings.Repeat("(", 80) + "f(n)" +
			strings.Repeat(")", 80) + "] }}{% endmacro %}{{ f(1) }}",
		"deep macros": strings.Repeat("{% macro f() %}", 8000) + strings.Repeat("{% endmacro %}", 8000),

		"deep parentheses": "{{ " + strings.Repeat("(", 20000) + strings.Repeat(")", 20000) + " }}",
		"deep nots":        "{{ " + strings.Repeat("not ", 20000) + "1 }}",
		"deep signs":       "{{ " + strings.Repeat("-", 20000) + "1 }}",
		"deep lists":       "{{ " + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + " }}",
		"deep ifs":         strings.Repeat("{% if 1 %}", 8000) + strings.Repeat("{% endif %}", 8000),
		"many elifs":       "{% if 0 %}" + strings.Repeat("{% elif 0 %}", 8000) + "{% endif %}",
		"long sum":         "{{ 1" + strings.Repeat(" + 1", 40000) + " }}",
		"long or":          "{{ 0" + strings.Repeat(" or 0", 30000) + " }}",
		"long concat":      "{{ 1" + strings.Repeat(" ~ 1", 40000) + " }}",
		"long members":     "{{ m" + strings.Repeat(".k", 60000) + " }}",
		"long filters":     "{{ 1" + strings.Repeat("|abs", 40000) + " }}",
		"long ternary":     "{{ 1" + strings.Repeat(" if 1", 30000) + " }}",
		"long else":        "{{ 1" + strings.Repeat(" if 0 else 1", 12000) + " }}",
		"long compare":     "{{ 1" + strings.Repeat(" < 2", 40000) + " }}",
		"open tags":        strings.Repeat("{% raw %}", 20000),
		"many braces":      strings.Repeat("{", 200000),
		"too long":         strings.Repeat("x", 2<<20) + "{{ a }}",
		"f: width":         "{text:>99999999}",
		"f: many widths":   strings.Repeat("{i:>9999}", 9999),
		"f: nested fields": "{i:{i:{i}}}",
		"f: deep path":     "{m" + strings.Repeat(".k", 20000) + "}",
		"f: large value":   strings.Repeat("{text!r}", 9999),
	}
}

// TestHostileTemplatesEnd renders them in a process of its own, which reports how much
// processor time and memory each took, and is killed if it does not end.
func TestHostileTemplatesEnd(t *testing.T) {
	if os.Getenv("PROMPTSPOOL_RENDER_HOSTILE") != "" {
		renderHostile(t)
		return
	}

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestHostileTemplatesEnd$", "-test.v")
	child.Env = append(os.Environ(), "PROMPTSPOOL_RENDER_HOSTILE=1", "GOMAXPROCS=1")
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "peak") {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if _, peak, ok := strings.Cut(line, "peak "); ok {
			var kilobytes int
			if _, err := fmt.Sscan(peak, &kilobytes); err != nil || kilobytes > 512<<10 {
				t.Errorf("the peak of memory was %s, want at most 512 MiB", peak)
			}
			t.Log(strings.TrimSpace(line))
		}
	}
}

func renderHostile(t *testing.T) {
	vars := raw("text", `"`+strings.Repeat("lorem ipsum ", 8000)+`"`, "m", `{"k":{"k":1}}`, "i", "7",
		"big", `"`+strings.Repeat("lorem ipsum ", 4<<20/12)+`"`)
	bounded := 0
	for name, template := range hostile() {
		start := cputimetest.Used()
		var out string
		var err error
		if text, ok := strings.CutPrefix(template, "f:"); strings.HasPrefix(name, "f:") || ok {
			out, _, err = renderFString(text, vars)
		} else {
			out, _, err = renderJinja(template, vars)
		}
		if err != nil {
			bounded++
		}
		if err != nil && strings.Contains(err.Error(), "mistake in promptspool") {
			t.Errorf("%s: %v", name, err)
		}
		if took := cputimetest.Used() - start; took > 10*time.Second || len(out) > 16<<20 {
			t.Errorf("%s: %d bytes in %v", name, len(out), took)
		} else if took > 200*time.Millisecond {
			t.Logf("%s: %d bytes in %v, error %v", name, len(out), took, err)
		}
	}
	if bounded < 40 {
		t.Errorf("only %d templates met a bound; they are not as hostile as they should be", bounded)
	}

	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	peak, _, _ = strings.Cut(peak, "\n")
	fmt.Println("peak", peak)
}

func FuzzJinja(f *testing.F) {
	golden := readGolden(f)
	for _, c := range golden.Cases {
		f.Add(*c[0])
	}

	f.Fuzz(func(t *testing.T, template string) {
		j, err := jinja.Parse(template)
		if err != nil {
			if strings.Contains(err.Error(), "mistake in promptspool") || err.Error() == "" || len(err.Error()) > 1000 {
				t.Fatalf("%q: error %q", template, err)
			}
			return
		}
		start := cputimetest.Used()
		out, missing, err := rendered(j, golden.Variables)
		if err != nil && strings.Contains(err.Error(), "mistake in promptspool") {
			t.Fatalf("%q: %v", template, err)
		}
		if took := cputimetest.Used() - start; took > 5*time.Second || len(out) > 16<<20 {
			t.Fatalf("%q: %d bytes in %v", template, len(out), took)
		}
		again, missingAgain, errAgain := rendered(j, golden.Variables)
		if again != out || len(missing) != len(missingAgain) || (err == nil) != (errAgain == nil) {
			t.Fatalf("%q: twice the same gives %q and %q", template, out, again)
		}
	})
}

func renderFString(template string, vars map[string]json.RawMessage) (string, []string, error) {
	f, err := fstring.Parse(template)
	if err != nil {
		return "", nil, err
	}
	return rendered(f, vars)
}
