package frame

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"promptspool/api/dashboard/chart"
	"promptspool/api/dashboard/number"
)

// The labels of a chart: of its values, from the top down, and of its times, with their places in percent.
var (
	drawnValue = regexp.MustCompile(`<li>([^<]*)</li>`)
	drawnTime  = regexp.MustCompile(`<text x="([0-9.]+)%" y="14" text-anchor="middle">([^<]*)</text>`)
)

// TestNoLabelOfAChartIsCut draws charts of all ranges and checks where their labels end.
func TestNoLabelOfAChartIsCut(t *testing.T) {
	ranges := map[string]struct {
		format  func(float64) string
		highest []float64
	}{
		"latency": {number.Seconds, []float64{
			0.00003, 0.0004, 0.002, 0.05, 0.3, 1, 7, 42, 59.996, 61, 130, 754, 1800, 3599, 3600, 5000, 86_400, 400_000,
		}},
		"cost":  {number.Dollars, []float64{0.0000001, 0.00003, 0.004, 0.5, 1, 12, 345, 6_789, 98_765}},
		"count": {number.Count, []float64{0, 1, 3, 17, 99, 512, 4_096, 65_000, 1e6, 123_456_789, 5e9, 1e12}},
	}

	for name, r := range ranges {
		for _, highest := range r.highest {
			for _, bucket := range []time.Duration{time.Second, time.Hour, 24 * time.Hour, 30 * 24 * time.Hour} {
				c := &chart.Chart{
					Title:  name,
					Names:  []string{"a"},
					Format: r.format,
					Time:   name == "latency",
					Bucket: bucket,
				}
				for i := range 50 {
					at := time.Date(2026, 11, 14, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * bucket)
					values := []float64{highest / float64(i+1)}
					c.Points = append(c.Points, chart.Point{At: at, To: at.Add(bucket), Values: values})
					if i == 2 || i == 49 {
						what := fmt.Sprintf("%s up to %v by %v, %d points", name, highest, bucket, i+1)
						labelsFit(t, what, string(c.SVG()))
					}
				}
			}
		}
	}
}

// labelsFit checks that no label of a chart overlaps another in the narrowest chart that has all, nor on a
// phone, which leaves out every other one, and that those of its values differ.
func labelsFit(t *testing.T, what, svg string) {
	t.Helper()
	for width, every := range map[float64]int{480: 1, 250: 2} {
		ended, times := -math.MaxFloat64, drawnTime.FindAllStringSubmatch(svg, -1)
		if len(times) < 2 {
			t.Errorf("%s: the axis of time has %d labels", what, len(times))
		}
		for i := 0; i < len(times); i += every {
			x, _ := strconv.ParseFloat(times[i][1], 64)
			middle, half := x*width/100, wide(times[i][2])/2
			// The margin of the card is on the right, the labels of the values are on the left.
			if middle-half <= ended || middle-half < -50 || middle+half > width+20 {
				t.Errorf("%s: %q is at %.1f of %.0f px, after %.1f", what, times[i][2], middle, width, ended)
			}
			ended = middle + half
		}
	}

	var values []string
	for _, m := range drawnValue.FindAllStringSubmatch(svg, -1) {
		values = append(values, m[1])
	}
	if len(values) < 2 || len(slices.Compact(slices.Clone(values))) != len(values) {
		t.Errorf("%s: the labels of the values are %q", what, values)
	}
}

// wide returns the width of a label in DejaVu Sans, which is wider than the fonts of most systems. A digit there
// is 0.636 of the height wide.
func wide(label string) float64 {
	thin := 0.0
	for _, r := range label {
		if strings.ContainsRune(" .i", r) {
			thin += 0.318
		}
	}

	return 12 * (0.636*float64(utf8.RuneCountInString(label)) - thin)
}
