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

func TestASumOfScoresReadsByItsKind(t *testing.T) {
	tones := []CategoryCount{{"polite", 6, 0.6}, {"rude", 3, 0.3}, {"curt", 1, 0.1}}
	for want, s := range map[string]ScoreSum{
		"75.5":                              {Kind: "number", Count: 2, Mean: 75.5},
		"0.833":                             {Kind: "number", Count: 2, Mean: 0.83333, To: new(1.0)},
		"92 % true":                         {Kind: "boolean", Count: 50, Mean: 0.92},
		"polite 60 %, rude 30 %, curt 10 %": {Kind: "category", Count: 10, Categories: tones},
		"-":                                 {Kind: "category", Unfit: 3},
	} {
		same(t, want, s.String(), want)
	}

	sum := ScoreSum{Kind: "category", Count: 10, Categories: tones}
	same(t, "the share of rude", sum.Charted("rude"), 30.0)
	same(t, "the share of the most frequent", sum.Charted(sum.MostFrequent()), 60.0)
	same(t, "the share of true", ScoreSum{Kind: "boolean", Count: 4, Mean: 0.25}.Charted(""), 25.0)
}
