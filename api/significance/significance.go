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
// Values that come in pairs, such as two answers to one question, are compared by their differences: means
// by Student's t-test, shares by the adjusted interval of Bonett and Price (Journal of Educational and
// Behavioral Statistics 37, 2012), which holds where few pairs differ.
//
// Of many metrics, one or another differs by chance. Judge corrects for that (Holm, Scandinavian
// Journal of Statistics 6, 1979): if there is no difference at all, the chance to see one in any of
// them is 5 %. Benjamini and Hochberg's method would only bound the share of wrong ones among those
// seen, which is for thousands of metrics and not for the ten that lead to one decision.
//
// Failures come in bursts, and traffic shifts from one version to the other. So values are compared
// with those of the same hour, which weighs as much as both samples have there (Cochran, Biometrics
// 10, 1954), and count for as many independent ones as the hours differ (Rao and Scott, Biometrics
// 48, 1992). Hours must be independent of each other, except for what happens to both samples.
package significance

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"gonum.org/v1/gonum/mathext"

	"promptspool/api/wire"
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

// The verdicts of a Comparison, before it is said which values are better.
const (
	NoDifference = wire.VerdictNoDifference // chance alone may explain the difference
	Different    = wire.VerdictDifferent
	TooFew       = wire.VerdictTooFew // the method does not hold yet
)

// Comparison is how a metric of sample 1 differs from that of sample 0.
type Comparison struct {
	Counts     [2]int
	Of         [2]float64 // the metric of each sample
	Difference float64    // of sample 1 from sample 0, within the same units of time
	Low, High  float64    // its 95 % interval
	Enough     bool       // whether there are enough values for the interval; by Judge
	Verdict    string     // by Judge
	Needed     int        // more values of each sample that would tell; 0 if too many, or the verdict is Different

	samples [2]sample
	p       float64                      // the chance of such a difference where there is none
	least   func(n0, n1 float64) float64 // values of each sample for which the method holds
}

// Value is a value of one of two samples.
type Value struct {
	At     int64 // when it was measured, in Unix nanoseconds
	X      float64
	Sample int // 0 or 1
}

// Means compares the means of two samples, whose values are sorted by time.
func Means(values []Value) Comparison {
	c := weigh(values, func(x float64) float64 { return x })
	// Skewness, as costs have it, cancels out in samples of one size. The mean of a smaller one needs
	// more values before its distribution is normal.
	c.least = func(n0, n1 float64) float64 { return min(meanMin*max(n0, n1)/min(n0, n1), unequalMin) }
	a, b := &c.samples[0], &c.samples[1]
	if min(a.n, b.n) <= 1 {
		return c
	}

	variance := a.part + b.part
	c.test(variance*variance/(a.part*a.part/(a.n-1)+b.part*b.part/(b.n-1)), variance)

	return c
}

// test compares the difference with Student's distribution.
func (c *Comparison) test(freedom, variance float64) {
	switch {
	case variance > 0:
		c.p = mathext.RegIncBeta(freedom/2, 0.5, freedom/(freedom+c.Difference*c.Difference/variance))
		reach := student(freedom) * math.Sqrt(variance)
		c.Low, c.High = c.Difference-reach, c.Difference+reach
	default: // all values of a sample are equal
		c.Low, c.High = c.Difference, c.Difference
		if c.Difference == 0 {
			c.p = 1
		}
	}
}

// PairedMeans compares the means of two samples whose values come in pairs. Pairs must be independent of
// each other.
func PairedMeans(pairs [][2]float64) Comparison {
	c, variance := differ(pairs, meanMin)
	if n := float64(len(pairs)); n > 1 {
		c.test(n-1, variance)
	}

	return c
}

// PairedShares is PairedMeans for values that are 0 or 1.
func PairedShares(pairs [][2]float64) Comparison {
	c, _ := differ(pairs, countMin)
	n := float64(len(pairs))
	up, down := 1.0, 1.0
	for _, pair := range pairs {
		up += max(0, pair[1]-pair[0])
		down += max(0, pair[0]-pair[1])
	}
	up, down = up/(n+2), down/(n+2)

	middle, deviation := up-down, math.Sqrt((up+down-(up-down)*(up-down))/(n+2))
	c.p = math.Erfc(math.Abs(middle) / deviation / math.Sqrt2)
	c.Low, c.High = max(-1, middle-deviations(level)*deviation), min(1, middle+deviations(level)*deviation)
	c.samples[0].part = deviation * deviation

	return c
}

// differ returns the mean difference within pairs without an interval, and its variance. least is how many
// pairs an interval needs.
func differ(pairs [][2]float64, least float64) (c Comparison, variance float64) {
	n := float64(len(pairs))
	c.Counts = [2]int{len(pairs), len(pairs)}
	for _, pair := range pairs {
		c.Of[0] += pair[0] / n
		c.Of[1] += pair[1] / n
		c.Difference += (pair[1] - pair[0]) / n
	}
	for _, pair := range pairs {
		distance := pair[1] - pair[0] - c.Difference
		variance += distance * distance / n / max(1, n-1)
	}
	c.samples = [2]sample{{n: n, part: variance}, {n: n}}
	c.least = func(_, _ float64) float64 { return least }

	return c, variance
}

// wilson returns the score interval of a share, which is the mean, for so many standard deviations.
func (s *sample) wilson(z float64) (low, high float64) {
	middle := s.mean + z*z/(2*s.n)
	reach := z * math.Sqrt(max(0, s.mean*(1-s.mean))/s.n+z*z/(4*s.n*s.n))

	return (middle - reach) / (1 + z*z/s.n), (middle + reach) / (1 + z*z/s.n)
}

// Shares compares two shares: the means of values from 0 to 1, sorted by time.
func Shares(values []Value) Comparison {
	c := weigh(values, func(x float64) float64 { return x })
	c.least = func(_, _ float64) float64 { return countMin }
	a, b := &c.samples[0], &c.samples[1]
	if a.n == 0 {
		return c
	}

	// Also known where nothing was hit yet.
	for i := range c.samples {
		s := &c.samples[i]
		p := (s.mean*s.n + 2) / (s.n + 4)
		s.part = p * (1 - p) / s.n
	}
	interval := func(z float64) (low, high float64) {
		lowA, highA := a.wilson(z)
		lowB, highB := b.wilson(z)
		return c.Difference - math.Hypot(b.mean-lowB, highA-a.mean),
			c.Difference + math.Hypot(highB-b.mean, a.mean-lowA)
	}
	c.Low, c.High = interval(deviations(level))
	// The deviations for which the interval reaches 0, to a millionth.
	reached := sort.Search(38e6, func(z int) bool {
		low, high := interval(float64(z) / 1e6)
		return low <= 0 && high >= 0
	})
	c.p = math.Erfc(float64(reached) / 1e6 / math.Sqrt2)

	return c
}

// Quantiles compares two quantiles, such as 0.95, of values that are sorted by time.
func Quantiles(quantile float64, values []Value) Comparison {
	// Of both samples, and of all.
	var sizes [3][]float64
	for _, v := range values {
		sizes[v.Sample] = append(sizes[v.Sample], v.X)
		sizes[2] = append(sizes[2], v.X)
	}
	limit := nearestRank(quantile, sizes[2])
	c := weigh(values, func(x float64) float64 {
		if x > limit {
			return 1
		}
		return 0
	})
	c.Of = [2]float64{nearestRank(quantile, sizes[0]), nearestRank(quantile, sizes[1])}
	c.least = func(_, _ float64) float64 { return max(countMin, math.Round(tailMin/min(quantile, 1-quantile))) }
	if c.samples[0].n == 0 {
		return c
	}

	atA, drawnA := c.samples[0].bootstrap(quantile)
	atB, drawnB := c.samples[1].bootstrap(quantile)
	c.Difference = atB - atA
	var all []float64
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

// nearestRank sorts values and returns a quantile of them, 0 if there are none.
func nearestRank(quantile float64, values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)

	return values[max(1, int(math.Ceil(quantile*float64(len(values)))))-1]
}

// bootstrap sorts the values, and returns a quantile of them, and equally likely quantiles of samples that
// are drawn from them.
func (s *sample) bootstrap(quantile float64) (at float64, drawn []float64) {
	slices.SortFunc(s.values, func(x, y weighted) int { return cmp.Compare(x.x, y.x) })
	rank := min(max(1, math.Ceil(quantile*s.n)), s.n)
	sum, mean := 0.0, 0.0
	for _, v := range s.values {
		if sum < quantile-1e-9 {
			at = v.x
		}
		sum += v.weight

		// A quantile drawn is at most this value if at least rank of n values are.
		atMost := mathext.RegIncBeta(rank, s.n-rank+1, min(sum+1e-9, 1))
		for len(drawn) < replicates && atMost*replicates >= float64(len(drawn))+0.5 {
			drawn = append(drawn, v.x)
			mean += v.x / replicates
		}
	}

	s.part = 0
	for _, x := range drawn {
		s.part += (x - mean) * (x - mean) / replicates
	}

	return at, drawn
}

// Judge sets the verdicts of comparisons that are seen together.
func Judge(comparisons []*Comparison) {
	var tested []*Comparison
	for _, c := range comparisons {
		c.Enough, c.Verdict = c.enough(0), NoDifference
		if c.Enough {
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

// Word returns the verdict as the API names it. better is which values are: "higher", "lower" or "" for
// neither.
func (c *Comparison) Word(better string) string {
	switch {
	case c.Verdict != Different || better == "":
		return c.Verdict
	case (better == "higher") == (c.Difference > 0):
		return wire.VerdictBetter
	}

	return wire.VerdictWorse
}

// enough reports whether the method holds with more values of each sample, as independent as these are.
func (c *Comparison) enough(more int) bool {
	n := [2]float64{float64(c.Counts[0] + more), float64(c.Counts[1] + more)}
	least := c.least(n[0], n[1])
	for i, s := range c.samples {
		independent := float64(more)
		if s.n > 0 {
			independent = s.n * n[i] / float64(c.Counts[i])
		}
		if hold := n[i] >= least && independent >= least/2; !hold {
			return false
		}
	}

	return true
}

// lack sets how many more values would show a difference of this size, at a level.
func (c *Comparison) lack(level float64) {
	if c.Difference == 0 {
		return
	}
	reach := math.Abs(c.Difference) / (deviations(level) + deviations(2*(1-power)))
	most := max(neededMax, neededTimesMax*max(c.Counts[0], c.Counts[1]))
	needed := sort.Search(most, func(more int) bool {
		variance := 0.0
		for i, s := range c.samples {
			variance += s.part / (1 + float64(more)/float64(c.Counts[i]))
		}
		return variance <= reach*reach
	})
	if needed < most {
		c.Needed = roundUp(needed)
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

// student returns how far from 0 a value of Student's distribution is with the chance of level.
func student(freedom float64) float64 {
	return math.Sqrt(freedom * (1/mathext.InvRegIncBeta(freedom/2, 0.5, level) - 1))
}

const (
	unitMin    = 4  // values of the smaller sample in a unit of time, on average,
	unitsMin   = 12 // if there are as many units,
	unitsShort = 24 // or less than an hour each
)

// unit is a unit of time, such as an hour.
type unit struct {
	count, mean [2]float64 // of the values of each sample
	weight      float64    // 0 unless both have values; those of all units add up to 1
}

// divide returns the unit of each value, newest first: an hour, or less if the time is short, or more if
// there are few values.
func divide(values []Value) []*unit {
	if len(values) == 0 {
		return nil
	}
	var count [2]int64
	for _, v := range values {
		count[v.Sample]++
	}
	span := values[0].At - values[len(values)-1].At
	most := max(unitsShort, span/int64(time.Hour))
	length := 1 + span/max(unitsMin, min(most, count[0]/unitMin, count[1]/unitMin))

	units := make([]*unit, len(values))
	for i, v := range values {
		if i > 0 && v.At/length == values[i-1].At/length {
			units[i] = units[i-1]
		} else {
			units[i] = new(unit)
		}
		units[i].count[v.Sample]++
	}

	// A unit weighs as much as a difference within it is sure.
	sum := 0.0
	for _, u := range distinct(units) {
		u.weight = u.count[0] * u.count[1] / (u.count[0] + u.count[1])
		sum += u.weight
	}
	for _, u := range distinct(units) {
		u.weight /= cmp.Or(sum, 1)
	}

	return units
}

func distinct(units []*unit) []*unit { return slices.Compact(slices.Clone(units)) }

// Together returns the values, newest first, of when both samples were measured: of units of time that have
// both. One such unit is not enough, since one sample may have ended in it before the other began.
func Together(values []Value) (kept []Value) {
	var first, last [2]int64
	for _, v := range values {
		first[v.Sample] = v.At
		last[v.Sample] = max(last[v.Sample], v.At)
	}
	begun, ended := max(first[0], first[1]), min(last[0], last[1])
	values = slices.DeleteFunc(slices.Clone(values), func(v Value) bool { return v.At < begun || v.At > ended })

	for i, u := range divide(values) {
		if 0 < u.weight && u.weight < 1 {
			kept = append(kept, values[i])
		}
	}

	return kept
}

// sample is one of two samples. Its values have weights, so that a unit of time counts as much in both.
type sample struct {
	values []weighted
	mean   float64
	n      float64 // how many independent values would say as much; 0 if no unit has both samples
	part   float64 // of the variance of the difference
}

type weighted struct{ x, weight float64 }

// weigh returns a comparison of the means of what a function makes of values, without an interval.
func weigh(values []Value, of func(x float64) float64) (c Comparison) {
	// Equal values have no distance from one of them, so rounding makes no difference between them.
	origin := 0.0
	if len(values) > 0 {
		origin = of(values[0].X)
	}
	units := divide(values)
	for i, v := range values {
		x := of(v.X) - origin
		units[i].mean[v.Sample] += x / units[i].count[v.Sample]
		c.Counts[v.Sample]++
		c.Of[v.Sample] += x
	}
	a, b := &c.samples[0], &c.samples[1]
	even := 0.0
	for _, u := range distinct(units) {
		a.mean += u.weight * u.mean[0]
		b.mean += u.weight * u.mean[1]
		even += u.weight * u.weight
	}
	c.Difference = b.mean - a.mean

	// A sample says as much as its weights are even (Kish, Survey Sampling, 1965).
	for i, v := range values {
		s, weight := &c.samples[v.Sample], units[i].weight/units[i].count[v.Sample]
		distance := of(v.X) - origin - s.mean
		s.values = append(s.values, weighted{v.X, weight})
		s.part += weight * distance * distance
		s.n += weight * weight
	}
	for i := range c.samples {
		s := &c.samples[i]
		if s.n > 0 {
			s.n = 1 / s.n
		}
		if c.Counts[i] > 0 {
			c.Of[i] = origin + c.Of[i]/float64(c.Counts[i])
		}
		s.mean += origin
		s.part /= max(s.n-1, 1)
	}

	// Units that differ by more than independent values would say less, and few units are unsure of it.
	between := 0.0
	for _, u := range distinct(units) {
		distance := u.mean[1] - u.mean[0] - c.Difference
		between += u.weight * u.weight * distance * distance
	}
	if independent := a.part + b.part; independent > 0 && even < 1 {
		unsure := student(max(1, 1/even-1)) / deviations(level)
		effect := max(1, between/(1-even)*unsure*unsure/independent)
		a.n, b.n = a.n/effect, b.n/effect
		a.part, b.part = a.part*effect, b.part*effect
	}

	return c
}
