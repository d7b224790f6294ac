package textdiff

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// told prints a comparison as diff does: - before removed lines, + before added ones, and
// [ ] around changed words.
func told(rows []Row) string {
	var b strings.Builder
	side := func(sign string, s Side) {
		if s.Number == 0 {
			return
		}

		b.WriteString(sign)
		for _, w := range s.Words {
			if w.Change {
				w.Text = "[" + w.Text + "]"
			}
			b.WriteString(w.Text)
		}
		b.WriteString("\n")
	}

	for _, r := range rows {
		switch {
		case r.Folded != nil:
			b.WriteString("...\n")
		case !r.Left.Change && !r.Right.Change:
			side("  ", r.Left)
		default:
			side("- ", r.Left)
			side("+ ", r.Right)
		}
	}

	return b.String()
}

func TestADiffTellsLinesAndWordsThatChanged(t *testing.T) {
	for name, c := range map[string]struct{ left, right, want string }{
		"nothing": {"a\nb", "a\nb", ""},
		"a word": {"You answer in one word.", "You answer in two words.",
			"- You answer in [one] [word].\n+ You answer in [two] [words].\n"},
		"an added line":  {"a\nc", "a\nb\nc", "  a\n+ b\n  c\n"},
		"a removed line": {"a\nb\nc", "a\nc", "  a\n- b\n  c\n"},
		"lines with nothing in common": {"one two three four", "alpha/beta",
			"- one two three four\n+ alpha/beta\n"},
		"lines far from a change are folded": {"1\n2\n3\n4\n5\n6\n7\nx", "1\n2\n3\n4\n5\n6\n7\ny",
			"...\n  5\n  6\n  7\n- x\n+ y\n"},
	} {
		if got := told(Lines(c.left, c.right)); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func TestEachSideOfADiffIsTheTextItself(t *testing.T) {
	line := rapid.SampledFrom([]string{"", "a b", "a c", "you answer", "ünï cödé {x}"})
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(line, 1, 12).Draw(t, "lines"), "\n")
	})

	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "left"), text.Draw(t, "right")
		left, right := strings.Split(a, "\n"), strings.Split(b, "\n")

		var unfolded []Row
		for _, r := range Lines(a, b) {
			if r.Folded == nil {
				r.Folded = []Row{r}
			}
			unfolded = append(unfolded, r.Folded...)
		}

		seen := [2]int{} // lines on each side
		for _, r := range unfolded {
			for k, s := range []Side{r.Left, r.Right} {
				if s.Number == 0 {
					continue
				}
				seen[k]++

				var whole strings.Builder
				for _, w := range s.Words {
					whole.WriteString(w.Text)
				}

				if lines := [][]string{left, right}[k]; s.Number != seen[k] ||
					whole.String() != lines[s.Number-1] {
					t.Fatalf("line %d of side %d is shown as %q", s.Number, k, whole.String())
				}
			}
		}

		if a != b && (seen[0] != len(left) || seen[1] != len(right)) {
			t.Fatalf("%d and %d lines are seen, want %d and %d", seen[0], seen[1], len(left), len(right))
		}
	})
}

func TestManyChangesAreFoundOneByOne(t *testing.T) {
	var left, right []string
	for i := range 2000 {
		line := fmt.Sprint("line ", i)
		left = append(left, line)
		if i%4 == 0 {
			line += " changed"
		}
		right = append(right, line)
	}

	changed := 0
	for _, r := range Lines(strings.Join(left, "\n"), strings.Join(right, "\n")) {
		if r.Left.Change || r.Right.Change {
			changed++
		}
	}
	if changed != 500 {
		t.Errorf("%d lines are shown as changed, want 500", changed)
	}
}
