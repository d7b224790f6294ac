package api

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	inBackticks = regexp.MustCompile("`([^`]+)`")
	identifier  = regexp.MustCompile(`\{[^}]*\}`)
)

// readmeCalls are the paths of the README's table, "METHOD /path"; what stands in braces is "{}". A path without a method of its own has
// that of the one before it.
func readmeCalls(t *testing.T) (calls []string) {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(readme), "\n| call | what it does | key's scope |\n|---|---|---|\n")
	if !ok {
		t.Fatal("the README has no table of calls")
	}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			break
		}
		method := ""
		for _, m := range inBackticks.FindAllStringSubmatch(cells[1], -1) {
			if before, path, ok := strings.Cut(m[1], " /"); ok {
				method = before
				calls = append(calls, method+" "+identifier.ReplaceAllString("/"+path, "{}"))
			} else if strings.HasPrefix(m[1], "/") {
				calls = append(calls, method+" "+identifier.ReplaceAllString(m[1], "{}"))
			}
		}
	}
	return calls
}

func TestTheReadmeNamesEveryCallAndNoOther(t *testing.T) {
	served := Routes()
	said := readmeCalls(t)
	for _, call := range served {
		if !slices.Contains(said, call) {
			t.Errorf("the README does not name %s", call)
		}
	}
	for _, call := range said {
		if !slices.Contains(served, call) {
			t.Errorf("the README names %s, which is not served", call)
		}
	}
}
