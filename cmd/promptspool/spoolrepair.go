package main

import (
	"github.com/urfave/cli/v2"

	"promptspool/spool"
)

func spoolRepairCommand() *cli.Command {
	return &cli.Command{
		Name: "repair", Usage: "show what would mend a stopped sidecar's spool, and do it with --apply",
		Flags: append(own("spool repair",
			boolFlag("spool repair", "apply", "do it; what is damaged is kept in the folder quarantine"),
		), sidecarDataFlag(), outputFlag()),
		Action: repairSpool,
	}
}

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
		if _, err := spool.Repair(c.Context, spool.Config{Dir: spoolDir(data), BytesMax: 1 << 50, GenerationBytes: 16 << 20, Logger: toolLogger(c)}); err != nil {
			return err
		}
		if report, err = checkFolder(c, data); err != nil {
			return err
		}
	}
	return output(c, report, func(t *table) {
		t.row("GENERATION", "STATE", "PLAN", "WHOLE", "LOST")
		for _, g := range report.Generations {
			t.row(g.Name, g.State, g.Plan, g.Events, g.Damaged)
		}
		damageTable(t, report)
		switch {
		case c.Bool("apply"):
			t.row("Done. The sidecar may be started.")
		case report.Work():
			t.row("Nothing was changed. --apply does it; the damaged files are kept in the folder quarantine.")
		default:
			t.row("There is nothing to repair.")
		}
	})
}
