package jsonscan_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"promptspool/api/wire/jsonscan"
)

// What is said of a number is what strconv says, which takes thousands of times as long for some.
func TestWhatIsSaidOfNumbers(t *testing.T) {
	numbers := strings.Fields("0 -0 0.0 0e5 -0.000e-9 1 -1 12 1.0 1.5 10e-1 1e0 100e-2 0.1e16 1e15 1e16 1e17 " +
		"9007199254740992 9007199254740993 9007199254740992.0 123456789012345678901234567890 " +
		"5e-324 4.9e-324 2e-324 3e-324 1e-400 -5e-324 2.2250738585072011e-308 1e308 1.7976931348623157e308 " +
		"1.7976931348623159e308 -1e309 1e309 1e310 1e999999999999 1e-999999999999 0e999999999999 " +
		"0.00000001e310 1000000e300 1E5 1e+5 12e-5")
	for range 2000 {
		x := math.Float64frombits(rand.Uint64())
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			numbers = append(numbers, strconv.FormatFloat(x, "efg"[rand.IntN(3)], -1, 64))
		}
		numbers = append(numbers, strconv.FormatFloat(float64(rand.IntN(1<<40)), "ef"[rand.IntN(2)], rand.IntN(20), 64))
	}

	for _, number := range numbers {
		want, err := strconv.ParseFloat(number, 64)
		isTiny := want != 0 && math.Abs(want) < 1e-306 || strings.HasPrefix(number, "1e-400") || number == "2e-324"
		if !strings.Contains(number, "999999") && !isTiny {
			exact, _ := new(big.Rat).SetString(number)
			isCount := exact.IsInt() && exact.Sign() >= 0 && exact.Cmp(big.NewRat(1<<53, 1)) <= 0
			if n, ok := jsonscan.Count(number); ok != isCount || ok && float64(n) != want {
				t.Errorf("the count %s: %d, %v", number, n, ok)
			}
		}
		x, gotErr := jsonscan.Float(number)
		if (gotErr == nil) != (err == nil) || x != want && (x != 0 || math.Abs(want) > 1e-306) {
			t.Errorf("%s is %v, %v; want %v, %v", number, x, gotErr, want, err)
		}
	}
}
