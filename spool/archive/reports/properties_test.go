package reports_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"promptspool/metrics/cputimetest"
	"promptspool/spool/archive/reports"
)

// drawReports draws reports in which little differs, so that many are of one call.
func drawReports(t *rapid.T, key, prefix string) (all []*reports.Report) {
	pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	for n := range rapid.IntRange(1, 12).Draw(t, "reports") {
		start := float64(rapid.IntRange(0, 4).Draw(t, "start"))
		end := start + float64(rapid.IntRange(0, 3).Draw(t, "took"))
		s := said{
			ID:         fmt.Sprint(prefix, n),
			Key:        key,
			Scope:      pick("scope", "", "a", "b", "c"),
			Span:       pick("span", "1", "2", "3", fmt.Sprint(prefix, n)),
			Parent:     pick("parent", "", "", "1", "2", "3"),
			ResponseID: pick("id", "", "", strings.Repeat("x", 20), strings.Repeat("y", 20)),
			Trace:      pick("trace", "t", "t", "u"),
			Start:      start,
			End:        &end,
			Same:       pick("body", "", "", "same"),
			Model:      pick("model", "", "", "gpt-4o", "gpt-4o-2024-08-06", "gpt-5"),
			Input:      pick("input", "", "", "Hi", "Hi there"),
			Output:     pick("output", "", "", "yes", "no"),
			Finish:     pick("finish", "", "", "stop", "length"),
			Status:     pick("status", "", "", "", "error"),
			User:       pick("user", "", "", "", "ann", "bob"),
		}
		if n := int64(rapid.IntRange(0, 4).Draw(t, "tokens")); n > 2 {
			s.Received = &n
		}
		all = append(all, s.report())
	}

	return all
}

func TestTheOrderOfReportsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawReports(t, "", "r")
		calls, steps := divided(t, all)
		count := len(steps)
		for _, ids := range calls {
			count += len(ids)
		}
		if count != len(all) {
			t.Fatalf("%d reports are in %q and %q", len(all), calls, steps)
		}

		again, stepsAgain := divided(t, rapid.Permutation(all).Draw(t, "order"))
		if !slices.EqualFunc(calls, again, slices.Equal) || !slices.Equal(steps, stepsAgain) {
			t.Errorf("in another order %q became %q, the steps %q %q", calls, again, steps, stepsAgain)
		}
	})
}

func TestAReportOfAnotherKeyChangesNoCall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own, others := drawReports(t, "", "r"), drawReports(t, "other", "x")
		calls, steps := divided(t, own)
		ofOther := func(ids []string) bool { return strings.HasPrefix(ids[0], "x") }

		with, stepsWith := divided(t, slices.Concat(others, own))
		with = slices.DeleteFunc(with, ofOther)
		stepsWith = slices.DeleteFunc(stepsWith, func(id string) bool { return ofOther([]string{id}) })
		if !slices.EqualFunc(calls, with, slices.Equal) || !slices.Equal(steps, stepsWith) {
			t.Errorf("with reports of another key %q became %q, the steps %q %q", calls, with, steps, stepsWith)
		}
	})
}

func TestTheReportsOfACallAgree(t *testing.T) {
	united := 0
	rapid.Check(t, func(t *rapid.T) {
		all := slices.Concat(drawReports(t, "", "r"), drawReports(t, "other", "x"))
		for _, call := range divide(t, all) {
			for i, a := range call.Reports {
				for _, b := range call.Reports[:i] {
					if united++; disagree(a, b) || disagree(b, a) {
						t.Fatalf("of one call are\n%+v\n%+v", a, b)
					}
				}
			}
		}
	})
	if united == 0 {
		t.Error("no reports are of one call")
	}
}

// disagree reports whether one report says something else than the other.
func disagree(a, b *reports.Report) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	tokens, others := a.Tokens[1], b.Tokens[1]
	switch {
	case a.Key != b.Key, a.Start.Sub(b.End) > 2*time.Second:
		return true
	case len(a.Models) > 0 && len(b.Models) > 0 && a.Models[0] != b.Models[0], a.Failed && b.Answered && !b.Failed:
		return true
	case tokens != nil && others != nil && *tokens != *others && a.Trace != b.Trace:
		return true
	}

	return differ(a.Output, b.Output) || differ(a.Finish, b.Finish) || differ(a.User, b.User) ||
		differ(a.Response, b.Response) || !strings.HasPrefix(a.Input, b.Input) && !strings.HasPrefix(b.Input, a.Input)
}

func TestManyReportsTakeBoundedTime(t *testing.T) {
	many := func(n int, r said) []*reports.Report {
		r.Copies = n
		return (&example{Reports: []said{{ID: "p", Scope: "a", Trace: "t", Span: "1"}, r}}).all()
	}
	id := strings.Repeat("x", 20)
	for name, c := range map[string]struct {
		all   []*reports.Report
		steps int
	}{
		"one id":    {many(1000, said{ID: "r", Scope: "b", Trace: "t", Span: "s", ResponseID: id}), 0},
		"one span":  {many(1000, said{ID: "r", Trace: "t", Span: "1"}), 0},
		"one above": {many(100_000, said{ID: "r", Scope: "b", Trace: "t", Span: "s", Parent: "1"}), 1},
	} {
		before := cputimetest.Used()
		calls := divide(t, c.all)
		if took := cputimetest.Used() - before; took > 5*time.Second {
			t.Errorf("%s: %d reports took %s of the processor", name, len(c.all), took)
		}
		steps := 0
		for _, call := range calls {
			if call.Step {
				steps++
			}
		}
		if len(calls) != len(c.all) || steps != c.steps {
			t.Errorf("%s: of %d reports there are %d calls and steps, %d steps", name, len(c.all), len(calls), steps)
		}
	}
}
