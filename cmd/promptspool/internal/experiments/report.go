package experiments

import (
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"promptspool/api/calls"
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
	B           side                  `json:"b"`
	Metrics     []wire.ComparedMetric `json:"metrics"`
	Gates       []outcome             `json:"gates,omitempty"`
	Regressions []regression          `json:"regressions"`
}

// regression is a row to which B has the worse answer.
type regression struct {
	Row      string `json:"row"`
	RequestA string `json:"request_a"`
	RequestB string `json:"request_b"`
	Diff     string `json:"diff"` // of the answers, by lines
}

// report reports on all calls of the run, and fails if a gate does.
func (r *run) report() error {
	rep := report{B: side{r.Name, r.Versions[0], r.logged[r.Versions[0]]}}
	if len(r.Versions) > 1 {
		rep.A = &side{r.Name, r.Versions[1], r.logged[r.Versions[1]]}
	}
	compared, err := r.compare(&rep)
	if err == nil {
		err = r.journal.end()
	}
	if err != nil {
		return err
	}

	failuresBound := slices.ContainsFunc(r.gates, func(g gate) bool { return g.metric == "errors" })
	failed := 0
	for _, g := range r.gates {
		o := g.judge(compared, failuresBound)
		rep.Gates = append(rep.Gates, o)
		if !o.Passed {
			failed++
		}
	}
	err = print.Output(r.c, rep, rep.print)
	if path := r.c.String("junit"); path != "" {
		err = errors.Join(err, rep.writeJUnit(path, failed))
	}
	if err == nil && failed > 0 {
		err = cli.Exit(fmt.Sprintf("%d of %d gates failed", failed, len(r.gates)), 1)
	}
	return err
}

// compare fills in what differs between the sides of a report, and reads the answers of the worst regressions.
func (r *run) compare(rep *report) (*experiment.Comparison, error) {
	defined, err := r.client.ScoreDefinitions(r.c.Context, r.id)
	if err != nil {
		return nil, err
	}
	var base experiment.Calls
	if rep.A != nil {
		base = rep.A.calls
	}
	compared := experiment.Compare(base, rep.B.calls, defined)
	rep.Metrics, rep.Regressions = compared.Metrics, []regression{}

	for _, p := range compared.Pairs[:min(regressionsMax, len(compared.Pairs))] {
		if p.Regression <= 0 {
			break
		}
		var texts [2]string
		for i, call := range []*wire.Row{p.A, p.B} {
			record, err := r.client.Request(r.c.Context, r.id, call.RequestID)
			if err != nil {
				return nil, err
			}
			answer := calls.Read(record.Request)
			_, texts[i] = answer.Searched()
		}
		diff := print.LineDiff(texts[0]+"\n", texts[1]+"\n")
		rep.Regressions = append(rep.Regressions, regression{p.Row, p.A.RequestID, p.B.RequestID, diff})
	}

	return &compared, nil
}

// print prints the report for people.
func (rep *report) print(t *print.Table) {
	b := fmt.Sprint(">VERSION ", rep.B.Version)
	if rep.A == nil {
		t.Head("METRIC", b)
	} else {
		a := fmt.Sprint(">VERSION ", rep.A.Version)
		t.Head("METRIC", a, b, ">DIFFERENCE", "95% INTERVAL", "VERDICT").Spare("95% INTERVAL")
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
		t.Row("Row " + worse.Row + " became worse:")
		t.Diff(worse.Diff)
	}
}

// writeJUnit writes the gates to a file, as CI systems read them.
func (rep *report) writeJUnit(path string, failed int) error {
	type test struct {
		Class   string `xml:"classname,attr"`
		Name    string `xml:"name,attr"`
		Failure string `xml:"failure,omitempty"`
	}
	suite := struct {
		XMLName  xml.Name `xml:"testsuite"`
		Name     string   `xml:"name,attr"`
		Failures int      `xml:"failures,attr"`
		Cases    []test   `xml:"testcase"`
	}{Name: rep.B.Experiment, Failures: failed}
	for _, o := range rep.Gates {
		one := test{Class: rep.B.Experiment, Name: o.Gate}
		if !o.Passed {
			one.Failure = o.Reason
		}
		suite.Cases = append(suite.Cases, one)
	}

	text, err := xml.MarshalIndent(suite, "", "  ")
	return errors.Join(err, os.WriteFile(path, append([]byte(xml.Header), text...), 0o644))
}

// compareExperiments compares the newest versions of two experiments.
func compareExperiments(c *cli.Context) (err error) {
	if c.NArg() != 2 {
		return config.Usagef(c, "give two experiments")
	}
	r := run{c: c}
	r.client, r.id, err = config.Read(c).Remote()
	if err != nil {
		return err
	}
	var sides []side
	for _, name := range c.Args().Slice() {
		all, err := experiment.Load(c.Context, r.search, name, "")
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return fmt.Errorf("there are no calls of the experiment %s", name)
		}
		newest := slices.Max(slices.Collect(maps.Keys(all)))
		sides = append(sides, side{name, newest, all[newest]})
	}

	rep := report{A: &sides[0], B: sides[1]}
	_, err = r.compare(&rep)
	if err != nil {
		return err
	}
	return print.Output(c, rep, rep.print)
}
