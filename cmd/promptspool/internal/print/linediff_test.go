package print

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestALineDiffTurnsTheOneTextIntoTheOther(t *testing.T) {
	diff := LineDiff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n")
	if want := "@@ -2,8 +2,9 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n+10\n"; diff != want {
		t.Errorf("the diff is %q, want %q", diff, want)
	}

	line := rapid.SampledFrom([]string{"a", "b", "c", ""})
	text := rapid.Custom(func(t *rapid.T) string {
		var text strings.Builder
		for _, l := range rapid.SliceOf(line).Draw(t, "lines") {
			text.WriteString(l + "\n")
		}
		return text.String()
	})
	rapid.Check(t, func(t *rapid.T) {
		before, after := text.Draw(t, "before"), text.Draw(t, "after")
		diff := LineDiff(before, after)
		if got := patched(t, before, diff); got != after {
			t.Fatalf("%q and this diff give %q, not %q:\n%s", before, got, after, diff)
		}
	})
}

// patched applies a diff to a text, as patch does, and checks the heads of its hunks.
func patched(t *rapid.T, text, diff string) string {
	lines := splitLines(text)
	var out []string
	at, ends := 0, [2]int{} // of the hunk, in each text

	for _, l := range splitLines(diff) {
		if numbers, ok := strings.CutPrefix(l, "@@ "); ok {
			if at != ends[0] || len(out) != ends[1] {
				t.Fatalf("a hunk ends at lines %d and %d, its head says %v", at, len(out), ends)
			}
			from, to := lineRangeOf(t, numbers, 0), lineRangeOf(t, numbers, 1)
			out = append(out, lines[at:from[0]]...)
			at, ends = from[0], [2]int{from[1], to[1]}
			if len(out) != to[0] {
				t.Fatalf("a hunk begins at line %d, its head says %d", len(out), to[0])
			}
			continue
		}

		if l[0] != '+' {
			if lines[at] != l[1:] {
				t.Fatalf("line %d is %q, the diff says %q", at, lines[at], l[1:])
			}
			at++
		}
		if l[0] != '-' {
			out = append(out, l[1:])
		}
	}

	out = append(out, lines[at:]...)
	if len(out) == 0 {
		return ""
	}

	return strings.Join(out, "\n") + "\n"
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}

	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// lineRangeOf returns where the lines of one side of a hunk's head begin and end, counted
// from 0.
func lineRangeOf(t *rapid.T, head string, side int) [2]int {
	start, count := 0, 1 // a head leaves out the count of one line
	if n, err := fmt.Sscanf(strings.Fields(head)[side][1:], "%d,%d", &start, &count); n == 0 {
		t.Fatal(err)
	}
	if count > 0 {
		start--
	}

	return [2]int{start, start + count}
}
