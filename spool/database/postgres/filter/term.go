package filter

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/postgres/schema"
)

// A term stands for one text of a record in one column. It is a hash of the account, the kind of
// the text, the metadata key if the text is a metadata value, and the text. One index over all
// terms of a record answers "is" and "in" on every text field within one account.
//
// 64-bit hashes collide by chance once in millions of years of writing. A caller that
// provokes a collision only deceives its own account.

// term returns a term.
func term(account string, of kind, key, text string) int64 {
	h := fnv.New64a()
	var head [24]byte
	// FNV, not something random: terms are stored, and every server must find the same.
	head[0] = byte(of)
	binary.LittleEndian.PutUint64(head[8:], uint64(len(account)))
	binary.LittleEndian.PutUint64(head[16:], uint64(len(key)))

	// The lengths come first, so that no two sets of texts are hashed as the same bytes.
	_, _ = h.Write(head[:])
	_, _ = h.Write([]byte(account))
	_, _ = h.Write([]byte(key))
	_, _ = h.Write([]byte(text))
	return int64(h.Sum64())
}

// kind is what the texts of a term are. Terms are stored, so the numbers never change.
type kind byte

// Kinds that are of several columns together, or of none. They follow the columns of 0.1.0.
const (
	metadataKeys     kind = 33 + iota // a metadata key
	scoreCells                        // the cell of a score, with its name as the key or without
	scoreValues                       // the text of one, as with cells
	scoreAuthors                      // the author of one, as with cells
	templateVersions                  // a version, with the template's name as the key
	days                              // the UTC day of the order time, since 1970
	hiddenMetadata                    // a metadata value that the row does not show
	hiddenKeys                        // the key of one, if there are more than hiddenMax
)

// kindOf returns the kind of the texts of a column: its number, which leaves out the kinds above.
func kindOf(c rowcode.Column) kind {
	if kind(c) < metadataKeys {
		return kind(c)
	}
	return kind(c) + hiddenKeys + 1 - metadataKeys
}

// scoreTexts are the kinds that the filter fields of scores' texts ask for, besides that of names.
var scoreTexts = map[string]kind{"score_value": scoreValues, "score_author": scoreAuthors}

// textColumns are the columns of texts that filters ask for, with what tells a row's texts.
var textColumns = func() map[rowcode.Column]func(row *wire.Row) []string {
	columns := make(map[rowcode.Column]func(row *wire.Row) []string)
	for c := range rowcode.ColumnBody {
		if d := rowcode.Define(c); d.Fields != nil && d.Texts() != nil {
			columns[c] = d.Texts()
		}
	}
	return columns
}()

// hasTerms reports whether the texts of a column have terms.
func hasTerms(c rowcode.Column) bool {
	return textColumns[c] != nil || c == rowcode.ColumnMetadata || c == rowcode.ColumnScores
}

// daysMax bounds the days that are looked up by their terms. Each costs as much as any other
// term with as many records.
const daysMax = 3

// DayTerms returns the terms of the days between two order times, both included, or nil if
// there are too many.
func DayTerms(account string, oldest, newest int64) (terms []int64) {
	// Without bounds the two are centuries apart.
	first, last := dayOf(oldest), dayOf(newest)
	if last-first >= daysMax {
		return nil
	}
	for day := first; day <= last; day++ {
		terms = append(terms, term(account, days, "", strconv.FormatInt(day, 10)))
	}
	return terms
}

func dayOf(at int64) int64 { return at / int64(24*time.Hour) }

// hiddenMax bounds the values that a header has terms of, although its row does not show them.
// Each change of the record writes all of them again.
const hiddenMax = 1000

// Terms returns the terms of a record, in order and each once. They are those of its row, and
// those of metadata values that the row does not show.
func Terms(account string, row *wire.Row, state *archive.State) []int64 {
	day := schema.Nanos(row.ListTime)
	terms := append(make([]int64, 0, 20), DayTerms(account, day, day)...)

	add := func(of kind, key, text string) { terms = append(terms, term(account, of, key, text)) }
	for c, texts := range textColumns {
		normal := rowcode.Define(c).Normal
		// In the form in which a filter asks for it; see statement.terms.
		for _, text := range texts(row) {
			if normal != nil {
				text = normal(text)
			}
			add(kindOf(c), "", text)
		}
	}

	// The pair by itself, because each alone finds far too many; see statement.versions.
	if row.PromptName != nil && row.PromptVersion != nil {
		add(templateVersions, *row.PromptName, strconv.FormatInt(*row.PromptVersion, 10))
	}
	for _, m := range row.Metadata {
		add(kindOf(rowcode.ColumnMetadata), m.Key, m.Value)
		add(metadataKeys, "", m.Key)
	}
	for _, s := range row.Scores {
		add(kindOf(rowcode.ColumnScores), "", s.Name)
		for _, name := range []string{s.Name, ""} {
			if s.Kind != wire.ScoreCategory {
				add(scoreCells, name, strconv.Itoa(cellOf(s.Number)))
			}
			if !s.IsNumber() {
				add(scoreValues, name, s.ScoreValue.String())
			}
			if s.Author != "" {
				add(scoreAuthors, name, s.Author)
			}
		}
	}
	// Of very many it adds the keys alone, and a deletion looks at the record itself.
	hidden := state.Hidden()
	for _, m := range hidden {
		if len(hidden) > hiddenMax {
			add(hiddenKeys, m.Key, "")
			continue
		}
		add(hiddenMetadata, m.Key, m.Value)
	}

	slices.Sort(terms)
	return slices.Compact(terms)
}

// MetadataTerms returns the terms of a metadata value. A record that may have the value has one
// of them, whether its row shows it or not.
func MetadataTerms(account, key, value string) []int64 {
	return []int64{
		term(account, hiddenKeys, key, ""),
		term(account, kindOf(rowcode.ColumnMetadata), key, value),
		term(account, hiddenMetadata, key, value),
	}
}

// Numbers of scores have terms of cells, so that a range is a list of terms. Every one of
// cellPoints is a cell, and so is each gap between two of them, all below and all above.
// They are numbered from the lowest: points have odd numbers, gaps even ones.

// cellPoints are where people set bounds: the hundredths up to 1, and the integers up to 100.
var cellPoints = func() (points []float64) {
	for i := range 100 {
		points = append(points, float64(i)/100)
	}
	for i := range 100 {
		points = append(points, float64(i+1))
	}
	return points
}()

// cellOf returns the cell of a number.
func cellOf(x float64) int {
	i, found := slices.BinarySearch(cellPoints, x)
	if found {
		return 2*i + 1
	}
	return 2 * i
}

// cellsOf returns the first and the last cell that a range meets. whole is false if it meets one
// of them in part.
func cellsOf(r query.Range) (first, last int, whole bool) {
	const point = 1
	first, last = cellOf(r.Least), cellOf(r.Most)

	whole = (first&point != 0 || first == 0 && math.IsInf(r.Least, -1)) &&
		(last&point != 0 || last == 2*len(cellPoints) && math.IsInf(r.Most, 1))
	if first&point != 0 && r.AboveOnly {
		first++
	}
	if last&point != 0 && r.BelowOnly {
		last--
	}

	return first, last, whole
}
