package openapi

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"promptspool/api/wire/packed/packedtest"
)

var update = flag.Bool("update", false, "write the description and the page anew")

// served is the description that the binary serves, for readers of the repository. Beside it is what
// the binary takes it from, which has a tenth of its bytes.
const served = pagesFolder + "openapi.json"

func TestTheServedDescriptionFollowsTheTypes(t *testing.T) {
	d, err := Describe()
	if err != nil {
		t.Fatal(err)
	}
	want, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(served, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(served); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s differs from the code (%v); run this test with -update", served, err)
	}
	packedtest.Check(t, served+".zst", string(want), *update)
}

// pagesFolder holds the pages that show the description to people.
const pagesFolder = "../../../../api/dashboard/docs/"

func TestTheReferenceFollowsTheDescription(t *testing.T) {
	d, err := Describe()
	if err != nil {
		t.Fatal(err)
	}
	want := d.Pages()

	// The page that leads to the others is written by hand around two lists.
	index, err := os.ReadFile(pagesFolder + "api.md")
	if err != nil {
		t.Fatal(err)
	}
	want["api"] = string(index)
	for name, text := range map[string]string{"calls": d.Index(), "spellings": d.Spellings()} {
		begin, end := "<!-- generated: "+name+" -->\n\n", "\n<!-- end -->"
		before, rest, ok := strings.Cut(want["api"], begin)
		_, after, ended := strings.Cut(rest, end)
		if !ok || !ended {
			t.Fatalf("api.md has no place for %s", name)
		}
		want["api"] = before + begin + text + end + after
	}

	for name, text := range want {
		path := pagesFolder + name + ".md"
		if got, err := os.ReadFile(path); err == nil && string(got) == text {
			continue
		}
		if !*update {
			t.Errorf("%s differs from the code; run this test with -update", path)
		} else if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
