// Package experiments has the commands `promptspool experiments ...`: they try versions of a template with a
// command of the user's, and compare what it answered.
package experiments

import (
	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
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
				config.TextFlag("limit", "100", "the `number` of calls that are taken, at most 10000"),
				config.ListFlag("evaluate", "judge each answer by this `evaluator`, such as contains:refund or "+
					"NAME=COMMAND; repeatable"),
				config.ListFlag("gate", "exit with 1 unless this `condition` holds, such as "+
					"'faithfulness >= base - 0.02' or 'cost <= base * 1.1'; repeatable"),
				config.TextFlag("name", "", "the experiment's `name`; the same name continues an interrupted run"),
				config.TextFlag("concurrency", "4", "the `number` of calls at a time, and of processes of the command"),
				config.TextFlag("timeout", "2m", "the `time` that an answer may take"),
				config.TextFlag("junit", "", "write the gates and the failed rows as JUnit XML to this `file`"),
				config.SwitchFlag("yes", "also run if it may cost more than $1, or an unknown amount for 100 calls"),
			}, config.RemoteFlags()),

		config.Command("compare EXPERIMENT [EXPERIMENT]",
			"compare the versions of an experiment, or two experiments; each may be NAME@VERSION",
			compareExperiments, config.RemoteFlags()))
}
