package textdiff

import (
	"strings"
	"testing"
	"time"

	"promptspool/metrics/cputimetest"
)

// Legitimate prompts may be one long line, or many long lines.
func TestComparingCostsInProportionToTheText(t *testing.T) {
	cost := func(times int) time.Duration {
		line := strings.Repeat("word ", 20_000*times)
		lines := strings.Repeat(strings.Repeat("some word ", 450)+"\n", 15*times)

		return cputimetest.Of(func() {
			Lines(line+"left", line+"right")
			Lines(lines, strings.ReplaceAll(lines, "some", "any"))
			Lines(strings.ReplaceAll(line, " ", "\n"), strings.ReplaceAll(line, "word ", "other\n"))
		})
	}

	once, fourfold := cost(1), cost(4)
	if fourfold > 8*once || fourfold > 5*time.Second {
		t.Errorf("comparing four times as much took %v, want about four times %v", fourfold, once)
	}
}
