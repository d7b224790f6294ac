package otel

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tables of the documentation are those of the code. Write them anew with
// PROMPTSPOOL_WRITE_TABLES=1.
func TestTheTablesOfTheDocumentationAreThoseOfTheCode(t *testing.T) {
	const path = "../../dashboard/docs/opentelemetry-attributes.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- generated: attributes -->\n\n", "\n<!-- end -->"
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no place for the generated tables", path)
	}

	want := before + begin + tables() + end + after
	if os.Getenv("PROMPTSPOOL_WRITE_TABLES") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(page), want); diff != "" {
		t.Errorf("%s differs from the code (-page +code):\n%s", path, diff)
	}
}

// tables returns a table for each dialect, as Markdown.
func tables() string {
	var b strings.Builder
	for _, d := range dialects {
		fmt.Fprintf(&b, "## %s\n\n| Attribute | Becomes |\n|---|---|\n", d.name)
		for _, a := range d.table {
			if !holdsContent(d, a.key) {
				fmt.Fprintf(&b, "| `%s` | %s |\n", a.key, a.becomes())
			}
		}
		for _, s := range d.input {
			fmt.Fprintf(&b, "| %s | %s |\n", marked(s.key), input)
		}
		for _, s := range d.output {
			fmt.Fprintf(&b, "| %s | %s |\n", marked(s.key), output)
		}
		b.WriteByte('\n')
	}

	return strings.TrimSuffix(b.String(), "\n")
}

// holdsContent reports whether an attribute is among the sources of content, which are
// listed on their own.
func holdsContent(d *dialect, key string) bool {
	return slices.ContainsFunc(slices.Concat(d.input, d.output), func(s source) bool { return s.key == key })
}

// becomes returns what an attribute becomes, for people.
func (a attribute) becomes() string {
	switch {
	case a.as != "":
		return fmt.Sprintf("%s `%s`", a.means, a.as)
	case strings.HasSuffix(a.key, "*"):
		return string(a.means) + " of that name"
	}

	return string(a.means)
}

// marked returns an attribute's name as code. What names an event says so in words.
func marked(key string) string {
	if words, names, ok := strings.Cut(key, " "); ok && strings.HasPrefix(words, "event") {
		return words + " `" + names + "`"
	}

	return "`" + key + "`"
}

// A key that stands in two tables means the same in both, unless they are for spans of
// other kinds.
func TestNoAttributeHasTwoMeanings(t *testing.T) {
	meanings := map[string]meaning{}
	for _, d := range dialects {
		for _, a := range d.table {
			before, again := meanings[a.key]
			if again && before != a.means && a.means != shownOutput && before != rawResponse {
				t.Errorf("%s is %q and %q", a.key, before, a.means)
			}
			meanings[a.key] = a.means
		}
	}
}
