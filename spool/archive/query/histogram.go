package query

import (
	"math"
	"strconv"
	"time"
)

// histogram counts latencies in classes that reach 1 % to both sides of their middle, so
// that every percentile is at most 2 % off (Masson and others, "DDSketch", VLDB 2019).
// Adding and merging commute. The zero histogram is empty.
type histogram struct {
	first   int      // class of counts[0]
	counts  []uint32 // by class
	total   int64
	sumMics int64 // in full microseconds, because a sum of floats depends on their order
}

var (
	classRatio = math.Log((1 + latencyError) / (1 - latencyError))
	// latencyUnit is the smallest latency that differs from 0.
	latencyUnit = float64(time.Microsecond)
)

const latencyError = 0.01

// classOf returns the class of a latency. Less than a microsecond is in class 0.
func classOf(d time.Duration) int {
	if float64(d) < latencyUnit {
		return 0
	}
	return 1 + int(math.Ceil(math.Log(float64(d)/latencyUnit)/classRatio))
}

// latencyOf returns the latency that represents a class, in seconds: a number of one or two digits if the
// class has one, so that a second is shown as one, or its middle.
func latencyOf(class int) float64 {
	if class == 0 {
		return 0
	}
	middle := math.Exp(float64(class-1)*classRatio) * (1 - latencyError) * latencyUnit / 1e9
	for digits := 1; digits <= 2; digits++ {
		round, _ := strconv.ParseFloat(strconv.FormatFloat(middle, 'g', digits, 64), 64)
		if classOf(time.Duration(math.Round(round*1e9))) == class {
			return round
		}
	}

	return middle
}

// add counts a latency n times; with -1 it takes back one that was counted.
func (h *histogram) add(d time.Duration, n int64) {
	h.count(classOf(d), n)
	h.sumMics = plus(h.sumMics, n*d.Microseconds())
}

// count counts n more in a class; n may be negative where there are as many.
func (h *histogram) count(class int, n int64) {
	h.total += n

	// Only the classes between the fastest and the slowest latency so far take memory.
	switch {
	case len(h.counts) == 0:
		h.first, h.counts = class, make([]uint32, 1, 16)
	case class < h.first:
		h.counts = append(make([]uint32, h.first-class, h.first-class+len(h.counts)), h.counts...)
		h.first = class
	}
	for class-h.first >= len(h.counts) {
		h.counts = append(h.counts, 0)
	}

	h.counts[class-h.first] += uint32(n)
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		if n > 0 {
			h.count(other.first+i, int64(n))
		}
	}
	h.sumMics = plus(h.sumMics, other.sumMics)
}

// mean returns seconds; nil for an empty histogram.
func (h *histogram) mean() *float64 {
	if h.total == 0 {
		return nil
	}

	m := float64(h.sumMics) / float64(h.total) / 1e6
	return &m
}

// quantile returns the latency in seconds that a share q of all do not exceed (the
// nearest rank); nil for an empty histogram.
func (h *histogram) quantile(q float64) *float64 {
	if h.total == 0 {
		return nil
	}

	// Even a share of 0 has a rank, that of the fastest.
	rank := max(int64(math.Ceil(q*float64(h.total))), 1)
	for i, n := range h.counts {
		rank -= int64(n)
		if rank <= 0 {
			v := latencyOf(h.first + i)
			return &v
		}
	}

	return nil
}
