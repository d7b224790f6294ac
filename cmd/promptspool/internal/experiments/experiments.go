// Package experiments has the commands `promptspool experiments ...`: they try versions of a template with a
// command of the user's, and compare what it answered.
package experiments

import (
	"errors"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/filter"
)

// Command is `promptspool experiments`: try versions of a template before a label moves.
func Command() *cli.Command {
	return config.Commands("experiments", "try versions of a template with your own command, on calls that were made",
		config.Command("run -- COMMAND...",
			"give each row, rendered with each version, to a command that calls the model; log, score and "+
				"compare its answers; `promptspool docs experiments` explains it",
			runExperiment, []cli.Flag{
				config.TextFlag("template", "", "the version to try: `NAME@LABEL`, NAME@3, or NAME for the latest"),
				config.TextFlag("against", "", "the version to compare it with: `NAME@LABEL`"),
				config.TextFlag("filter", "", "take the variables of the calls that this `line` finds, newest first"),
				config.TextFlag("rows", "", "take the rows of this `file` instead: CSV or JSON lines"),
				config.TextFlag("limit", "100", "the `number` of calls that are taken, at most 1000"),
				config.ListFlag("evaluate", "judge each answer by this `evaluator`, such as contains:refund or "+
					"NAME=COMMAND; repeatable"),
				config.ListFlag("gate", "exit with 1 unless this `condition` holds, such as "+
					"'faithfulness >= base - 0.02' or 'cost <= base * 1.1'; repeatable"),
				config.TextFlag("name", "", "the experiment's `name`; the same name continues an interrupted run"),
				config.TextFlag("concurrency", "4", "the `number` of calls at a time, and of processes of the command"),
				config.TextFlag("timeout", "2m", "the `time` that an answer may take"),
				config.TextFlag("junit", "", "write the gates as JUnit XML to this `file`"),
				config.SwitchFlag("yes", "also run if it may cost more than $1, or an unknown amount for 100 calls"),
			}, config.RemoteFlags()),

		config.Command("compare EXPERIMENT EXPERIMENT", "compare the newest versions of two experiments by their rows",
			compareExperiments, config.RemoteFlags()))
}

func runExperiment(c *cli.Context) (err error) {
	v := config.Read(c)
	timeout := v.Duration("timeout")
	r := &run{
		c: c, zone: filter.Zone(v), command: newCommand(c.Args().Slice(), timeout),
		concurrency: v.Count("concurrency", concurrencyMax), faulty: map[task]bool{}, warned: map[string]bool{},
	}
	if c.NArg() == 0 {
		return config.Usagef(c, "give the command that calls the model after --")
	}
	template, against, line := v.Required("template"), v.Text("against"), v.Text("filter")
	r.File, r.Name = v.Text("rows"), v.Text("name")
	limit := v.Count("limit", limitMax)
	if (line == "") == (r.File == "") {
		v.Note(errors.New("give --filter or --rows, and not both"))
	}
	if r.Name != "" && (!experimentName.MatchString(r.Name) || utf8.RuneCountInString(r.Name) > nameMax) {
		v.Reject("name", "is not a name of at most 100 letters, digits, dots, dashes and underscores")
	}
	for _, text := range v.List("evaluate") {
		err := r.addEvaluator(text, timeout)
		if err != nil {
			v.RejectValue("evaluate", text, err.Error())
		}
	}
	for _, text := range v.List("gate") {
		g, err := parseGate(text)
		if g.ofBase && against == "" {
			err = errors.New("names base; give --against as well")
		}
		if err != nil {
			v.RejectValue("gate", text, err.Error())
		}
		r.gates = append(r.gates, g)
	}
	r.client, r.id, err = v.Remote()
	if err != nil {
		return err
	}

	return r.do(template, against, line, limit)
}
