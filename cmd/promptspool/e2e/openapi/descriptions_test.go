package openapi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// goName is what a property's description would have from a comment for programmers: a name
// such as MetadataKeysWide.
var goName = regexp.MustCompile(`\b[A-Z][a-z0-9]+[A-Z]\w*\b`)

// properNames look like Go's, and are none.
var properNames = []string{"LangChain", "PostgreSQL", "ChatCompletion", "OpenAI"}

func TestEveryPropertyIsDescribedInTheNamesOfJSON(t *testing.T) {
	d, err := Describe()
	if err != nil {
		t.Fatal(err)
	}
	seen, named := 0, map[string]bool{}
	check := func(place, text string) {
		seen++
		if text == "" {
			t.Errorf("%s has no description", place)
		}
		for _, name := range goName.FindAllString(text, -1) {
			if !slices.Contains(properNames, name) {
				t.Errorf("%s is described with the name %s: %s", place, name, text)
			}
		}
	}

	for name, s := range d.Components.Schemas {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			named[p.Key] = true
			check(name+"."+p.Key, p.Value.Description)
		}
	}
	for path, methods := range d.Paths {
		for method, o := range methods {
			for _, p := range o.Parameters {
				check(fmt.Sprintf("%s %s: %s", method, path, p.Name), p.Description)
			}
		}
	}
	if seen < 700 {
		t.Errorf("only %d descriptions were seen", seen)
	}

	// An entry that describes nothing any more would mislead whoever changes it.
	for property := range shared.Properties {
		if !named[property] {
			t.Errorf("no property is called %s", property)
		}
	}
}

func TestTheDescriptionHasNoOlderSpellings(t *testing.T) {
	d, err := Describe()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range operations() {
		for path := range strings.FieldsSeq(o.Older) {
			if d.Paths[path] != nil {
				t.Errorf("%s is described", path)
			}
		}
	}
	for _, scheme := range []string{"key", "bearer", "basic"} {
		if d.Components.SecuritySchemes[scheme] == nil {
			t.Errorf("there is no scheme %s", scheme)
		}
	}
	if got := d.Paths["/v1/traces"]["post"].Security.([]any); len(got) != 3 {
		t.Errorf("exporters may show their key as %v", got)
	}
}
