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
	Folded      []Row // equal lines far from any change; both sides are then empty
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

// Lines compares two texts, and folds equal lines far from any change. It returns nil if the
// texts are equal.
func Lines(left, right string) []Row {
	if left == right {
		return nil
	}

	a, b := strings.Split(left, "\n"), strings.Split(right, "\n")
	rows := []Row{}
	i, j := 0, 0
	end := lcs.Diff{Start: len(a), End: len(a), ReplStart: len(b), ReplEnd: len(b)}
	for _, c := range append(changes(a, b, roundsMax), end) {
		// The library reports differences. Everything that it steps over is in common.
		for ; i < c.Start; i, j = i+1, j+1 {
			rows = append(rows, Row{Left: wholeLine(i, a[i], false), Right: wholeLine(j, b[j], false)})
		}
		// The lines between two common ones were replaced, as far as both sides have
		// some.
		rows = appendReplaced(rows, a, b, i, c.End, j, c.ReplEnd)
		i, j = c.End, c.ReplEnd
	}

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
	found := changes(a, b, roundsMax)
	same := len(a)
	for _, c := range found {
		same -= c.End - c.Start
	}
	// Less than a third of the longer line is mostly spaces and commas.
	if 3*same < max(len(a), len(b)) {
		return []Word{{strings.Join(a, ""), false}}, []Word{{strings.Join(b, ""), false}}
	}

	var left, right []Word
	i := 0
	for _, c := range found {
		common := a[i:c.Start]
		left = appendWords(appendWords(left, common, false), a[c.Start:c.End], true)
		right = appendWords(appendWords(right, common, false), b[c.ReplStart:c.ReplEnd], true)
		i = c.End
	}

	return appendWords(left, a[i:], false), appendWords(right, a[i:], false)
}

// appendWords appends words of a line as one piece, unless there are none.
func appendWords(side []Word, words []string, change bool) []Word {
	if len(words) == 0 {
		return side
	}
	return append(side, Word{strings.Join(words, ""), change})
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

// collapse folds equal lines far from any change. A single one stays as it is: the note about it
// would take as much room.
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
		switch far := rows[from:i]; {
		case len(far) == 1:
			out = append(out, far[0])
		case len(far) > 1:
			out = append(out, Row{Folded: far})
		}

		if i < len(rows) {
			out = append(out, rows[i])
			i++
		}
	}

	return out
}
