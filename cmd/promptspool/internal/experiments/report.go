package experiments

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/urfave/cli/v2"

	"promptspool/api/calls"
	"promptspool/api/client"
	"promptspool/api/dashboard/number"
	"promptspool/api/experiment"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// regressionsMax is how many regressions are shown with both answers.
const regressionsMax = 3

// side is what is compared: the calls of a version in an experiment.
type side struct {
	Experiment string `json:"experiment"`
	Version    int    `json:"version"`
	Calls      int    `json:"calls"`
	calls      experiment.Calls
}

// heading names a side, also by its experiment if the other has another one.
func (rep *report) heading(s *side) string {
	if rep.A == nil || rep.A.Experiment == rep.B.Experiment {
		return fmt.Sprintf(">VERSION %d", s.Version)
	}
	return fmt.Sprintf(">%s@%d", s.Experiment, s.Version)
}

// report is what a run or a comparison prints.
type report struct {
	A           *side                 `json:"a,omitempty"` // the base, if there is one
	B           side                  `json:"b"`
	Metrics     []wire.ComparedMetric `json:"metrics"`
	Gates       []outcome             `json:"gates,omitempty"`
	Regressions []regression          `json:"regressions"`

	compared experiment.Comparison
}

// regression is a row to which B has the worse answer.
type regression struct {
	Row      string `json:"row"`
	RequestA string `json:"request_a"`
	RequestB string `json:"request_b"`
	ScoresA  string `json:"scores_a"`
	ScoresB  string `json:"scores_b"`
	Diff     string `json:"diff"` // of the answers, by lines
}

// arriveMax is how long a report waits for what a sidecar has yet to forward.
const arriveMax = time.Minute

// report reports on all calls of the run, once the server has them, and fails if a gate does.
func (r *run) report(c *cli.Context) error {
	all, err := r.arrived(c.Context)
	if err != nil {
		return err
	}
	rep := report{B: side{Experiment: r.Name, Version: r.Versions[0], calls: all[r.Versions[0]]}}
	if len(r.Versions) > 1 {
		rep.A = &side{Experiment: r.Name, Version: r.Versions[1], calls: all[r.Versions[1]]}
	}
	if err := rep.fill(c.Context, r.client, r.id); err != nil {
		return err
	}
	failuresBound := slices.ContainsFunc(r.gates, func(g gate) bool { return g.metric == "errors" })
	failed := 0
	for _, g := range r.gates {
		o := g.judge(&rep.compared, failuresBound)
		rep.Gates = append(rep.Gates, o)
		if !o.Passed {
			failed++
		}
	}
	if r.failures > 0 {
		fmt.Fprintf(c.App.ErrWriter, "%s failed; the last one: %s\n", print.Quantity(r.failures, "call"),
			print.Printable(r.failure))
	}
	for _, name := range slices.Sorted(maps.Keys(r.silent)) {
		fmt.Fprintf(c.App.ErrWriter, "The evaluator %s could not judge some answers; the last one: %s\n", name,
			print.Printable(r.silent[name].Error()))
	}

	err = errors.Join(print.Output(c, rep, rep.print), r.writeJUnit(&rep))
	if err == nil && failed > 0 {
		return cli.Exit(fmt.Sprintf("%d of %d gates failed", failed, len(r.gates)), 1)
	}
	return err
}

// arrived returns the calls of the run once all are found.
func (r *run) arrived(ctx context.Context) (all map[int]experiment.Calls, err error) {
	for until := time.Now().Add(arriveMax); ; {
		err = again(ctx, func() (err error) {
			all, err = experiment.Load(ctx, r.search, r.Name)
			return err
		})

		missing := 0
		for _, version := range r.Versions {
			missing += max(0, len(r.Rows)-len(all[version]))
		}
		switch {
		case err != nil || missing == 0:
			return all, err
		case time.Now().After(until):
			return nil, fmt.Errorf("the server does not have %s yet; once its sidecars have forwarded them, "+
				"the same command with --name %s reports on them", print.Quantity(missing, "call"), r.Name)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// fill compares the sides, and reads the answers of the worst regressions.
func (rep *report) fill(ctx context.Context, cl *client.Client, id wire.Identity) error {
	defined, err := cl.ScoreDefinitions(ctx, id)
	if err != nil {
		return err
	}
	var a experiment.Calls
	if rep.A != nil {
		a, rep.A.Calls = rep.A.calls, len(rep.A.calls)
	}
	rep.B.Calls = len(rep.B.calls)
	rep.compared = experiment.Compare(a, rep.B.calls, defined)
	rep.Metrics, rep.Regressions = rep.compared.Metrics, []regression{}

	for _, p := range rep.compared.Pairs {
		if p.Regression <= 0 || len(rep.Regressions) == regressionsMax {
			break
		}
		before, err := answerText(ctx, cl, id, p.A.RequestID)
		if err != nil {
			return err
		}
		after, err := answerText(ctx, cl, id, p.B.RequestID)
		if err != nil {
			return err
		}
		rep.Regressions = append(rep.Regressions, regression{
			Row: p.Row, RequestA: p.A.RequestID, RequestB: p.B.RequestID,
			ScoresA: scoresText(p.A), ScoresB: scoresText(p.B), Diff: udiff.Unified("", "", before, after),
		})
	}
	return nil
}

// answerText returns the answer of a call, or why it failed, with a line break at its end.
func answerText(ctx context.Context, cl *client.Client, id wire.Identity, request string) (string, error) {
	record, err := cl.Request(ctx, id, request)
	call := calls.Read(record.Request)
	_, text := call.Searched()
	return strings.TrimSuffix(text, "\n") + "\n", err
}

// scoresText returns the scores of a call, or that it failed.
func scoresText(call *wire.Row) string {
	if experiment.Failed(call) {
		return "failed"
	}
	var all []string
	for _, s := range call.Scores {
		all = append(all, s.Name+"="+s.Short())
	}
	return strings.Join(all, " ")
}

// print prints the report for people.
func (rep *report) print(t *print.Table) {
	headings := []string{"METRIC", rep.heading(&rep.B)}
	if rep.A != nil {
		headings = []string{
			"METRIC", rep.heading(rep.A), rep.heading(&rep.B), ">DIFFERENCE", "95% INTERVAL", "VERDICT",
		}
	}
	t.Head(headings...).Spare("95% INTERVAL")
	for _, m := range rep.Metrics {
		shown := number.OfMetric(m)
		switch {
		case m.CountB == 0:
		case rep.A == nil:
			t.Row(shown.Title, shown.B)
		default:
			t.Row(shown.Title, shown.A, shown.B, shown.Difference, shown.Interval, shown.Verdict)
		}
	}
	t.Head()

	for _, o := range rep.Gates {
		result := print.Styled("passed", print.Green)
		if !o.Passed {
			result = print.Styled("FAILED", print.Red)
		}
		t.Row(result, o.Gate, o.Reason)
	}
	t.Head()
	for _, worse := range rep.Regressions {
		fmt.Fprintln(t.Out)
		t.Row(fmt.Sprintf("Row %s: %s, then %s", worse.Row, worse.ScoresA, worse.ScoresB))
		_, diff, _ := strings.Cut(worse.Diff, "+++ \n")
		t.Diff(diff)
	}
}

// writeJUnit writes the gates and the failed calls as CI systems read them.
func (r *run) writeJUnit(rep *report) error {
	if r.junit == "" {
		return nil
	}
	type failure struct {
		Message string `xml:"message,attr"`
	}
	type test struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Failure *failure `xml:"failure"`
	}
	suite := struct {
		XMLName  xml.Name `xml:"testsuite"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Cases    []test   `xml:"testcase"`
	}{Name: r.Name}
	add := func(name, fault string) {
		one := test{Class: fmt.Sprintf("%s@%d", r.Template, rep.B.Version), Name: name}
		if fault != "" {
			one.Failure = &failure{fault}
			suite.Failures++
		}
		suite.Tests++
		suite.Cases = append(suite.Cases, one)
	}
	for _, o := range rep.Gates {
		add(o.Gate, map[bool]string{false: o.Reason}[o.Passed])
	}
	for _, p := range rep.compared.Pairs {
		if p.B != nil && experiment.Failed(p.B) {
			add("row "+p.Row, cmp.Or(p.B.OutputExcerpt, "the call failed"))
		}
	}

	text, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(r.junit, append([]byte(xml.Header), text...), 0o644)
}

// compareExperiments compares two experiments, or the versions of one.
func compareExperiments(c *cli.Context) error {
	if c.NArg() < 1 || c.NArg() > 2 {
		return config.Usagef(c, "give one or two experiments, each NAME or NAME@VERSION")
	}
	cl, id, err := config.Read(c).Remote()
	if err != nil {
		return err
	}
	search := func(ctx context.Context, s wire.Search) (wire.SearchPage, error) { return cl.Search(ctx, id, s) }
	var sides []side
	for _, argument := range c.Args().Slice() {
		name, chosen, _ := strings.Cut(argument, "@")
		all, err := experiment.Load(c.Context, search, name)
		if err != nil {
			return err
		}
		versions := slices.Sorted(maps.Keys(all))
		if chosen != "" {
			versions = slices.DeleteFunc(versions, func(v int) bool { return strconv.Itoa(v) != chosen })
		}
		if len(versions) == 0 {
			return fmt.Errorf("there are no calls of the experiment %s", argument)
		}
		// Of two experiments, the newest version of each.
		if c.NArg() == 2 {
			versions = versions[len(versions)-1:]
		}
		for _, v := range versions {
			sides = append(sides, side{Experiment: name, Version: v, calls: all[v]})
		}
	}

	rep := report{B: sides[len(sides)-1]}
	if len(sides) > 1 {
		rep.A = &sides[len(sides)-2]
	}
	if err := rep.fill(c.Context, cl, id); err != nil {
		return err
	}
	return print.Output(c, rep, rep.print)
}
