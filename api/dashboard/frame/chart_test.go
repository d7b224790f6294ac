package frame

import (
	goflag "flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/dashboard/chart"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/number"
)

var update = goflag.Bool("update", false, "rewrite the golden files")

// hours returns points an hour apart.
func hours(values ...[]float64) (points []chart.Point) {
	for i, v := range values {
		at := time.Date(2026, 11, 14, i, 0, 0, 0, time.UTC)
		points = append(points, chart.Point{At: at, To: at.Add(time.Hour), Values: v})
	}

	return points
}

// drawn returns the HTML of a chart.
func drawn(t *testing.T, c *chart.Chart) string {
	t.Helper()
	var b strings.Builder
	if err := newLayout().ExecuteTemplate(&b, "chart", c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestChartsAreDrawnAsTheyWere(t *testing.T) {
	none := math.NaN()
	link := func(p chart.Point) string { return filter.Filter{}.Between(p.At, p.At.Add(time.Hour)).Requests() }

	for name, c := range map[string]*chart.Chart{
		"empty": {Title: "Nothing", Names: []string{"a"}, Format: number.Count, Bucket: time.Hour},
		"one-point": {Title: "Latency", Names: []string{"p50", "p95"}, Format: number.Seconds, Bucket: time.Hour,
			Points: hours([]float64{0.2, 1.5}), Link: link},
		"one-bar": {Title: "Requests", Names: []string{"success", "other"}, Format: number.Count, Bars: true,
			Bucket: time.Hour, Points: hours([]float64{9, 1}), Link: link},
		"gaps": {Title: "Scores", Names: []string{"tone", "<b>"}, Format: number.Count, Bucket: time.Hour,
			Points: hours([]float64{40, none}, []float64{none, none}, []float64{60, 10}, []float64{70, 0})},
		"huge": {Title: "Tokens", Names: []string{"in"}, Format: number.Count, Bars: true, Bucket: time.Hour,
			Points: hours([]float64{9e18}, []float64{1}, []float64{0})},
		"nothing-yet": {Title: "Cost", Names: []string{"cost"}, Format: number.Dollars, Bars: true,
			Bucket: 24 * time.Hour, Points: hours([]float64{0})},
		"linked-parts": {
			Title:     "Requests",
			Names:     []string{"succeeded", "failed"},
			Format:    number.Count,
			Bars:      true,
			Bucket:    time.Hour,
			Points:    hours([]float64{9, 1}, []float64{0, 3}),
			Link:      link,
			LinkValue: func(p chart.Point, i int) string { return link(p) + "&part=" + string(rune('1'+i)) },
		},
		"linked-values": {
			Title:  "Latency, p50",
			Names:  []string{"version 1", "version 2"},
			Format: number.Seconds,
			Bucket: time.Hour,
			Points: hours([]float64{1, none}, []float64{none, 2}),
			Link:   link,
			LinkValue: func(p chart.Point, i int) string {
				return link(p) + "&prompt_version_number=" + string(rune('1'+i))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "linked-values" {
				chart.KeepFirstLinks([]*chart.Chart{{}, c})
			}
			got := drawn(t, c)

			path := filepath.Join("testdata", "chart-"+name+".html")
			if *update {
				if err := os.MkdirAll("testdata", 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}

			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the chart differs; if that is intended, run with -update (-want +got):\n%s", diff)
			}

			for _, wrong := range []string{"NaN", "Inf", "<b>"} {
				if strings.Contains(got, wrong) {
					t.Errorf("the chart contains %s", wrong)
				}
			}
		})
	}
}
