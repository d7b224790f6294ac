package main

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
)

const diffContext = 3 // equal lines shown around a change

// lineDiff returns the lines that differ, as diff -u does but without file names, and how many were added and removed.
func lineDiff(before, after string) (diff string, added, removed int) {
	a, b := splitLines(before), splitLines(after)
	changes := lcs.DiffLines(a, b)

	var text strings.Builder
	write := func(sign string, lines []string) {
		for _, line := range lines {
			text.WriteString(sign + line + "\n")
		}
	}

	for len(changes) > 0 {
		hunk := 1 // changes in it: those whose context would meet
		for hunk < len(changes) && changes[hunk].Start-changes[hunk-1].End <= 2*diffContext {
			hunk++
		}

		first, last := changes[0], changes[hunk-1]
		lead := min(first.Start, diffContext)
		tail := min(len(a)-last.End, diffContext)
		fmt.Fprintf(&text, "@@ -%s +%s @@\n",
			lineRange(first.Start-lead, last.End+tail),
			lineRange(first.ReplStart-lead, last.ReplEnd+tail))

		from := first.Start - lead
		for _, c := range changes[:hunk] {
			write(" ", a[from:c.Start])
			write("-", a[c.Start:c.End])
			write("+", b[c.ReplStart:c.ReplEnd])
			from = c.End
			removed += c.End - c.Start
			added += c.ReplEnd - c.ReplStart
		}
		write(" ", a[from:from+tail])

		changes = changes[hunk:]
	}

	return text.String(), added, removed
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}

	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// lineRange writes the lines from start (counted from 0) to end as a hunk's head does.
func lineRange(start, end int) string {
	if start == end {
		return fmt.Sprintf("%d,0", start)
	}

	return fmt.Sprintf("%d,%d", start+1, end-start)
}
