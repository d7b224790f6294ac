package query

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"unique"

	"promptspool/api/wire"
)

// Bounds of what statistics keep of scores.
const (
	scoreNamesMax  = 200    // names of one tally
	scoreAskedMax  = 100    // names that a filter asks for, which are never counted as others
	scoreTotalsMax = 20_000 // tallies of all parts of a dimension
	scoreSeriesMax = 50_000 // tallies of all buckets of a series: enough for bucketsMax with scoreNamesMax each
	scoresToldMax  = 10_000 // sums that an answer tells of all parts of a series, or of a dimension
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
	i, known := slices.BinarySearchFunc(s.values, score, func(v scoreCount, score int) int { return cmp.Compare(int(v.score), score) })
	if known {
		s.values[i].n += n
		return
	}
	s.values = slices.Insert(s.values, i, scoreCount{uint8(score), n})
}

func (s *scoreTally) merge(other *scoreTally) {
	for _, v := range other.values {
		if v.n != 0 {
			s.add(int(v.score), v.n)
		}
	}
}

// scoreSums are the tallies of the names that rank first, and one of all others. Which these are depends on all names that came,
// not on their order, so that the same records give the same answer however a store has them.
type scoreSums struct {
	kept  []*scoreTally // by rank
	other *scoreTally   // nil: there are no others
}

// scoreBound ranks names and bounds what many scoreSums hold together.
type scoreBound struct {
	asked []string // sorted; they rank before all others, which rank by name
	most  int      // names of each scoreSums
	held  int      // tallies that all have kept
	room  int      // for these
}

func newScoreBound(asked []string, room int) *scoreBound {
	return &scoreBound{asked: asked, most: scoreNamesMax, room: room}
}

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
	i, known := slices.BinarySearchFunc(s.kept, name, func(t *scoreTally, name string) int { return b.compare(t.name, name) })
	switch {
	case known:
		return s.kept[i]
	case i == len(s.kept) && s.other != nil, i >= b.most:
		return b.others(s)
	}

	t := &scoreTally{name: unique.Make(name).Value()} // one copy for all tallies
	s.kept = slices.Insert(s.kept, i, t)
	b.held++
	b.shrink(s)

	return t
}

// others returns the tally of the names that have none of their own.
func (b *scoreBound) others(s *scoreSums) *scoreTally {
	if s.other == nil {
		s.other = &scoreTally{name: wire.ScoresOther}
	}

	return s.other
}

// shrink lets others count for the names that rank last.
func (b *scoreBound) shrink(s *scoreSums) {
	for len(s.kept) > b.most {
		last := s.kept[len(s.kept)-1]
		s.kept[len(s.kept)-1] = nil
		s.kept = s.kept[:len(s.kept)-1]
		b.others(s).merge(last)
		b.held--
	}
}

// add counts a score n times: once, or with -1 it takes back one that was counted.
func (b *scoreBound) add(s *scoreSums, score wire.Score, n int64) {
	t := b.tally(s, score.Name)
	t.add(score.Score, n)

	// A name whose scores were all taken back must not keep the place of another.
	if n < 0 && t.count == 0 && t != s.other {
		b.held--
		s.kept = slices.DeleteFunc(s.kept, func(k *scoreTally) bool { return k == t })
	}
}

func (b *scoreBound) merge(into, from *scoreSums) {
	for _, t := range from.kept {
		b.tally(into, t.name).merge(t)
	}
	if from.other != nil {
		b.others(into).merge(from.other)
	}
}

// lower halves the number of names until there is room for all tallies. That depends on what was counted, not on its order: what
// has no room once, never has.
func (b *scoreBound) lower(all func(func(*scoreSums))) {
	for b.held > b.room && b.most > len(b.asked) {
		b.most = max(b.most/2, len(b.asked))
		all(b.shrink)
	}
}

// lowered reports that there was no room for scoreNamesMax.
func (b *scoreBound) lowered() bool { return b.most < scoreNamesMax }

// told returns the sums of up to most names, sorted, and of all others.
func (s *scoreSums) told(most int) []wire.ScoreSum {
	sums := []wire.ScoreSum{} // an empty list in JSON, not null
	other := scoreTally{name: wire.ScoresOther}
	for _, t := range s.kept {
		switch {
		case t.count <= 0:
		case len(sums) < most:
			sums = append(sums, t.summary())
		default:
			other.merge(t)
		}
	}
	slices.SortFunc(sums, func(a, b wire.ScoreSum) int { return cmp.Compare(a.Name, b.Name) })
	if s.other != nil {
		other.merge(s.other)
	}
	if other.count > 0 {
		sums = append(sums, other.summary())
	}

	return sums
}

// scoresToldOf is how many names each part of an answer may tell, and each bucket of its series.
func scoresToldOf[K comparable](parts []share[K]) (inTotals, inSeries int) {
	var totals, series []*scoreSums
	for _, p := range parts {
		totals = append(totals, p.scores)
		for _, t := range p.by {
			series = append(series, &t.scores)
		}
	}

	return scoresTold(totals), scoresTold(series)
}

func scoresTold(parts []*scoreSums) int {
	sum := 0
	for _, s := range parts {
		sum += len(s.kept)
	}
	if sum <= scoresToldMax {
		return scoreNamesMax
	}

	return scoresToldMax / len(parts)
}

func (s *scoreTally) summary() wire.ScoreSum {
	w := wire.ScoreSum{Name: s.name, Count: s.count, Mean: float64(s.sum) / float64(s.count), Min: -1}
	seen := int64(0)
	for _, v := range s.values {
		if v.n == 0 {
			continue
		}
		score := int(v.score)
		if w.Min < 0 {
			w.Min = score
		}
		w.Max = score
		w.Histogram[min(score/10, 9)] += v.n
		if half := (s.count + 1) / 2; seen < half && seen+v.n >= half {
			w.P50 = score
		}
		seen += v.n
	}

	return w
}

// scoresAsked are the names of scores that a filter asks for, sorted.
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

// fewNames gathers names until there are more than a scoreSums keeps.
type fewNames map[string]struct{}

func (f fewNames) add(name string) {
	if len(f) <= scoreNamesMax {
		f[name] = struct{}{}
	}
}

// fill makes it as if there were many.
func (f fewNames) fill() {
	for i := range scoreNamesMax + 1 {
		f[strconv.Itoa(i)] = struct{}{}
	}
}

// many reports that some scoreSums may have others, or soon will.
func (f fewNames) many() bool { return len(f) > scoreNamesMax }
