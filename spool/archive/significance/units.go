package significance

import (
	"cmp"
	"slices"
	"time"
)

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
