// Package textdiff compares two texts for people: line by line, and word by word within
// lines that replace each other. Its time is linear in the length of the texts.
package textdiff

import (
	"strings"
	"unicode"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// Row is a line of a comparison. A side without a line has Number 0.
type Row struct {
	Left, Right Side
	Skipped     int // equal lines that are left out here; both sides are then empty
}

// Side is one side of a row.
type Side struct {
	Number int // of the line, from 1
	Words  []Word
	Change bool
}

// Word is a piece of a line. Change is set if the other side lacks it.
type Word struct {
	Text   string
	Change bool
}

const (
	contextLines = 3 // equal lines shown around a change

	// roundsMax bounds how often the library is asked about the same piece. Each time it
	// finds some hundred changes more; what is left counts as one change.
	roundsMax = 32
)

// Lines compares two texts, and leaves out equal lines far from any change. It returns nil
// if the texts are equal.
func Lines(left, right string) []Row {
	if left == right {
		return nil
	}

	a, b := strings.Split(left, "\n"), strings.Split(right, "\n")
	rows := []Row{}
	i, j := 0, 0
	for _, same := range commonPairs(a, b) {
		// The lines between two common ones were replaced, as far as both sides have
		// some.
		rows = appendReplaced(rows, a, b, i, same[0], j, same[1])
		rows = append(rows, Row{
			Left:  wholeLine(same[0], a[same[0]], false),
			Right: wholeLine(same[1], b[same[1]], false),
		})
		i, j = same[0]+1, same[1]+1
	}
	rows = appendReplaced(rows, a, b, i, len(a), j, len(b))

	return collapse(rows)
}

// appendReplaced appends the lines i to iEnd of a, which were removed, beside the lines
// j to jEnd of b, which were added.
func appendReplaced(rows []Row, a, b []string, i, iEnd, j, jEnd int) []Row {
	for ; i < iEnd || j < jEnd; i, j = i+1, j+1 {
		var row Row
		switch {
		case i < iEnd && j < jEnd:
			left, right := compareWords(splitWords(a[i]), splitWords(b[j]))
			row.Left = Side{i + 1, left, true}
			row.Right = Side{j + 1, right, true}
		case i < iEnd:
			row.Left = wholeLine(i, a[i], true)
		default:
			row.Right = wholeLine(j, b[j], true)
		}

		rows = append(rows, row)
	}

	return rows
}

// wholeLine returns a line without marks on its words.
func wholeLine(i int, line string, change bool) Side {
	return Side{i + 1, []Word{{line, false}}, change}
}

// compareWords marks the words that two lines do not have in common. Lines with little in
// common are not marked, because that would only confuse.
func compareWords(a, b []string) ([]Word, []Word) {
	// Less than a third of the longer line is mostly spaces and commas.
	same := commonPairs(a, b)
	if 3*len(same) < max(len(a), len(b)) {
		return []Word{{strings.Join(a, ""), false}}, []Word{{strings.Join(b, ""), false}}
	}

	var left, right sideBuilder
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

// sideBuilder collects one side of a line. Adjacent words of the same kind are joined.
type sideBuilder struct {
	words  []Word
	text   strings.Builder // of the open piece
	change bool            // the kind of the open piece
}

func (s *sideBuilder) add(words []string, change bool) {
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

// end closes the open piece and returns all of them.
func (s *sideBuilder) end() []Word {
	if s.text.Len() > 0 {
		s.words = append(s.words, Word{s.text.String(), s.change})
		s.text.Reset()
	}

	return s.words
}

// splitWords splits a line where letters and digits begin or end. Every other character
// is a separate word.
func splitWords(line string) []string {
	var out []string
	from, inWord := 0, false
	for i, r := range line {
		letter := unicode.IsLetter(r) || unicode.IsDigit(r)
		if i > 0 && !(letter && inWord) {
			out = append(out, line[from:i])
			from = i
		}
		inWord = letter
	}

	return append(out, line[from:])
}

// commonPairs returns what a and b have in common, as pairs of indices in rising order.
func commonPairs(a, b []string) [][2]int {
	var pairs [][2]int
	i, j := 0, 0
	keep := func(end int) {
		for ; i < end; i, j = i+1, j+1 {
			pairs = append(pairs, [2]int{i, j})
		}
	}

	for _, c := range changes(a, b, roundsMax) {
		// The library reports differences. Everything that it steps over is in common.
		keep(c.Start)
		i, j = c.End, c.ReplEnd
	}
	keep(len(a))

	return pairs
}

// changes returns what turns a into b. Its time is linear in the length of both.
func changes(a, b []string, rounds int) []lcs.Diff {
	found := lcs.DiffLines(a, b)
	if rounds == 1 || len(found) < 2 {
		return found
	}

	// The library gives up after some hundred changes, and reports the piece between the
	// first and the last of them as one. Look into each piece again.
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

// collapse leaves out equal lines far from any change. A single one is kept: the note that
// a line is left out would need as much section.
func collapse(rows []Row) []Row {
	near := make([]bool, len(rows))
	for i, r := range rows {
		if r.Left.Change || r.Right.Change {
			for k := max(0, i-contextLines); k <= min(len(rows)-1, i+contextLines); k++ {
				near[k] = true
			}
		}
	}

	var out []Row
	for i := 0; i < len(rows); {
		from := i
		for i < len(rows) && !near[i] {
			i++
		}
		switch skipped := i - from; {
		case skipped == 1:
			out = append(out, rows[from])
		case skipped > 1:
			out = append(out, Row{Skipped: skipped})
		}

		if i < len(rows) {
			out = append(out, rows[i])
			i++
		}
	}

	return out
}
