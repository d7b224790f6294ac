package frame

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template/parse"
)

// sources returns the HTML files of all sections, and of the components, by their names.
func sources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"../*.html", "../*/*.html", "components/*.html"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(names), err)
		}
		for _, name := range names {
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = string(source)
		}
	}

	return all
}

func TestAllPagesParse(t *testing.T) {
	for name := range sources(t) {
		if filepath.Dir(name) != "components" {
			newPage(os.DirFS(filepath.Dir(name)), filepath.Base(name)) // panics
		}
	}
}

// A page must not assemble an address: html/template escapes a whole query as one value,
// and a filter becomes a single unknown name. Nor must it call print: a pointer prints as
// an address in memory.
func TestPagesAreHandedTheirAddresses(t *testing.T) {
	for name, source := range sources(t) {
		tree := parse.New(name)
		tree.Mode = parse.SkipFuncCheck
		parts := map[string]*parse.Tree{}
		if _, err := tree.Parse(source, "{{", "}}", parts); err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			for _, fault := range faultsOf(part.Root.String()) {
				t.Errorf("%s, in %s: %s", name, part.Name, fault)
			}
		}
	}

	for text, want := range map[string]int{
		`<a href="/requests{{with .Query}}?{{.}}{{end}}">`: 1,
		`<a href="/a?{{.Query}}">`:                         1,
		`<a href="/a?b={{print .P}}&{{.Q}}">`:              2,
		`<a href="{{.Href}}">`:                             0,
		`<a href="/audit?before={{.}}">`:                   0,
		`{{.Mean}}?{{.}}`:                                  0,
		`<link href="/static/a.css?{{.Version}}">`:         0,
	} {
		tree, err := parse.Parse("control", text, "{{", "}}", map[string]any{"print": fmt.Sprint})
		if err != nil {
			t.Fatal(err)
		}
		if got := faultsOf(tree["control"].Root.String()); len(got) != want {
			t.Errorf("%s: faults are %q, want %d", text, got, want)
		}
	}
}

// What faultsOf looks for in the source of a page.
var (
	attribute  = regexp.MustCompile(`(?:href|src|action)="(?:[^"{]|{{[^}]*}})*"`)
	wholeQuery = regexp.MustCompile(`[?&](?:{{with [^}]*}})?{{[^}]*}}`)
	printed    = regexp.MustCompile(`{{[^}]*\bprint(?:ln)?\b[^}]*}}`)
)

// faultsOf returns the addresses that the source of a page assembles from a query, and
// its calls of print.
func faultsOf(source string) []string {
	faults := printed.FindAllString(source, -1)
	for _, address := range attribute.FindAllString(source, -1) {
		own := strings.NewReplacer("{{.Version}}", "", "{{$.Version}}", "") // of our static files
		for _, query := range wholeQuery.FindAllString(own.Replace(address), -1) {
			faults = append(faults, query+" of "+address)
		}
	}
	return faults
}

// A page with an address in an attribute that is not listed would lead out of a base path.
func TestAttributesWithAddressesAreListed(t *testing.T) {
	rooted := regexp.MustCompile(`\s([a-z-]+)="(/[^"]*)"`)
	for name, source := range sources(t) {
		for _, found := range rooted.FindAllStringSubmatch(source, -1) {
			if !slices.Contains(linkAttributes, found[1]) {
				t.Errorf("%s: %s is not in linkAttributes", name, found[1])
			}
		}
	}
}
