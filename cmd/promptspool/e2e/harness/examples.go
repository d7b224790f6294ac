//go:build linux

package harness

import (
	"regexp"
	"strings"
	"testing"

	"promptspool/api/dashboard/docs"
)

// Example is a fenced code block of a page.
type Example struct {
	Language string
	Mark     string // run, compile or shown
	Rest     string // the file that a block is saved as, or why it is only shown
	Code     string
}

// fence matches a block, which may be indented in a list.
var fence = regexp.MustCompile("(?ms)^( *)```([a-z]+) ?([a-z]*) ?([^\n]*)\n(.*?)^ *```$")

// ExamplesOf returns the blocks of a page.
func ExamplesOf(page string) (all []Example) {
	for _, m := range fence.FindAllStringSubmatch(docs.Find(page).Source, -1) {
		code := strings.ReplaceAll("\n"+m[5], "\n"+m[1], "\n")[1:]
		all = append(all, Example{m[2], m[3], m[4], code})
	}
	return all
}

// ExamplesIn returns the examples of all pages in a language.
func ExamplesIn(t *testing.T, language string) (all []Example) {
	t.Helper()
	for _, page := range docs.Names() {
		for _, e := range ExamplesOf(page) {
			if e.Language == language {
				all = append(all, e)
			}
		}
	}
	if len(all) == 0 {
		t.Errorf("no page has a block in %s", language)
	}

	return all
}
