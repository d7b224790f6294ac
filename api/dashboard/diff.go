package dashboard

import (
	"strings"
	"unicode"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// diffRow is a line of a comparison: what stood left, what stands right. A side without a line has Number 0.
type diffRow struct {
	Left, Right diffSide
	Skipped     int // equal lines that are left out here; then both sides are empty
}

// diffSide is one side of a row.
type diffSide struct {
	Number int // of the line, from 1
	Words  []diffWord
	Change bool
}

// diffWord is a stretch of a line; Change says that the other side lacks it.
type diffWord struct {
	Text   string
	Change bool
}

const (
	diffContext = 3  // equal lines shown around a change
	diffRounds  = 32 // times some hundred changes that are found between two texts; the rest counts as one change
)

// diff compares two texts line by line, and within lines that took each other's place word by word. Equal lines far from
// any change are left out. It is nil if the texts are equal.
func diff(left, right string) []diffRow {
	if left == right {
		return nil
	}
	a, b := strings.Split(left, "\n"), strings.Split(right, "\n")
	rows := []diffRow{}
	i, j := 0, 0
	for _, same := range append(common(a, b), [2]int{len(a), len(b)}) {
		rows = replaced(rows, a, b, i, same[0], j, same[1])
		if i, j = same[0]+1, same[1]+1; same[0] < len(a) {
			rows = append(rows, diffRow{Left: whole(same[0], a[same[0]], false), Right: whole(same[1], b[same[1]], false)})
		}
	}
	return folded(rows)
}

// replaced adds the lines i to iEnd of a, which went, beside the lines j to jEnd of b, which came.
func replaced(rows []diffRow, a, b []string, i, iEnd, j, jEnd int) []diffRow {
	for ; i < iEnd || j < jEnd; i, j = i+1, j+1 {
		var row diffRow
		switch {
		case i < iEnd && j < jEnd:
			l, r := words(a[i]), words(b[j])
			row.Left = diffSide{i + 1, nil, true}
			row.Right = diffSide{j + 1, nil, true}
			row.Left.Words, row.Right.Words = wordDiff(l, r)
		case i < iEnd:
			row.Left = whole(i, a[i], true)
		default:
			row.Right = whole(j, b[j], true)
		}
		rows = append(rows, row)
	}
	return rows
}

// whole is a line that is shown as it is.
func whole(i int, line string, change bool) diffSide {
	return diffSide{i + 1, []diffWord{{line, false}}, change}
}

// wordDiff marks what is not common to two lines. Lines with little in common are not marked: that would only confuse.
func wordDiff(a, b []string) ([]diffWord, []diffWord) {
	same := common(a, b)
	if 3*len(same) < max(len(a), len(b)) {
		return []diffWord{{strings.Join(a, ""), false}}, []diffWord{{strings.Join(b, ""), false}}
	}
	var left, right wordSide
	i, j := 0, 0
	for _, s := range same {
		left.add(a[i:s[0]], true)
		right.add(b[j:s[1]], true)
		i, j = s[0]+1, s[1]+1

		left.add(a[s[0]:i], false)
		right.add(b[s[1]:j], false)
	}
	left.add(a[i:], true)
	right.add(b[j:], true)

	return left.end(), right.end()
}

// wordSide gathers one side of a line. Words of the same kind become one stretch.
type wordSide struct {
	words  []diffWord
	text   strings.Builder // of the open stretch
	change bool            // what the open stretch is
}

func (s *wordSide) add(words []string, change bool) {
	if len(words) == 0 {
		return
	}
	if change != s.change {
		s.end()
		s.change = change
	}

	for _, w := range words {
		s.text.WriteString(w)
	}
}

// end closes the open stretch and returns all of them.
func (s *wordSide) end() []diffWord {
	if s.text.Len() > 0 {
		s.words = append(s.words, diffWord{s.text.String(), s.change})
		s.text.Reset()
	}

	return s.words
}

// words cuts a line where letters and digits begin or end.
func words(line string) []string {
	var out []string
	from, before := 0, false
	for i, r := range line {
		now := unicode.IsLetter(r) || unicode.IsDigit(r)
		if i > 0 && !(now && before) {
			out = append(out, line[from:i])
			from = i
		}
		before = now
	}
	return append(out, line[from:])
}

// common returns what a and b have in common, as pairs of their indices in rising order.
func common(a, b []string) [][2]int {
	var pairs [][2]int
	i, j := 0, 0
	keep := func(end int) {
		for ; i < end; i, j = i+1, j+1 {
			pairs = append(pairs, [2]int{i, j})
		}
	}

	for _, c := range changes(a, b, diffRounds) {
		keep(c.Start)
		i, j = c.End, c.ReplEnd
	}
	keep(len(a))

	return pairs
}

// changes returns what makes b of a. Its time is linear in the length of both.
func changes(a, b []string, rounds int) []lcs.Diff {
	found := lcs.DiffLines(a, b)
	if rounds == 1 || len(found) < 2 {
		return found
	}

	// The library gives up after some hundred changes, and reports the stretch between the first
	// and the last of them as one. Look into each stretch again.
	var all []lcs.Diff
	for _, c := range found {
		for _, within := range changes(a[c.Start:c.End], b[c.ReplStart:c.ReplEnd], rounds-1) {
			all = append(all, lcs.Diff{
				Start:     c.Start + within.Start,
				End:       c.Start + within.End,
				ReplStart: c.ReplStart + within.ReplStart,
				ReplEnd:   c.ReplStart + within.ReplEnd,
			})
		}
	}

	return all
}

// folded leaves out equal lines far from any change.
func folded(rows []diffRow) []diffRow {
	near := make([]bool, len(rows))
	for i, r := range rows {
		if r.Left.Change || r.Right.Change {
			for k := max(0, i-diffContext); k <= min(len(rows)-1, i+diffContext); k++ {
				near[k] = true
			}
		}
	}
	var out []diffRow
	for i := 0; i < len(rows); {
		from := i
		for i < len(rows) && !near[i] {
			i++
		}
		switch skipped := i - from; {
		case skipped == 1:
			out = append(out, rows[from])
		case skipped > 1:
			out = append(out, diffRow{Skipped: skipped})
		}
		if i < len(rows) {
			out = append(out, rows[i])
			i++
		}
	}
	return out
}
