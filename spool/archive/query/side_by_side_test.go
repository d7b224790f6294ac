package query_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
)

var (
	weeks = flag.Int("weeks", 20, "how many weeks of each kind to simulate")
	calls = flag.Int("calls", 1000, "how many calls a week has")
)

// week are the hours of a week at which bursts of failures begin: some of both versions, some of each.
type week struct{ both, first, second []float64 }

// moment is what both versions have at a time: the shares of failed calls, and version 2's share of the calls.
type moment struct{ first, second, traffic float64 }

// lives are weeks of a template. Its two versions fail alike, so a verdict on them is false.
var lives = []struct {
	name    string
	session int // calls that fail or succeed together
	at      func(hour float64, w *week) moment
}{
	{"nothing happens", 1, func(float64, *week) moment { return moment{0.05, 0.05, 0.5} }},
	{"an outage before version 2 ran", 1, func(hour float64, _ *week) moment {
		switch {
		case hour < 24:
			return moment{0.25, 0.25, 0}
		case hour < 72:
			return moment{0.03, 0.03, 0}
		}
		return moment{0.03, 0.03, 0.5}
	}},
	{"version 2 was tried before an outage", 1, func(hour float64, _ *week) moment {
		switch {
		case hour < 20:
			return moment{0.03, 0.03, 0.01}
		case hour < 44:
			return moment{0.4, 0.4, 0}
		case hour < 96:
			return moment{0.03, 0.03, 0}
		}
		return moment{0.03, 0.03, 0.3}
	}},
	{"traffic shifts by day, with a trend", 1, func(hour float64, _ *week) moment {
		failing := 0.02 + 0.1*hour/168
		return moment{failing, failing, 0.1 + 0.8*math.Floor(hour/24)/6}
	}},
	{"bursts of minutes", 1, func(hour float64, w *week) moment {
		failing := within(hour, w.both, 0.3, 0.7, 0.02)
		return moment{failing, failing, 0.4}
	}},
	{"bursts of minutes, of each version its own", 1, func(hour float64, w *week) moment {
		return moment{within(hour, w.first, 0.3, 0.7, 0.02), within(hour, w.second, 0.3, 0.7, 0.02), 0.4}
	}},
	{"bursts of days, and traffic shifts", 1, func(hour float64, w *week) moment {
		failing := within(hour, w.both[:2], 24, 0.3, 0.02)
		return moment{failing, failing, 0.1 + 0.8*hour/168}
	}},
	{"sessions fail as a whole", 8, func(float64, *week) moment { return moment{0.05, 0.05, 0.5} }},
	{"the label moves", 1, func(hour float64, w *week) moment {
		failing := within(hour, w.both[:2], 24, 0.3, 0.02)
		if hour < 96.4 {
			return moment{failing, failing, 0}
		}
		return moment{failing, failing, 1}
	}},
	{"the label moves after an outage, and version 2 was tried before", 1, func(hour float64, _ *week) moment {
		switch {
		case hour < 60:
			return moment{0.03, 0.03, 0.002}
		case hour < 96.4:
			return moment{0.5, 0.5, 0}
		}
		return moment{0.03, 0.03, 1}
	}},
}

// within returns the share of failed calls in a burst of so many hours, or outside of all.
func within(hour float64, bursts []float64, hours, inside, outside float64) float64 {
	for _, begin := range bursts {
		if begin <= hour && hour < begin+hours {
			return inside
		}
	}

	return outside
}

// How often a comparison sees a difference between versions that have none: at most in 5 of a hundred weeks, and by
// chance in a few more of so few weeks. With -weeks=1000 it is more exact.
func TestVersionsThatFailAlikeSeldomLookDifferent(t *testing.T) {
	most := 5 + 300*math.Sqrt(0.05*0.95/float64(*weeks))
	for _, life := range lives {
		if seen := differ(life.session, 0, life.at); seen > most {
			t.Errorf("%s: %.1f of a hundred verdicts are false", life.name, seen)
		} else {
			t.Logf("%s: %.1f of a hundred verdicts are false", life.name, seen)
		}
	}
}

// A comparison still sees a real difference, whatever happens to both versions.
func TestAVersionThatFailsMoreLooksWorse(t *testing.T) {
	for _, life := range lives[:7] {
		if seen := differ(life.session, 0.12, life.at); seen < 80 {
			t.Errorf("%s: %.1f of a hundred differences are seen", life.name, seen)
		} else {
			t.Logf("%s: %.1f of a hundred differences are seen", life.name, seen)
		}
	}
}

// differ returns in how many of a hundred weeks a difference is seen, if more calls of version 2 fail.
func differ(session int, more float64, at func(hour float64, w *week) moment) float64 {
	r := rand.New(rand.NewPCG(5, 7))
	seen := 0
	for range *weeks {
		if different(lived(r, session, *calls, more, at)) {
			seen++
		}
	}

	return 100 * float64(seen) / float64(*weeks)
}

func different(rows []wire.Row) bool {
	c := query.NewComparison(wire.PartsQuery{Compare: []int{1, 2}}, wire.ComparedMax)
	for i := range rows {
		c.Add(&rows[i])
	}

	return slices.ContainsFunc(c.Answer(false).Metrics, func(m wire.ComparedMetric) bool {
		return m.Verdict == wire.VerdictBetter || m.Verdict == wire.VerdictWorse
	})
}

// lived returns the calls of a week, the newest first. Of version 2, more fail.
func lived(r *rand.Rand, session, calls int, more float64, at func(hour float64, w *week) moment) (rows []wire.Row) {
	var w week
	for range 12 {
		for _, bursts := range []*[]float64{&w.both, &w.first, &w.second} {
			*bursts = append(*bursts, 168*r.Float64())
		}
	}

	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for len(rows) < calls {
		hour := 168 * r.Float64()
		m := at(hour, &w)
		failing := m.first
		row := wire.Row{PromptVersion: new(int64(1)), Status: "SUCCESS"}
		if r.Float64() < m.traffic {
			row.PromptVersion, failing = new(int64(2)), m.second+more
		}
		if r.Float64() < failing {
			row.Status = "ERROR"
		}
		for i := range session {
			row.ListTime = start.Add(time.Duration((hour + float64(i)/60) * float64(time.Hour)))
			// What fails is slow before.
			row.Latency = new((1 + failing) * math.Exp(r.NormFloat64()/2))
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b wire.Row) int { return b.ListTime.Compare(a.ListTime) })

	return rows
}
