// Package significance compares two samples, and judges which of their differences chance alone does not
// explain. Nothing is drawn at random, so the same samples give the same answer.
//
// # Methods
//
// Means are compared by Welch's t-test, which takes no equal variances (Welch, Biometrika 34, 1947).
// Shares are compared by the score interval for a difference, which holds near 0 and 1 (Newcombe,
// Statistics in Medicine 17, 1998, method 10). Quantiles are compared by the percentile bootstrap
// (Efron, Annals of Statistics 7, 1979), whose distribution is known for a quantile without drawing
// (Maritz and Jarrett, JASA 73, 1978).
//
// Of many metrics, one or another differs by chance. Judge corrects for that (Holm, Scandinavian
// Journal of Statistics 6, 1979): if there is no difference at all, the chance to see one in any of
// them is 5 %. Benjamini and Hochberg's method would only bound the share of wrong ones among those
// seen, which is for thousands of metrics and not for the ten that lead to one decision.
//
// Values must be independent of each other.
package significance

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

const (
	level = 0.05 // the chance to see a difference where there is none
	power = 0.8  // the chance to see one as large as the observed, with the values that are needed

	countMin   = 30  // values of each sample
	meanMin    = 50  // of each, for means; as many times more of both as one sample is larger,
	unequalMin = 500 // but no more than these
	tailMin    = 10  // beyond a quantile
	replicates = 60  // points of the bootstrap distribution of a quantile

	// Values needed beyond these are not asked for: the difference is too small to matter here.
	neededMax      = 1000
	neededTimesMax = 4 // by how much the larger sample would have to grow
)

// Verdict is what a comparison shows.
type Verdict int

// The verdicts.
const (
	NoDifference Verdict = iota // chance alone may explain the difference
	Different
	TooFew // Needed more values of each sample would show a difference of this size
)

// Comparison is how a metric of sample B differs from that of sample A.
type Comparison struct {
	CountA, CountB int
	A, B           float64
	Low, High      float64 // the 95 % interval of B - A
	Enough         bool    // whether there are enough values for the interval; by Judge
	Verdict        Verdict // by Judge
	Needed         int     // if TooFew

	p          float64             // the chance of such a difference where there is none
	varA, varB float64             // of one value
	enough     func(more int) bool // whether the method holds with more values of each sample
}

// Mean is a sample whose mean is compared. The zero Mean is empty.
type Mean struct {
	count         int
	mean, squares float64 // of the distances from the mean
}

// Add adds a value.
func (m *Mean) Add(x float64) {
	m.count++
	far := x - m.mean
	m.mean += far / float64(m.count)
	m.squares += far * (x - m.mean)
}

// Means compares two means.
func Means(a, b *Mean) Comparison {
	c := Comparison{
		CountA: a.count, CountB: b.count, A: a.mean, B: b.mean,
		varA: a.squares / float64(a.count-1), varB: b.squares / float64(b.count-1),
	}
	// Skewness, as costs have it, cancels out in samples of one size. The mean of a smaller one needs
	// more values before its distribution is normal.
	c.enough = func(more int) bool {
		nA, nB := float64(a.count+more), float64(b.count+more)
		least := min(meanMin*max(nA, nB)/min(nA, nB), unequalMin)
		return min(nA, nB) >= least
	}
	if min(a.count, b.count) < 2 {
		return c
	}

	partA, partB := c.varA/float64(a.count), c.varB/float64(b.count)
	deviation := math.Sqrt(partA + partB)
	freedom := (partA + partB) * (partA + partB) /
		(partA*partA/float64(a.count-1) + partB*partB/float64(b.count-1))
	beyond := func(t float64) float64 { return mathext.RegIncBeta(freedom/2, 0.5, freedom/(freedom+t*t)) }
	switch {
	case deviation > 0:
		c.p = beyond((c.B - c.A) / deviation)
		t := bisect(0, 1000, func(t float64) bool { return beyond(t) < level })
		c.Low, c.High = c.B-c.A-t*deviation, c.B-c.A+t*deviation
	default: // all values of a sample are equal
		c.Low, c.High = c.B-c.A, c.B-c.A
		if c.A == c.B {
			c.p = 1
		}
	}

	return c
}

// Share is a sample of which a share is compared: Hits of Count. A hit may count in part.
type Share struct {
	Hits  float64
	Count int
}

// wilson returns the score interval of a share, for so many standard deviations.
func (s Share) wilson(z float64) (low, high float64) {
	n, p := float64(s.Count), s.Hits/float64(s.Count)
	middle := p + z*z/(2*n)
	reach := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))

	return (middle - reach) / (1 + z*z/n), (middle + reach) / (1 + z*z/n)
}

// Shares compares two shares.
func Shares(a, b Share) Comparison {
	c := Comparison{CountA: a.Count, CountB: b.Count}
	c.enough = func(more int) bool { return min(a.Count, b.Count)+more >= countMin }
	if min(a.Count, b.Count) == 0 {
		return c
	}

	c.A, c.B = a.Hits/float64(a.Count), b.Hits/float64(b.Count)
	variance := func(s Share) float64 { // also known where nothing was hit yet
		p := (s.Hits + 2) / float64(s.Count+4)
		return p * (1 - p)
	}
	c.varA, c.varB = variance(a), variance(b)
	interval := func(z float64) (low, high float64) {
		lowA, highA := a.wilson(z)
		lowB, highB := b.wilson(z)
		return c.B - c.A - math.Hypot(c.B-lowB, highA-c.A), c.B - c.A + math.Hypot(highB-c.B, c.A-lowA)
	}
	c.Low, c.High = interval(deviations(level))
	c.p = math.Erfc(bisect(0, 38, func(z float64) bool {
		low, high := interval(z)
		return low <= 0 && high >= 0
	}) / math.Sqrt2)

	return c
}

// Quantiles compares two quantiles, such as 0.95, of values that it sorts.
func Quantiles(quantile float64, a, b []float64) Comparison {
	c := Comparison{CountA: len(a), CountB: len(b)}
	least := max(countMin, int(math.Round(tailMin/min(quantile, 1-quantile))))
	c.enough = func(more int) bool { return min(len(a), len(b))+more >= least }
	if min(len(a), len(b)) == 0 {
		return c
	}

	var all, drawnA, drawnB []float64
	c.A, c.varA, drawnA = bootstrap(quantile, a)
	c.B, c.varB, drawnB = bootstrap(quantile, b)
	for _, x := range drawnA {
		for _, y := range drawnB {
			all = append(all, y-x)
		}
	}
	slices.Sort(all)
	share := int(level / 2 * float64(len(all)))
	c.Low, c.High = all[share], all[len(all)-1-share]

	below, _ := slices.BinarySearch(all, 0)
	above, _ := slices.BinarySearch(all, math.SmallestNonzeroFloat64)
	c.p = min(1, 2*float64(min(above, len(all)-below))/float64(len(all)))

	return c
}

// bootstrap sorts values, and returns a quantile of them, the variance that one value contributes to
// it, and equally likely quantiles of samples that are drawn from them.
func bootstrap(quantile float64, values []float64) (at, variance float64, drawn []float64) {
	slices.Sort(values)
	n := float64(len(values))
	rank := math.Ceil(quantile * n)
	at = values[int(rank)-1]

	// The quantile drawn is at most value j if at least rank of n values are.
	first := max(1, rank-math.Ceil(6*math.Sqrt(n*quantile*(1-quantile))))
	for j := first; len(drawn) < replicates; j++ {
		atMost := mathext.RegIncBeta(rank, n-rank+1, min(j/n, 1))
		for len(drawn) < replicates && atMost*replicates >= float64(len(drawn))+0.5 {
			drawn = append(drawn, values[int(j)-1])
		}
	}
	var moments Mean
	for _, x := range drawn {
		moments.Add(x)
	}

	return at, n * moments.squares / replicates, drawn
}

// Judge sets the verdicts of comparisons that are seen together.
func Judge(comparisons []*Comparison) {
	var tested []*Comparison
	for _, c := range comparisons {
		if c.Enough = c.enough(0); c.Enough {
			tested = append(tested, c)
			continue
		}
		c.Verdict, c.Needed = TooFew, roundUp(sort.Search(1e6, c.enough))
	}

	// The more are seen together, the surer the first has to be.
	slices.SortFunc(tested, func(x, y *Comparison) int { return cmp.Compare(x.p, y.p) })
	for i, c := range tested {
		strict := level / float64(len(tested)-i)
		if c.p <= strict {
			c.Verdict = Different
			continue
		}
		for _, c := range tested[i:] {
			c.lack(strict)
		}
		return
	}
}

// lack sets the verdict if no difference is shown, at a level.
func (c *Comparison) lack(level float64) {
	if c.A == c.B {
		return
	}
	reach := math.Abs(c.B-c.A) / (deviations(level) + deviations(2*(1-power)))
	most := max(neededMax, neededTimesMax*max(c.CountA, c.CountB))
	needed := sort.Search(most, func(more int) bool {
		return c.varA/float64(c.CountA+more)+c.varB/float64(c.CountB+more) <= reach*reach
	})
	if needed < most {
		c.Verdict, c.Needed = TooFew, roundUp(needed)
	}
}

// roundUp rounds a number up to two digits.
func roundUp(n int) int {
	unit := 1
	for n > 100*unit {
		unit *= 10
	}

	return (n + unit - 1) / unit * unit
}

// deviations returns how many standard deviations a normal value exceeds, on both sides, with a
// chance.
func deviations(chance float64) float64 { return math.Sqrt2 * math.Erfcinv(chance) }

// bisect returns the least number between two from which something is true, the greater if it never
// is.
func bisect(low, high float64, isTrue func(x float64) bool) float64 {
	for range 60 {
		if middle := (low + high) / 2; isTrue(middle) {
			high = middle
		} else {
			low = middle
		}
	}

	return high
}
