package query

import (
	"cmp"
	"slices"
	"unique"

	"promptspool/api/wire"
)

// Bounds of what statistics keep of scores.
const (
	scoreNamesMax   = 200    // names of one scoreSums
	scoreTotalsMax  = 20_000 // tallies of all parts of a dimension
	scoreSeriesMax  = 50_000 // tallies of all buckets of a series: bucketsMax times scoreNamesMax fit
	scoresListedMax = 10_000 // sums that an answer lists for all parts of a series or a dimension
)

// scoreSums are the tallies of the names that rank first, and one of all others of each kind.
//
// Which names rank first depends on all names counted, not on their order. So the same
// records give the same answer, in whatever order a store has them.
type scoreSums struct {
	kept   []*scoreTally // by rank
	others []*scoreTally // by kind
}

// scoreBound bounds what many scoreSums hold together. Names rank by their text.
type scoreBound struct {
	most  int // names that each scoreSums may keep
	held  int // tallies that all scoreSums keep
	space int // bounds held
}

func newScoreBound(space int) *scoreBound { return &scoreBound{most: scoreNamesMax, space: space} }

// tally returns the tally in which scores count.
func (b *scoreBound) tally(s *scoreSums, key scoreKey) *scoreTally {
	i, known := slices.BinarySearchFunc(s.kept, key, func(t *scoreTally, key scoreKey) int {
		return cmp.Or(cmp.Compare(t.name, key.name), cmp.Compare(t.kind, key.kind))
	})
	switch {
	case known:
		return s.kept[i]

	// Once there are others, some names that rank last were merged into them. A name that
	// ranks after all kept ones may be one of these, so it cannot have its own tally.
	case i == len(s.kept) && len(s.others) > 0, i >= b.most:
		return b.others(s, key.kind)
	}

	// One copy for all tallies.
	key.name = unique.Make(key.name).Value()
	t := &scoreTally{scoreKey: key}
	s.kept = slices.Insert(s.kept, i, t)
	b.held++
	b.shrink(s)

	return t
}

// others returns the tally of a kind's names without a separate one.
func (b *scoreBound) others(s *scoreSums, kind wire.ScoreKind) *scoreTally {
	i, known := slices.BinarySearchFunc(s.others, kind, func(t *scoreTally, kind wire.ScoreKind) int {
		return cmp.Compare(t.kind, kind)
	})
	if !known {
		s.others = slices.Insert(s.others, i, &scoreTally{scoreKey: scoreKey{wire.ScoresOther, kind}})
	}

	return s.others[i]
}

// shrink merges the names that rank last into the others.
func (b *scoreBound) shrink(s *scoreSums) {
	for len(s.kept) > b.most {
		last := s.kept[len(s.kept)-1]
		// Or the array would keep it in memory.
		s.kept[len(s.kept)-1] = nil
		s.kept = s.kept[:len(s.kept)-1]
		b.others(s, last.kind).merge(last)
		b.held--
	}
}

// add counts what was judged n times: once, or with -1 it takes back one that was counted.
func (b *scoreBound) add(s *scoreSums, j *judged, n int64) {
	t := b.tally(s, j.scoreKey)
	t.add(j, n)

	// A name whose scores were all taken back must not keep the place of another.
	if n < 0 && t.count == 0 && !slices.Contains(s.others, t) {
		b.held--
		s.kept = slices.DeleteFunc(s.kept, func(k *scoreTally) bool { return k == t })
	}
}

// merge adds all tallies of from.
func (b *scoreBound) merge(into, from *scoreSums) {
	for _, t := range from.kept {
		b.mergeTally(into, t, false)
	}
	for _, t := range from.others {
		b.mergeTally(into, t, true)
	}
}

// mergeTally adds a tally, which may be one of others.
func (b *scoreBound) mergeTally(into *scoreSums, t *scoreTally, other bool) {
	if other {
		b.others(into, t.kind).merge(t)
		return
	}
	b.tally(into, t.scoreKey).merge(t)
}

// reduce lowers the number of names until there is space for all tallies. all calls a
// function for each scoreSums.
//
// The result depends on what was counted, not on its order: what did not fit once never
// fits.
func (b *scoreBound) reduce(all func(func(*scoreSums))) {
	for b.held > b.space && b.most > 0 {
		b.most /= 2
		all(b.shrink)
	}
}

// reduced reports whether there was no space for scoreNamesMax names.
func (b *scoreBound) reduced() bool { return b.most < scoreNamesMax }

// summaries returns the sums of up to most names, sorted, and of all others.
func (s *scoreSums) summaries(most int, defined wire.ScoreDefinitions) []wire.ScoreSum {
	// An empty list in JSON, not null.
	sums := []wire.ScoreSum{}
	var rest scoreSums
	// Without a place for any name.
	var bound scoreBound
	for kept := s.kept; len(kept) > 0; {
		same := 1
		for same < len(kept) && kept[same].name == kept[0].name {
			same++
		}
		if len(sums) < most {
			sums = append(sums, summarizeScores(kept[:same], defined))
		} else {
			bound.merge(&rest, &scoreSums{kept: kept[:same]})
		}
		kept = kept[same:]
	}

	bound.merge(&rest, &scoreSums{others: s.others})
	if len(rest.others) > 0 {
		sums = append(sums, summarizeScores(rest.others, nil))
	}

	return sums
}

// scoreLimits returns how many names an answer may list for each of its parts, and for
// each bucket of its series.
func scoreLimits(parts []share) (inTotals, inSeries int) {
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
