package dialect_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/calls/otel/dialect"
	"promptspool/api/otlp"
)

var update = flag.Bool("update", false, "write the tables of the documentation anew")

func TestTheTablesOfTheDocumentationAreThoseOfTheCode(t *testing.T) {
	const path = "../../../dashboard/docs/opentelemetry-attributes.md"
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
	if *update {
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
	for _, d := range dialect.All {
		fmt.Fprintf(&b, "## %s\n\n", d.Name)
		if len(d.Of) > 0 {
			fmt.Fprintf(&b, "Only where the scope or the name begins with `%s`.\n\n", strings.Join(d.Of, "` or `"))
		}
		b.WriteString("| Attribute | Becomes |\n|---|---|\n")
		for _, a := range d.Table {
			if !holdsContent(d, a.Key) {
				fmt.Fprintf(&b, "| `%s` | %s |\n", a.Key, becomes(a))
			}
		}
		for _, s := range d.Input {
			fmt.Fprintf(&b, "| %s | %s |\n", marked(s.Key), dialect.Input)
		}
		for _, s := range d.Output {
			fmt.Fprintf(&b, "| %s | %s |\n", marked(s.Key), dialect.Output)
		}
		b.WriteByte('\n')
	}

	return strings.TrimSuffix(b.String(), "\n")
}

// holdsContent reports whether an attribute is among the sources of content, which are
// listed on their own.
func holdsContent(d *dialect.Dialect, key string) bool {
	sources := slices.Concat(d.Input, d.Output)
	return slices.ContainsFunc(sources, func(s dialect.Source) bool { return s.Key == key })
}

// becomes returns what an attribute becomes, for people.
func becomes(a dialect.Attribute) string {
	switch {
	case a.As != "":
		return fmt.Sprintf("%s `%s`", a.Means, a.As)
	case strings.HasSuffix(a.Key, "*"):
		return string(a.Means) + " of that name"
	}

	return string(a.Means)
}

// marked returns an attribute's name as code. What names an event says so in words.
func marked(key string) string {
	if words, names, ok := strings.Cut(key, " "); ok && strings.HasPrefix(words, "event") {
		return words + " `" + names + "`"
	}

	return "`" + key + "`"
}

// A span with one of these keys is never dropped as one of HTTP or a database.
func TestWhatDecidesAKindIsKnownToTheReceiver(t *testing.T) {
	for _, d := range dialect.All {
		for _, a := range d.Table {
			if a.Means == dialect.Decides && !otlp.IsModelKey(a.Key) {
				t.Errorf("%s: begins like none of modelKeys in api/otlp/request.go", a.Key)
			}
		}
	}
}

// A key that stands in two tables means the same in both, unless they are for spans of
// other kinds.
func TestNoAttributeHasTwoMeanings(t *testing.T) {
	meanings := map[string]dialect.Meaning{}
	for _, d := range dialect.All {
		if len(d.Of) > 0 {
			continue // what it says about a key counts for its spans
		}
		for _, a := range d.Table {
			before, again := meanings[a.Key]
			if again && before != a.Means && a.Means != dialect.ShownOutput && before != dialect.RawResponse {
				t.Errorf("%s is %q and %q", a.Key, before, a.Means)
			}
			meanings[a.Key] = a.Means
		}
	}
}
