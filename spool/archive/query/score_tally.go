package query

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"unique"

	"promptspool/api/wire"
)

// categoriesMax bounds the categories of one name that are counted apart: the first by text.
const categoriesMax = 100

// scoreKey is what a scoreTally counts.
type scoreKey struct {
	name string
	kind wire.ScoreKind
}

// judged is how a target was judged under one name, by all of its authors.
type judged struct {
	scoreKey
	exact fixed
	class int16
	text  string // of a category
}

// judge appends how a row's target was judged. Authors of one name are taken together: numbers and
// booleans by their mean, with true as 1. Of categories, each author's counts.
func judge(into []judged, scores []wire.Score) []judged {
	for len(scores) > 0 {
		name, same := scores[0].Name, 1
		for same < len(scores) && scores[same].Name == name {
			same++
		}

		var numbers, booleans together
		for i := range scores[:same] {
			switch s := &scores[i]; s.Kind {
			case wire.ScoreCategory:
				key := scoreKey{name, wire.ScoreCategory}
				into = append(into, judged{scoreKey: key, text: s.Text})
			case wire.ScoreBoolean:
				booleans.add(s)
			default:
				numbers.add(s)
			}
		}
		into = booleans.judge(numbers.judge(into, name), name)
		scores = scores[same:]
	}

	return into
}

// together takes authors together.
type together struct {
	sum   float64
	count int
	kind  wire.ScoreKind // integers and numbers together are numbers
}

func (t *together) add(s *wire.Score) {
	t.sum += s.Number
	t.count++
	t.kind = max(t.kind, s.Kind)
}

func (t *together) mean() float64 { return t.sum / float64(t.count) }

func (t *together) judge(into []judged, name string) []judged {
	if t.count == 0 {
		return into
	}
	x := t.mean()

	return append(into, judged{scoreKey: scoreKey{name, t.kind}, exact: fixedOf(x), class: scoreClass(x)})
}

// fixed is a sum of numbers to the billionth. Its parts are integers, so order does not matter.
type fixed struct{ whole, billionths int64 }

func fixedOf(x float64) fixed {
	whole := math.Trunc(x)
	return fixed{int64(whole), int64(math.Round((x - whole) * 1e9))}
}

func (f *fixed) add(other fixed, n int64) {
	f.whole += n * other.whole
	f.billionths += n * other.billionths
}

func (f fixed) float() float64 { return float64(f.whole) + float64(f.billionths)/1e9 }

// A class of numbers is their sign, their exponent and the next seven bits. It has one integer at
// most up to 256, and numbers that differ by less than 0.8 %.
const (
	scoreClassBits  = 16      // of a float32, which the class leaves out
	scoreClassLeast = 92 << 7 // of 2^-35: what is below counts as 0
)

// scoreClass returns the class of a number. Classes ascend with their numbers.
func scoreClass(x float64) int16 {
	class := int16(math.Float32bits(float32(math.Abs(x)))>>scoreClassBits) - scoreClassLeast
	class = max(class, 0)
	if x < 0 {
		return -class
	}
	return class
}

// classShown returns the number of a class with the fewest digits: in that of 0.3 it is 0.3.
func classShown(class int16) float64 {
	sign := math.Copysign(1, float64(class))
	bits := uint32(max(class, -class)+scoreClassLeast) << scoreClassBits
	least := float64(math.Float32frombits(bits))
	middle := float64(math.Float32frombits(bits | 1<<(scoreClassBits-1)))
	switch {
	case class == 0:
		return 0
	case least == math.Trunc(least):
		return sign * least
	}

	for digits := 1; digits < 6; digits++ {
		x, _ := strconv.ParseFloat(strconv.FormatFloat(middle, 'g', digits, 64), 64)
		if scoreClass(sign*x) == class {
			return sign * x
		}
	}
	return sign * least
}

// times is how often a value came.
type times[K cmp.Ordered] struct {
	value K
	n     int64
}

// addTimes adds n to the times of a value. Lists ascend, and have nothing that never came.
func addTimes[K cmp.Ordered](list []times[K], value K, n int64) []times[K] {
	// Summaries have them in this order.
	if last := len(list) - 1; n != 0 && (last < 0 || list[last].value < value) {
		return append(list, times[K]{value, n})
	}

	i, known := slices.BinarySearchFunc(list, value, func(t times[K], value K) int {
		return cmp.Compare(t.value, value)
	})
	if !known {
		list = slices.Insert(list, i, times[K]{value: value})
	}
	list[i].n += n
	if list[i].n == 0 {
		list = slices.Delete(list, i, i+1)
	}

	return list
}

// timesOf returns how often all values came.
func timesOf[K cmp.Ordered](list []times[K]) (n int64) {
	for _, v := range list {
		n += v.n
	}
	return n
}

// mergeTimes adds all of other to list.
func mergeTimes[K cmp.Ordered](list, other []times[K]) []times[K] {
	if len(list) == 0 {
		return append(list, other...)
	}

	// Both ascend. An answer merges millions, so none is searched for.
	i := 0
	for _, v := range other {
		for i < len(list) && list[i].value < v.value {
			i++
		}
		if i == len(list) || list[i].value != v.value {
			list = slices.Insert(list, i, times[K]{value: v.value})
		}
		list[i].n += v.n
	}

	return list
}

// scoreTally counts the scores of one name and kind. It does not depend on their order.
type scoreTally struct {
	scoreKey
	count   int64
	sum     fixed
	classes []times[int16]  // of numbers and booleans
	texts   []times[string] // of categories; see categoriesMax
	rest    int64           // of the other categories
}

// add counts what was judged n times.
func (t *scoreTally) add(j *judged, n int64) {
	t.count += n
	if t.kind != wire.ScoreCategory {
		t.sum.add(j.exact, n)
		t.classes = addTimes(t.classes, j.class, n)
		return
	}

	t.addText(j.text, n)
}

func (t *scoreTally) addText(text string, n int64) {
	// Once some are left out, one that comes after all others may be one of these.
	if last := len(t.texts) - 1; t.rest > 0 && (last < 0 || text > t.texts[last].value) {
		t.rest += n
		return
	}
	// One copy for all tallies.
	t.texts = addTimes(t.texts, unique.Make(text).Value(), n)
	t.bound()
}

// bound leaves out the categories that are too many.
func (t *scoreTally) bound() {
	for last := len(t.texts) - 1; last >= categoriesMax; last-- {
		t.rest += t.texts[last].n
		t.texts = slices.Delete(t.texts, last, last+1)
	}
}

func (t *scoreTally) merge(other *scoreTally) {
	t.count += other.count
	t.sum.add(other.sum, 1)
	t.classes = mergeTimes(t.classes, other.classes)
	t.texts = mergeTimes(t.texts, other.texts)
	t.rest += other.rest
	t.bound()
}

// restrict takes out what does not fit a definition, and returns how much that is.
func (t *scoreTally) restrict(d *wire.ScoreDefinition) (unfit int64) {
	t.classes, unfit = fitting(t.classes, func(class int16) bool {
		return (d.Min == nil || class >= scoreClass(*d.Min)) && (d.Max == nil || class <= scoreClass(*d.Max))
	})
	// Only the classes tell what was taken out, which may be far larger than the rest.
	if unfit > 0 {
		t.sum = fixed{}
		for _, v := range t.classes {
			t.sum.add(fixedOf(classShown(v.value)), v.n)
		}
	}

	if len(d.Categories) > 0 {
		t.texts, unfit = fitting(t.texts, func(text string) bool { return slices.Contains(d.Categories, text) })
		unfit, t.rest = unfit+t.rest, 0
	}
	t.count -= unfit

	return unfit
}

// fitting takes out of list what does not fit, and returns how often that came.
func fitting[K cmp.Ordered](list []times[K], fits func(K) bool) (kept []times[K], unfit int64) {
	kept = slices.DeleteFunc(list, func(v times[K]) bool {
		taken := !fits(v.value)
		if taken {
			unfit += v.n
		}
		return taken
	})
	return kept, unfit
}

// summarizeScores returns the sum of one name in the form of the API. Its kind is that of its
// definition or, without one, that of the most scores; those of other kinds are unfit.
func summarizeScores(tallies []*scoreTally, defined wire.ScoreDefinitions) wire.ScoreSum {
	var counts [wire.ScoreNone]int64
	most := wire.ScoreNumber
	for _, t := range tallies {
		kind := max(t.kind, wire.ScoreNumber) // an integer is one
		counts[kind] += t.count
		if counts[kind] > counts[most] {
			most = kind
		}
	}
	w := wire.ScoreSum{Name: tallies[0].name, Kind: most.String()}
	definition := defined.Of(w.Name)
	if definition != nil {
		w.Kind = definition.Kind
	}

	all := tallies[0]
	if len(tallies) > 1 || definition != nil {
		all = &scoreTally{}
		for _, t := range tallies {
			if t.kind.String() != w.Kind {
				w.Unfit += t.count
				continue
			}
			// Where there are both, a number.
			all.kind = t.kind
			all.merge(t)
		}
	}
	if definition != nil {
		w.Unfit += all.restrict(definition)
	}

	w.Count = all.count
	if all.kind == wire.ScoreCategory {
		all.categories(&w)
	} else if w.Count > 0 {
		all.numbers(&w, definition)
	}

	return w
}

// categories fills in what an answer has of categories: the most frequent first.
func (t *scoreTally) categories(w *wire.ScoreSum) {
	w.Categories = []wire.CategoryCount{}
	list := func(text string, n int64) {
		share := float64(n) / float64(t.count)
		w.Categories = append(w.Categories, wire.CategoryCount{Value: text, Count: n, Share: share})
	}
	for _, v := range t.texts {
		list(v.value, v.n)
	}
	slices.SortStableFunc(w.Categories, func(a, b wire.CategoryCount) int { return cmp.Compare(b.Count, a.Count) })
	if t.rest > 0 {
		list(wire.ScoresOther, t.rest)
	}
}

// numbers fills in what an answer has of numbers and booleans.
func (t *scoreTally) numbers(w *wire.ScoreSum, d *wire.ScoreDefinition) {
	w.Mean = t.sum.float() / float64(t.count)
	first, last := t.classes[0].value, t.classes[len(t.classes)-1].value
	w.Min, w.Max = classShown(first), classShown(last)

	from, to := 0.0, 100.0
	if t.kind != wire.ScoreInteger {
		from, to = scoreSpan(w.Min, w.Max, d)
		w.From, w.To = &from, &to
	}
	seen, part := int64(0), 0
	above := func() int16 { return scoreClass(from + (to-from)*float64(part+1)/10) }
	next := above()
	for _, v := range t.classes {
		// The upper end belongs to the last tenth.
		for part < 9 && v.value >= next {
			part++
			next = above()
		}
		w.Histogram[part] += v.n

		if half := (t.count + 1) / 2; seen < half && seen+v.n >= half {
			w.P50 = classShown(v.value)
		}
		seen += v.n
	}
}

// scoreSpan returns the ends of a histogram: those of the definition, or a power of ten.
func scoreSpan(least, most float64, d *wire.ScoreDefinition) (from, to float64) {
	if d != nil && d.Min != nil && d.Max != nil {
		return *d.Min, *d.Max
	}

	to = 1
	for to < max(most, -least) {
		to *= 10
	}
	if least < 0 {
		from = -to
	}

	return from, to
}
