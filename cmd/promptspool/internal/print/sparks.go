package print

import "strings"

// Sparks draws numbers as bars in one line, the largest as high as the line. A blank stands for 0.
func Sparks(numbers []float64) string {
	const bars = "▁▂▃▄▅▆▇█"
	most := 0.0
	for _, n := range numbers {
		most = max(most, n)
	}

	var b strings.Builder
	for _, n := range numbers {
		if n <= 0 {
			b.WriteByte(' ')
			continue
		}
		i := min(int(n/most*8), 7)
		b.WriteRune([]rune(bars)[i])
	}
	return b.String()
}
