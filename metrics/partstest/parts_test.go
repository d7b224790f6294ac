package partstest

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOnlyATestWhosePartIsSaidToBeAbsentIsLeftOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "left-out")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(listVariable, path)

	ran := map[string]bool{}
	run := func(name string, needs ...string) {
		t.Run(name, func(t *testing.T) {
			Need(t, needs...)
			ran[name] = true
		})
	}
	t.Setenv(absentVariable, "")
	run("nothing is absent", "chromium", "root")
	t.Setenv(absentVariable, "nginx chromium")
	run("others are absent", "chrom", "root")
	run("one is absent", "root", "chromium")

	if !ran["nothing is absent"] || !ran["others are absent"] || ran["one is absent"] {
		t.Errorf("these ran: %v", ran)
	}
	content, err := os.ReadFile(path)
	want := t.Name() + "/one_is_absent needs chromium\n"
	if err != nil || string(content) != want {
		t.Errorf("the list is %q (%v), want %q", content, err, want)
	}
}
