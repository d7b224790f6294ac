package secrets

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// probe is a credential's value: of no known shape, and such as generators make.
const probe = "Zq7xW3kT9mB4vR8nL2pD6hY1sF5gJ0cQe"

func TestProbesOfCredentialsAreMasked(t *testing.T) {
	for _, body := range bodies(t, "masked.txt") {
		got := stripped(t, body)
		if strings.Contains(got, probe) || !strings.Contains(got, maskedText) {
			t.Errorf("%s\nis kept as %s", body, got)
		}
		parse(t, got)
	}
}

func TestProbesOfOtherTextsStay(t *testing.T) {
	for _, body := range bodies(t, "kept.txt") {
		same(t, "stripped", stripped(t, body), body)
	}
}

// Every row of the table of names masks where it says, and nowhere else.
func TestEachNameCountsWhereItsRuleSays(t *testing.T) {
	bodies := map[place]string{
		inTexts:     `{"a":"{'NAME': 'PROBE', 'n': 1}"}`,
		inArguments: `{"kwargs":{"deep":[{"NAME":"PROBE"}]}}`,
		inHeaders:   `{"kwargs":{"extra_headers":{"NAME":"PROBE"}}}`,
		inQuery:     `{"u":"https://h.example/?NAME=PROBE"}`,
		directly:    `{"kwargs":{"model":"m","NAME":"PROBE"}}`,
	}
	implied := map[place]place{inHeaders: inArguments, directly: inArguments}

	for _, rule := range nameRules {
		name := map[match]string{whole: rule.name, ending: "x-" + rule.name, beginning: rule.name + "_x"}[rule.how]
		where := credentialPlaces(simpleName(nil, []byte(name)))
		for at, body := range bodies {
			body = strings.NewReplacer("NAME", name, "PROBE", probe).Replace(body)
			want := body
			if where&(at|implied[at]) != 0 {
				want = strings.Replace(body, probe, maskedText, 1)
			}
			same(t, rule.name, stripped(t, body), want)
		}
		if rule.where&^where != 0 || rule.source == "" {
			t.Errorf("%+v counts at %b", rule, where)
		}
	}
}

// sample returns a key of a shape. It was never issued.
func sample(s *keyShape) string {
	text := probe + probe + probe
	switch s.rest {
	case hexadecimal:
		text = strings.Repeat("0a1b2c3d4e5f6789", 4)
	case capitals:
		return s.prefix + "Z7XW3KT9MB4VR8NL"
	case dotted:
		text = probe + "." + probe + "_-" + probe
	case inBase64:
		text = probe + "/" + probe + "+a=="
	}
	return s.prefix + text[:max(s.least-len(s.prefix), 60)]
}

func TestEachShapeIsMasked(t *testing.T) {
	for i := range shapes {
		s := &shapes[i]
		key := sample(s)
		for _, shape := range []string{
			`{"kwargs":{"messages":[{"role":"user","content":"use KEY, please"}]}}`,
			`{"metadata":{"note":"KEY"}}`,
			`{"request_response":"{\"a\":\"b\\nKEY\"}"}`,
			`{"tags":["\nKEY\n","\u003cKEY\u003e"]}`,
		} {
			want := strings.ReplaceAll(shape, "KEY", maskedText)
			if s.asked {
				want = strings.ReplaceAll(shape, "KEY", key)
			}
			same(t, s.prefix, stripped(t, strings.ReplaceAll(shape, "KEY", key)), want)
		}

		if s.source == "" || shapeOf([]byte(key)) != s || KeyLength([]byte(key)) != s.least {
			t.Errorf("%s: another row comes before it, or it has no source", s.prefix)
		}
	}
}

// The page of the documentation names every shape and every name that is masked.
func TestThePageOnSecurityNamesWhatIsMasked(t *testing.T) {
	page, err := os.ReadFile("../../dashboard/docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## What is stored\n")
	section, _, _ = strings.Cut(section, "\n## ")

	named, prefixes := map[string]bool{}, map[string]bool{}
	for _, code := range regexp.MustCompile("`[^`]+`").FindAllString(section, -1) {
		code = strings.Trim(code, "`")
		named[string(simpleName(nil, []byte(strings.Trim(code, "*"))))] = true
		prefixes[strings.TrimSuffix(code, "...")] = true
	}

	for _, rule := range nameRules {
		if !named[rule.name] {
			t.Errorf("the page does not name %s", rule.name)
		}
	}
	for _, s := range shapes {
		if !s.asked && !prefixes[s.prefix] {
			t.Errorf("the page does not name %s", s.prefix)
		}
	}
}
