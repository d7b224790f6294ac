package wire

import (
	"math"
	"testing"
)

func TestTokensDoNotWrap(t *testing.T) {
	for _, test := range []struct{ input, output, want int64 }{
		{3, 4, 7},
		{math.MaxInt64, 0, math.MaxInt64},
		{math.MaxInt64 - 4, 4, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64},
	} {
		totals := Totals{InputTokens: test.input, OutputTokens: test.output}
		if got := totals.Tokens(); got != test.want {
			t.Errorf("%d input and %d output tokens: the total is %d, want %d",
				test.input, test.output, got, test.want)
		}
	}
}
