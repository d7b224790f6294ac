package query

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRoundLatenciesStayRound(t *testing.T) {
	for _, seconds := range []float64{0.001, 0.075, 0.75, 1, 2, 30, 100} {
		var h histogram
		h.add(time.Duration(seconds*1e9), 1)
		if got := *h.quantile(0.5); got != seconds {
			t.Errorf("of %v s the median is %v", seconds, got)
		}
	}
}

func TestAQuantileIsAtMostTwoPercentOff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(int64(time.Microsecond), int64(time.Hour)).Draw(t, "latency"))
		var h histogram
		h.add(d, 1)
		if got := *h.quantile(0.5); math.Abs(got/d.Seconds()-1) > 0.0202 {
			t.Fatalf("%v became %v s", d, got)
		}
	})
}
