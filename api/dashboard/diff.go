package dashboard

import (
	"strings"
	"unicode"
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
	diffContext  = 3       // equal lines that are shown around a change
	diffCellsMax = 4 << 20 // of the table that finds what two texts have in common; beyond it all is a change
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
func wordDiff(a, b []string) (left, right []diffWord) {
	same := common(a, b)
	if 3*len(same) < max(len(a), len(b)) {
		return []diffWord{{strings.Join(a, ""), false}}, []diffWord{{strings.Join(b, ""), false}}
	}
	i, j := 0, 0
	for _, s := range append(same, [2]int{len(a), len(b)}) {
		left = add(left, strings.Join(a[i:s[0]], ""), true)
		right = add(right, strings.Join(b[j:s[1]], ""), true)
		if i, j = s[0]+1, s[1]+1; s[0] < len(a) {
			left, right = add(left, a[s[0]], false), add(right, b[s[1]], false)
		}
	}
	return left, right
}

func add(words []diffWord, text string, change bool) []diffWord {
	last := len(words) - 1
	switch {
	case text == "":
	case last >= 0 && words[last].Change == change:
		words[last].Text += text
	default:
		words = append(words, diffWord{text, change})
	}
	return words
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

// common is a longest sequence of elements that a and b have in common, as pairs of their indices.
func common(a, b []string) [][2]int {
	var pairs, tail [][2]int
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		pairs = append(pairs, [2]int{head, head})
		head++
	}
	endA, endB := len(a), len(b)
	for endA > head && endB > head && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
	}
	for i := endA; i < len(a); i++ {
		tail = append(tail, [2]int{i, i - endA + endB})
	}
	for _, p := range longest(a[head:endA], b[head:endB]) {
		pairs = append(pairs, [2]int{p[0] + head, p[1] + head})
	}
	return append(pairs, tail...)
}

// longest is common by the textbook's table: entry (i, j) is how much a[i:] and b[j:] have in common.
func longest(a, b []string) (pairs [][2]int) {
	width := len(b) + 1
	if len(a) == 0 || len(b) == 0 || (len(a)+1)*width > diffCellsMax {
		return nil
	}
	table := make([]int32, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				table[i*width+j] = table[(i+1)*width+j+1] + 1
			} else {
				table[i*width+j] = max(table[(i+1)*width+j], table[i*width+j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case table[(i+1)*width+j] >= table[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
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
