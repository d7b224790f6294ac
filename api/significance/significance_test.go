package significance_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"promptspool/api/significance"
)

// R's t.test(extra ~ group, data = sleep), two examples of Newcombe's paper, and no hits at all, whose
// bounds are those of Wilson.
func TestComparisonsAreThoseOfTheLiterature(t *testing.T) {
	first := meanOf(0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
	second := meanOf(1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)
	shares := func(hitsA, countA, hitsB, countB int) significance.Comparison {
		return significance.Shares(pair(hitsOf(hitsA, countA), hitsOf(hitsB, countB)))
	}
	for _, test := range []struct {
		got       significance.Comparison
		low, high float64
	}{
		{significance.Means(pair(second, first)), -3.3655, 0.2055},
		{shares(48, 80, 56, 70), 0.0524, 0.3339},
		{shares(0, 29, 5, 56), -0.0381, 0.1926},
		{shares(0, 29, 0, 56), -0.1169, 0.0642},
	} {
		if math.Abs(test.got.Low-test.low) > 1e-4 || math.Abs(test.got.High-test.high) > 1e-4 {
			t.Errorf("the interval is %.4f to %.4f, not %.4f to %.4f", test.got.Low, test.got.High, test.low, test.high)
		}
	}
}

// meanOf returns values of as many hours.
func meanOf(values ...float64) (all []significance.Value) {
	for i, x := range values {
		all = append(all, significance.Value{At: int64(i) * int64(time.Hour), X: x})
	}
	return all
}

// hitsOf returns values of one moment, of which some are 1.
func hitsOf(hits, count int) []significance.Value {
	all := make([]significance.Value, count)
	for i := range hits {
		all[i].X = 1
	}
	return all
}

// spread returns n values, one after the other in a hundred hours.
func spread(n int, draw func() float64) (all []significance.Value) {
	for i := range n {
		all = append(all, significance.Value{At: int64(i) * 100 * int64(time.Hour) / int64(n), X: draw()})
	}
	return all
}

// pair returns two samples together, the newest value first.
func pair(a, b []significance.Value) []significance.Value {
	both := slices.Clone(a)
	for _, v := range b {
		v.Sample = 1
		both = append(both, v)
	}
	slices.SortStableFunc(both, func(x, y significance.Value) int { return cmp.Compare(y.At, x.At) })

	return both
}

// populations are what samples are drawn from.
var populations = []struct {
	name string
	draw func(r *rand.Rand) float64
}{
	{"normal", func(r *rand.Rand) float64 { return 70 + 10*r.NormFloat64() }},
	{"costs, skewed", func(r *rand.Rand) float64 { return 0.002 * math.Exp(r.NormFloat64()) }},
	{"scores of a few values", func(r *rand.Rand) float64 { return []float64{0, 50, 75, 75, 100, 100}[r.IntN(6)] }},
	{"scores that are rarely bad", func(r *rand.Rand) float64 { return 100 * float64(min(r.IntN(12), 1)) }},
	{"latencies with a heavy tail", func(r *rand.Rand) float64 { return math.Pow(1-r.Float64(), -1/2.5) }},
}

// The smallest samples that are compared, and others.
func TestAnIntervalHolds95OfAHundredTimes(t *testing.T) {
	rounds := 1000
	r := rand.New(rand.NewPCG(1, 2))
	sizes := [][2]int{{50, 50}, {100, 200}, {400, 200}, {300, 900}}
	check := func(n [2]int, what string, highest float64, compare func() significance.Comparison) {
		held := 0
		for range rounds {
			c := compare()
			significance.Judge([]*significance.Comparison{&c})
			if c.Low <= 0 && 0 <= c.High {
				held++
			}
			if wrong := c.Verdict == significance.Different; c.Enough && wrong == (c.Low <= 0 && 0 <= c.High) {
				t.Fatalf("%s, %v: the verdict of %+v contradicts its interval", what, n, c)
			}
		}
		if share := 100 * float64(held) / float64(rounds); share < 93 || share > highest {
			t.Errorf("%s, %v: the interval holds %.1f of a hundred times", what, n, share)
		}
	}

	for i, p := range populations {
		for _, n := range sizes {
			// The mean of a heavy tail is seldom near that of its sample. Latencies have quantiles.
			if i < 4 {
				check(n, p.name, 98, func() significance.Comparison {
					draw := func() float64 { return p.draw(r) }
					return significance.Means(pair(spread(n[0], draw), spread(n[1], draw)))
				})
			}
			for _, quantile := range []float64{0.5, 0.95} {
				if (i == 0 || i == 4) && (n[0] == 400 || n[0] == 50 && quantile == 0.5) {
					check(n, fmt.Sprint(p.name, " ", quantile), 98, func() significance.Comparison {
						draw := func() float64 { return p.draw(r) }
						return significance.Quantiles(quantile, pair(spread(n[0], draw), spread(n[1], draw)))
					})
				}
			}
		}
	}

	for _, p := range []float64{0.005, 0.01, 0.03, 0.1, 0.5, 0.99} {
		for _, n := range sizes {
			// That of a few failures is wider than it has to be, never narrower.
			highest := 100.0
			if float64(min(n[0], n[1]))*min(p, 1-p) >= 8 {
				highest = 98
			}
			check(n, fmt.Sprint("share ", p), highest, func() significance.Comparison {
				draw := func() float64 { return math.Floor(p + r.Float64()) }
				return significance.Shares(pair(spread(n[0], draw), spread(n[1], draw)))
			})
		}
	}
}

// The smallest samples that are compared, and others: what two versions answer to the same questions.
func TestAnIntervalOfPairsHolds95OfAHundredTimes(t *testing.T) {
	const rounds = 1000
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{30, 50, 100, 400} {
		check := func(what string, truth, lowest, highest float64, compare func([][2]float64) significance.Comparison,
			draw func() [2]float64) {
			held := 0
			for range rounds {
				pairs := make([][2]float64, n)
				for i := range pairs {
					pairs[i] = draw()
				}
				c := compare(pairs)
				if c.Low <= truth && truth <= c.High {
					held++
				}
				significance.Judge([]*significance.Comparison{&c})
				if wrong := c.Verdict == significance.Different; c.Enough && wrong == (c.Low <= 0 && 0 <= c.High) {
					t.Fatalf("%s, %d: the verdict of %+v contradicts its interval", what, n, c)
				}
			}
			if share := 100 * float64(held) / rounds; share < lowest || share > highest {
				t.Errorf("%s, %d: the interval holds %.1f of a hundred times", what, n, share)
			}
		}

		// A question is easy or hard for both, or one fails now and then where the other never does. There an
		// interval of few pairs is a little short.
		for _, p := range populations[:4] {
			if n < 50 {
				break
			}
			check(p.name, 0, 93, 98, significance.PairedMeans, func() [2]float64 {
				question := p.draw(r)
				return [2]float64{question + p.draw(r), question + p.draw(r)}
			})
			check("rarely bad", -100/12.0, 90, 98, significance.PairedMeans, func() [2]float64 {
				return [2]float64{100, populations[3].draw(r)}
			})
		}
		for _, changes := range [][2]float64{{0, 0}, {0.01, 0.01}, {0.1, 0.02}, {0.3, 0.3}, {0.05, 0.6}} {
			draw := func() [2]float64 {
				switch u := r.Float64(); {
				case u < changes[0]:
					return [2]float64{0, 1}
				case u < changes[0]+changes[1]:
					return [2]float64{1, 0}
				}
				same := float64(r.IntN(2))
				return [2]float64{same, same}
			}
			check(fmt.Sprint("shares ", changes), changes[0]-changes[1], 93, 100, significance.PairedShares, draw)
		}
	}
}

// R's t.test(extra ~ group, data = sleep, paired = TRUE), and what is said of no pairs.
func TestPairsSayMoreThanTheirSamples(t *testing.T) {
	first := []float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0}
	second := []float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	var pairs [][2]float64
	for i := range first {
		pairs = append(pairs, [2]float64{second[i], first[i]})
	}
	c := significance.PairedMeans(pairs)
	if math.Abs(c.Low+2.4599) > 1e-4 || math.Abs(c.High+0.7001) > 1e-4 {
		t.Errorf("the interval is %.4f to %.4f", c.Low, c.High)
	}

	none := []*significance.Comparison{new(significance.PairedMeans(nil)), new(significance.PairedShares(nil)), &c}
	significance.Judge(none)
	for i, needed := range []int{50, 30, 40} {
		if got := none[i]; got.Verdict != significance.TooFew || got.Needed != needed {
			t.Errorf("%d pairs: verdict %s, %d needed", got.Counts[0], got.Verdict, got.Needed)
		}
	}
}

func TestOfManyMetricsFewLookDifferentByChance(t *testing.T) {
	const rounds, n = 2000, 200
	r := rand.New(rand.NewPCG(3, 4))
	fooled := 0
	for range rounds {
		latency := func() float64 { return populations[4].draw(r) }
		latencies := pair(spread(n, latency), spread(n, latency))
		failed := func() float64 { return math.Floor(0.05 + r.Float64()) }
		all := []*significance.Comparison{
			new(significance.Shares(pair(spread(n, failed), spread(n, failed)))),
			new(significance.Quantiles(0.5, latencies)),
			new(significance.Quantiles(0.95, latencies)),
		}
		for j := range 5 {
			draw := func() float64 { return populations[j%4].draw(r) }
			all = append(all, new(significance.Means(pair(spread(n, draw), spread(n, draw)))))
		}
		significance.Judge(all)
		for _, c := range all {
			if c.Verdict == significance.Different {
				fooled++
				break
			}
		}
	}
	if share := 100 * float64(fooled) / rounds; share > 5 || share < 2 {
		t.Errorf("in %.1f of a hundred comparisons without a difference, one is seen", share)
	}
}

func TestVerdicts(t *testing.T) {
	// of returns n values with this mean and a standard deviation of about 10.
	of := func(n int, mean float64) []significance.Value {
		i := 0
		return spread(n, func() float64 { i++; return mean - 10*float64(1-i%2*2) })
	}
	zeros := hitsOf(0, 60)
	share := hitsOf
	means := func(a, b []significance.Value) significance.Comparison { return significance.Means(pair(a, b)) }

	for _, test := range []struct {
		name    string
		got     significance.Comparison
		verdict string
		needed  int
	}{
		{"nothing", means(of(0, 0), of(0, 0)), significance.TooFew, 50},
		{"one", means(of(1, 3), of(1, 9)), significance.TooFew, 49},
		{"one has none", means(of(200, 3), of(0, 0)), significance.TooFew, 130},
		{"a clear difference", means(of(100, 50), of(100, 70)), significance.Different, 0},
		{"two standard deviations of 80 % power", means(of(50, 50), of(50, 53)), significance.NoDifference, 130},
		{"no difference", means(of(100, 50), of(100, 50)), significance.NoDifference, 0},
		{"too small to matter", means(of(3000, 50), of(3000, 50.1)), significance.NoDifference, 0},
		{"all equal", means(zeros, zeros), significance.NoDifference, 0},
		{"no failures", significance.Shares(pair(share(0, 100), share(0, 100))), significance.NoDifference, 0},
		{"a few failures", significance.Shares(pair(share(0, 100), share(3, 100))), significance.NoDifference, 470},
		{"failures", significance.Shares(pair(share(0, 100), share(20, 100))), significance.Different, 0},
		{"no calls", significance.Shares(pair(share(0, 0), share(0, 0))), significance.TooFew, 30},
		{"no latencies", significance.Quantiles(0.95, nil), significance.TooFew, 200},
		{"equal latencies", significance.Quantiles(0.5, pair(zeros, zeros)), significance.NoDifference, 0},
	} {
		significance.Judge([]*significance.Comparison{&test.got})
		if test.got.Verdict != test.verdict || test.got.Needed != test.needed {
			t.Errorf("%s: verdict %s, %d needed; want %s, %d",
				test.name, test.got.Verdict, test.got.Needed, test.verdict, test.needed)
		}
	}

	// The same difference is less sure among many.
	alone, among := means(of(100, 50), of(100, 53)), means(of(100, 50), of(100, 53))
	significance.Judge([]*significance.Comparison{&alone})
	all := []*significance.Comparison{&among}
	for range 9 {
		all = append(all, new(means(of(100, 50), of(100, 50))))
	}
	significance.Judge(all)
	if alone.Verdict != significance.Different || among.Verdict != significance.NoDifference {
		t.Errorf("alone the verdict is %s, among ten %s", alone.Verdict, among.Verdict)
	}
}
