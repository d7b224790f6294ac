package frame

import (
	"fmt"
	"html"
	"os"
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

// drawnText matches a label of a chart.
var drawnText = regexp.MustCompile(`<text x="([0-9.]+)" y="([0-9.]+)"(?: text-anchor="(end|middle)")?>([^<]*)</text>`)

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

// labelsFit checks that no label of a chart is cut or overlaps another, and that those of
// its axis differ.
func labelsFit(t *testing.T, what, svg string) {
	t.Helper()
	var axis []string
	times, ended := 0, 0.0 // the labels at the bottom, and where the last one ends
	for _, m := range drawnText.FindAllStringSubmatch(svg, -1) {
		x, _ := strconv.ParseFloat(m[1], 64)
		y, _ := strconv.ParseFloat(m[2], 64)
		label := html.UnescapeString(m[4])
		from, to := x, x+wide(label)
		switch m[3] {
		case "end":
			from, to = x-wide(label), x
		case "middle":
			from, to = x-wide(label)/2, x+wide(label)/2
		}

		if from < 0 || to > chart.Width || y-chart.TextSize < -4 || y > chart.Height {
			t.Errorf("%s: %q is drawn from %.1f to %.1f at %.1f", what, label, from, to, y)
		}

		if y < chart.Height-chart.MarginBottom+5 {
			axis = append(axis, label)
			continue
		}
		if from <= ended {
			t.Errorf("%s: the labels at the bottom overlap by %.1f", what, ended-from)
		}
		times, ended = times+1, to
	}

	if times < 2 {
		t.Errorf("%s: the axis of time has %d labels", what, times)
	}

	if len(axis) < 2 || len(slices.Compact(slices.Clone(axis))) != len(axis) {
		t.Errorf("%s: the labels of the axis are %q", what, axis)
	}
}

// wide returns the width of a label in DejaVu Sans. A digit there is 0.636 of the height
// wide, and an m is 0.974.
func wide(label string) float64 {
	thin := 0.0
	for _, r := range label {
		if strings.ContainsRune(" .i", r) {
			thin += 0.318
		}
	}

	return chart.TextSize *
		(0.636*float64(utf8.RuneCountInString(label)) - thin + 0.338*float64(strings.Count(label, "m")))
}

func TestTheLettersOfAChartAreAtMostAsLargeAsItsRoomIsFor(t *testing.T) {
	style, err := os.ReadFile("static/style.css")
	if err != nil {
		t.Fatal(err)
	}

	sizes := regexp.MustCompile(`\.chart text \{ font-size: (\d+)px`).FindAllStringSubmatch(string(style), -1)
	if len(sizes) != 2 {
		t.Fatalf("the style sheet has the sizes %q, want two", sizes)
	}
	for _, size := range sizes {
		if n, _ := strconv.Atoi(size[1]); n > chart.TextSize {
			t.Errorf("letters of %d px do not fit: charts have space for %d", n, chart.TextSize)
		}
	}
}
