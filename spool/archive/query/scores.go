package query

import (
	"cmp"
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"unique"

	"promptspool/api/wire"
)

// Bounds of what statistics keep of scores.
const (
	scoreNamesMax   = 200    // names of one scoreSums
	scoreAskedMax   = 100    // names that a filter asks for, which are never counted as others
	scoreTotalsMax  = 20_000 // tallies of all parts of a dimension
	scoreSeriesMax  = 50_000 // tallies of all buckets of a series: bucketsMax times scoreNamesMax fit
	scoresListedMax = 10_000 // sums that an answer lists for all parts of a series or a dimension
)

// scoreTally counts the scores of one name.
type scoreTally struct {
	name       string
	count, sum int64
	values     []scoreCount // by score
}

// scoreCount is how often a score was given.
type scoreCount struct {
	score uint8
	n     int64
}

// add counts a score n times.
func (s *scoreTally) add(score int, n int64) {
	score = min(max(score, 0), 100)
	s.count += n
	s.sum += n * int64(score)

	// Summaries have them in this order.
	if last := len(s.values) - 1; last < 0 || int(s.values[last].score) < score {
		s.values = append(s.values, scoreCount{uint8(score), n})
		return
	}

	i, known := slices.BinarySearchFunc(s.values, score, func(v scoreCount, score int) int {
		return cmp.Compare(int(v.score), score)
	})
	if known {
		s.values[i].n += n
		return
	}

	s.values = slices.Insert(s.values, i, scoreCount{uint8(score), n})
}

func (s *scoreTally) merge(other *scoreTally) {
	s.count += other.count
	s.sum += other.sum

	// Both ascend. An answer merges millions, so none is searched for.
	i := 0
	for _, v := range other.values {
		// A score that was taken back must not take up space in another tally.
		if v.n == 0 {
			continue
		}

		for i < len(s.values) && s.values[i].score < v.score {
			i++
		}
		if i == len(s.values) || s.values[i].score != v.score {
			s.values = slices.Insert(s.values, i, scoreCount{score: v.score})
		}
		s.values[i].n += v.n
	}
}

// scoreSums are the tallies of the names that rank first, and one of all others.
//
// Which names rank first depends on all names counted, not on their order. So the same
// records give the same answer, in whatever order a store has them.
type scoreSums struct {
	kept  []*scoreTally // by rank
	other *scoreTally   // nil if there are no others
}

// scoreBound ranks names and bounds what many scoreSums hold together.
type scoreBound struct {
	asked []string // sorted; they rank before the rest, and the rest by name
	most  int      // names that each scoreSums may keep
	held  int      // tallies that all scoreSums keep
	space int      // bounds held
}

func newScoreBound(asked []string, space int) *scoreBound {
	return &scoreBound{asked: asked, most: scoreNamesMax, space: space}
}

// compare ranks two names.
func (b *scoreBound) compare(x, y string) int {
	if len(b.asked) > 0 {
		_, first := slices.BinarySearch(b.asked, x)
		_, second := slices.BinarySearch(b.asked, y)
		if first != second {
			return cmp.Compare(btoi(second), btoi(first))
		}
	}

	return cmp.Compare(x, y)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// tally returns the tally in which a name counts.
func (b *scoreBound) tally(s *scoreSums, name string) *scoreTally {
	i, known := slices.BinarySearchFunc(s.kept, name, func(t *scoreTally, name string) int {
		return b.compare(t.name, name)
	})
	switch {
	case known:
		return s.kept[i]

	// Once there are others, some names that rank last were merged into them. A name that
	// ranks after all kept ones may be one of these, so it cannot have its own tally.
	case i == len(s.kept) && s.other != nil, i >= b.most:
		return b.others(s)
	}

	t := &scoreTally{name: unique.Make(name).Value()} // one copy for all tallies
	s.kept = slices.Insert(s.kept, i, t)
	b.held++
	b.shrink(s)

	return t
}

// others returns the tally of the names without a separate one.
func (b *scoreBound) others(s *scoreSums) *scoreTally {
	if s.other == nil {
		s.other = &scoreTally{name: wire.ScoresOther}
	}
	return s.other
}

// shrink merges the names that rank last into the others.
func (b *scoreBound) shrink(s *scoreSums) {
	for len(s.kept) > b.most {
		last := s.kept[len(s.kept)-1]
		s.kept[len(s.kept)-1] = nil // or the array would keep it in memory
		s.kept = s.kept[:len(s.kept)-1]
		b.others(s).merge(last)
		b.held--
	}
}

// add counts a score n times: once, or with -1 it takes back one that was counted.
func (b *scoreBound) add(s *scoreSums, score wire.Score, n int64) {
	if score.Kind != wire.ScoreInteger {
		return
	}
	t := b.tally(s, score.Name)
	t.add(int(score.Number), n)

	// A name whose scores were all taken back must not keep the place of another.
	if n < 0 && t.count == 0 && t != s.other {
		b.held--
		s.kept = slices.DeleteFunc(s.kept, func(k *scoreTally) bool { return k == t })
	}
}

// merge adds all tallies of from.
func (b *scoreBound) merge(into, from *scoreSums) {
	for _, t := range from.kept {
		b.tally(into, t.name).merge(t)
	}
	if from.other != nil {
		b.others(into).merge(from.other)
	}
}

// reduce lowers the number of names until there is space for all tallies. all calls a
// function for each scoreSums.
//
// The result depends on what was counted, not on its order: what did not fit once never
// fits.
func (b *scoreBound) reduce(all func(func(*scoreSums))) {
	// Names asked for are few, and an answer without them would be useless.
	for b.held > b.space && b.most > len(b.asked) {
		b.most = max(b.most/2, len(b.asked))
		all(b.shrink)
	}
}

// reduced reports whether there was no space for scoreNamesMax names.
func (b *scoreBound) reduced() bool { return b.most < scoreNamesMax }

// summaries returns the sums of up to most names, sorted, and of all others.
func (s *scoreSums) summaries(most int) []wire.ScoreSum {
	sums := []wire.ScoreSum{} // an empty list in JSON, not null
	other := scoreTally{name: wire.ScoresOther}
	for _, t := range s.kept {
		switch {
		case t.count <= 0: // all were taken back
		case len(sums) < most:
			sums = append(sums, t.summary())
		default:
			other.merge(t)
		}
	}

	// By name: names asked for rank first, but stand among the rest.
	sort.Slice(sums, func(i, j int) bool { return sums[i].Name < sums[j].Name })

	if s.other != nil {
		other.merge(s.other)
	}
	if other.count > 0 {
		sums = append(sums, other.summary())
	}

	return sums
}

// scoreLimits returns how many names an answer may list for each of its parts, and for
// each bucket of its series.
func scoreLimits[K comparable](parts []share[K]) (inTotals, inSeries int) {
	// Totals and series are their own lists in an answer, each with its bound.
	var totals, series []*scoreSums
	for _, p := range parts {
		totals = append(totals, p.scores)
		for _, t := range p.by {
			series = append(series, &t.scores)
		}
	}

	return scoreLimit(totals), scoreLimit(series)
}

// scoreLimit returns how many names an answer may list for each part.
func scoreLimit(parts []*scoreSums) int {
	// As long as all fit, no part has to leave out any.
	sum := 0
	for _, s := range parts {
		sum += len(s.kept)
	}
	if sum <= scoresListedMax {
		return scoreNamesMax
	}

	// The same for all parts, so that they can be compared.
	return scoresListedMax / len(parts)
}

// summary returns the sum in the form of the API. There must be at least one score.
func (s *scoreTally) summary() wire.ScoreSum {
	w := wire.ScoreSum{
		Name:  s.name,
		Count: s.count,
		Mean:  float64(s.sum) / float64(s.count),
		Min:   -1, // until the first score
	}

	seen := int64(0)
	for _, v := range s.values {
		if v.n == 0 {
			continue
		}

		// Scores ascend: the first is the lowest, the last is the highest.
		score := int(v.score)
		if w.Min < 0 {
			w.Min = score
		}
		w.Max = score
		w.Histogram[min(score/10, 9)] += v.n // 100 belongs to the last ten

		if half := (s.count + 1) / 2; seen < half && seen+v.n >= half {
			w.P50 = score
		}
		seen += v.n
	}

	return w
}

// scoresAsked returns the names of scores that a filter asks for, sorted.
func scoresAsked(f *wire.Filter) []string {
	if f == nil {
		return nil
	}

	var names []string
	switch f.Field {
	case "score":
		if f.NestedKey != "" {
			names = append(names, f.NestedKey)
		}
	case "score_name":
		// Anything else is not a name, or is rejected when the filter is compiled.
		var name string
		var list []string
		if json.Unmarshal(f.Value, &name) == nil {
			names = append(names, name)
		} else if json.Unmarshal(f.Value, &list) == nil {
			names = append(names, list[:min(len(list), scoreAskedMax)]...)
		}
	}
	for i := range f.Filters {
		names = append(names, scoresAsked(&f.Filters[i])...)
	}

	slices.Sort(names)
	names = slices.Compact(names)

	return names[:min(len(names), scoreAskedMax)]
}

// nameSample collects names until there are more than a scoreSums keeps.
type nameSample map[string]struct{}

func (n nameSample) add(name string) {
	if len(n) <= scoreNamesMax {
		n[name] = struct{}{}
	}
}

// fill adds names until there are many, for names that are not known one by one.
func (n nameSample) fill() {
	for i := range scoreNamesMax + 1 {
		n[strconv.Itoa(i)] = struct{}{}
	}
}

// many reports whether some scoreSums may have others, or soon will.
func (n nameSample) many() bool { return len(n) > scoreNamesMax }
