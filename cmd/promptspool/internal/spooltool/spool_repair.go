package spooltool

import (
	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/spool/queue"
)

func repairSpool(c *cli.Context) error {
	data, err := stoppedSpool(c)
	if err != nil {
		return err
	}
	report, err := checkFolder(c, data)
	if err != nil {
		return err
	}

	if c.Bool("apply") {
		if _, err := queue.Repair(c.Context, stoppedConfig(data, config.ToolLogger(c))); err != nil {
			return err
		}
		// The report is then what the next start will find.
		report, err = checkFolder(c, data)
		if err != nil {
			return err
		}
	}

	return print.Output(c, report, func(t *print.Table) {
		t.Head("GENERATION", "STATE", "PLAN", "WHOLE", "LOST")
		for _, g := range report.Generations {
			t.Row(g.Name, g.State, g.Plan, g.Events, g.Damaged)
		}
		damageTable(t, data, report)

		switch {
		case c.Bool("apply"):
			t.Row("Done. The sidecar may be started.")
		case report.Work():
			t.Row("Nothing was changed. --apply does it; the damaged files are kept in the folder quarantine.")
		default:
			t.Row("There is nothing to repair.")
		}
	})
}
