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
	calls      experiment.Calls
}

// report is what a run or a comparison prints.
type report struct {
	A           *side                 `json:"a,omitempty"` // the base, if there is one
	B           *side                 `json:"b"`
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

// report reports on all calls of the run, and fails if a gate does.
func (r *run) report() error {
	all, err := experiment.Load(r.c.Context, r.search, r.Name, r.Template)
	if err != nil {
		return err
	}
	var sides []*side
	missing := len(r.Rows) * len(r.Versions)
	for _, version := range slices.Backward(r.Versions) {
		sides = append(sides, &side{r.Name, version, all[version]})
		missing -= len(all[version])
	}
	if missing > 0 {
		return fmt.Errorf("the server does not have %s yet; once its sidecars have forwarded them, the same "+
			"command with --name %s reports on them", print.Quantity(missing, "call"), r.Name)
	}
	rep, err := newReport(r.c.Context, r.client, r.id, sides)
	if err != nil {
		return err
	}
	err = r.journal.end()
	if err != nil {
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
	err = errors.Join(print.Output(r.c, rep, rep.print), rep.writeJUnit(r.c.String("junit")))
	if err == nil && failed > 0 {
		err = cli.Exit(fmt.Sprintf("%d of %d gates failed", failed, len(r.gates)), 1)
	}
	return err
}

// newReport compares the last of some sides with the one before it, if there is one, and reads the answers
// of the worst regressions.
func newReport(ctx context.Context, cl *client.Client, id wire.Identity, sides []*side) (*report, error) {
	rep := &report{B: sides[len(sides)-1], Regressions: []regression{}}
	var base experiment.Calls
	if len(sides) > 1 {
		rep.A = sides[len(sides)-2]
		base = rep.A.calls
	}
	defined, err := cl.ScoreDefinitions(ctx, id)
	if err != nil {
		return nil, err
	}
	rep.compared = experiment.Compare(base, rep.B.calls, defined)
	rep.Metrics = rep.compared.Metrics

	for _, p := range rep.compared.Pairs {
		if p.Regression <= 0 || len(rep.Regressions) == regressionsMax {
			break
		}
		var texts, scores [2]string
		for i, call := range []*wire.Row{p.A, p.B} {
			record, err := cl.Request(ctx, id, call.RequestID)
			if err != nil {
				return nil, err
			}
			answer := calls.Read(record.Request)
			_, texts[i] = answer.Searched()
			texts[i] += "\n"
			for _, s := range call.Scores {
				scores[i] += " " + s.Name + "=" + s.Short()
			}
			if experiment.Failed(call) {
				scores[i] = " failed"
			}
		}
		rep.Regressions = append(rep.Regressions, regression{
			Row: p.Row, RequestA: p.A.RequestID, RequestB: p.B.RequestID,
			ScoresA: scores[0], ScoresB: scores[1], Diff: udiff.Unified("", "", texts[0], texts[1]),
		})
	}

	return rep, nil
}

// print prints the report for people.
func (rep *report) print(t *print.Table) {
	heading := func(s *side) string {
		if rep.A == nil || rep.A.Experiment == rep.B.Experiment {
			return fmt.Sprintf(">VERSION %d", s.Version)
		}
		return fmt.Sprintf(">%s@%d", s.Experiment, s.Version)
	}
	if rep.A == nil {
		t.Head("METRIC", heading(rep.B))
	} else {
		t.Head("METRIC", heading(rep.A), heading(rep.B), ">DIFFERENCE", "95% INTERVAL", "VERDICT").Spare("95% INTERVAL")
	}
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
		result := print.Styled("FAILED", print.Red)
		if o.Passed {
			result = print.Styled("passed", print.Green)
		}
		t.Row(result, o.Gate, o.Reason)
	}
	t.Head()
	for _, worse := range rep.Regressions {
		fmt.Fprintln(t.Out)
		t.Row(fmt.Sprintf("Row %s:%s, then%s", worse.Row, worse.ScoresA, worse.ScoresB))
		_, diff, _ := strings.Cut(worse.Diff, "+++ \n")
		t.Diff(diff)
	}
}

// writeJUnit writes the gates and the failed calls to a file, as CI systems read them; "" is none.
func (rep *report) writeJUnit(path string) error {
	if path == "" {
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
		Failures int      `xml:"failures,attr"`
		Cases    []test   `xml:"testcase"`
	}{Name: rep.B.Experiment}
	for _, o := range rep.Gates {
		one := test{Class: rep.B.Experiment, Name: o.Gate}
		if !o.Passed {
			one.Failure = &failure{o.Reason}
			suite.Failures++
		}
		suite.Cases = append(suite.Cases, one)
	}
	for _, p := range rep.compared.Pairs {
		if p.B != nil && experiment.Failed(p.B) {
			message := cmp.Or(p.B.OutputExcerpt, "The call failed.")
			suite.Cases = append(suite.Cases, test{rep.B.Experiment, "row " + p.Row, &failure{message}})
			suite.Failures++
		}
	}

	text, err := xml.MarshalIndent(suite, "", "  ")
	return errors.Join(err, os.WriteFile(path, append([]byte(xml.Header), text...), 0o644))
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
	r := run{client: cl, id: id}
	var sides []*side
	for _, argument := range c.Args().Slice() {
		name, chosen, _ := strings.Cut(argument, "@")
		all, err := experiment.Load(c.Context, r.search, name, "")
		if err != nil {
			return err
		}
		maps.DeleteFunc(all, func(version int, _ experiment.Calls) bool {
			return chosen != "" && chosen != strconv.Itoa(version)
		})
		if len(all) == 0 {
			return fmt.Errorf("there are no calls of the experiment %s", argument)
		}
		versions := slices.Sorted(maps.Keys(all))
		// Of two experiments, the newest version of each.
		if c.NArg() == 2 {
			versions = versions[len(versions)-1:]
		}
		for _, version := range versions {
			sides = append(sides, &side{name, version, all[version]})
		}
	}

	rep, err := newReport(c.Context, cl, id, sides)
	if err != nil {
		return err
	}
	return print.Output(c, rep, rep.print)
}
