package main

import (
	"fmt"
	"strings"
)

const (
	diffContext  = 3       // lines around a change that are shown
	diffCellsMax = 4 << 20 // of the table of line pairs; beyond it all in between counts as changed
)

// edit is a line of a diff: ' ' in both, '-' only before, '+' only after.
type edit struct {
	kind byte
	line string
}

// lineDiff tells the lines that differ, as diff -u does but without names, and how many were added and removed.
func lineDiff(before, after string) (diff string, added, removed int) {
	edits := editsOf(splitLines(before), splitLines(after))
	var b strings.Builder
	for i := 0; i < len(edits); {
		if edits[i].kind == ' ' {
			i++
			continue
		}
		start, end := max(0, i-diffContext), i // a hunk ends where more than twice the context is unchanged
		for j := i; j < len(edits) && j-end <= 2*diffContext; j++ {
			if edits[j].kind != ' ' {
				end = j
			}
		}
		i = min(len(edits), end+1+diffContext)
		old, new := linesOf(edits[:start])
		olds, news := linesOf(edits[start:i])
		fmt.Fprintf(&b, "@@ -%s +%s @@\n", span(old, olds), span(new, news))
		for _, e := range edits[start:i] {
			b.WriteString(string(e.kind) + e.line + "\n")
		}
	}
	for _, e := range edits {
		switch e.kind {
		case '+':
			added++
		case '-':
			removed++
		}
	}
	return b.String(), added, removed
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// linesOf is how many lines of the one text and of the other edits stand for.
func linesOf(edits []edit) (before, after int) {
	for _, e := range edits {
		if e.kind != '+' {
			before++
		}
		if e.kind != '-' {
			after++
		}
	}
	return before, after
}

func span(before, lines int) string {
	if lines == 0 {
		return fmt.Sprintf("%d,0", before)
	}
	return fmt.Sprintf("%d,%d", before+1, lines)
}

// editsOf makes b of a by as few lines as possible: what stays is the longest common subsequence.
func editsOf(a, b []string) []edit {
	var edits []edit
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		edits = append(edits, edit{' ', a[same]})
		same++
	}
	a, b = a[same:], b[same:]
	end := 0
	for end < min(len(a), len(b)) && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	tail := a[len(a)-end:]
	a, b = a[:len(a)-end], b[:len(b)-end]

	common := commonLines(a, b)
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case common != nil && i < len(a) && j < len(b) && a[i] == b[j]:
			edits = append(edits, edit{' ', a[i]})
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || common == nil || common[i+1][j] >= common[i][j+1]):
			edits = append(edits, edit{'-', a[i]})
			i++
		default:
			edits = append(edits, edit{'+', b[j]})
			j++
		}
	}
	for _, line := range tail {
		edits = append(edits, edit{' ', line})
	}
	return edits
}

// commonLines is, at [i][j], how long the longest common subsequence of a[i:] and b[j:] is; nil if the table would be too large.
func commonLines(a, b []string) [][]int32 {
	if (len(a)+1)*(len(b)+1) > diffCellsMax {
		return nil
	}
	common := make([][]int32, len(a)+1)
	for i := range common {
		common[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	return common
}
