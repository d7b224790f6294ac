package templates

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// lineDiff returns the lines that differ, as diff -u does but without file names, and how
// many were added and removed.
func lineDiff(before, after string) (diff string, added, removed int) {
	edits := udiff.Lines(before, after)
	unified, err := udiff.ToUnifiedDiff("", "", before, edits, udiff.DefaultContextLines)
	if err != nil { // the edits are of these texts
		panic(err)
	}

	for _, hunk := range unified.Hunks {
		for _, line := range hunk.Lines {
			switch line.Kind {
			case udiff.Insert:
				added++
			case udiff.Delete:
				removed++
			}
		}
	}

	// The heading with empty names: the caller prints one that says more.
	_, diff, _ = strings.Cut(unified.String(), "+++ \n")
	return diff, added, removed
}
