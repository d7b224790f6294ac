package spooltool

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/spool"
)

func spoolCheckCommand() *cli.Command {
	return &cli.Command{
		Name:   "check",
		Usage:  "read and verify every event, and prove that none is missing; changes nothing",
		Flags:  []cli.Flag{sidecarDataFlag(), config.OutputFlag()},
		Action: checkSpool,
	}
}

func checkSpool(c *cli.Context) error {
	data, running, _, err := spoolTarget(c)
	if err != nil {
		return err
	}

	var report spool.Report
	if running {
		err = ops.ControlLong(c.Context, data, "GET", "/spool/check", nil, func(r io.Reader) error {
			return json.NewDecoder(r).Decode(&report)
		})
	} else {
		report, err = checkFolder(c, data)
	}
	if err != nil {
		return err
	}

	if err := print.Output(c, report, func(t *print.Table) { reportTable(t, report) }); err != nil {
		return err
	}
	// After the report, whose details say what to repair; scripts see the exit code.
	if !report.Sound() {
		return fmt.Errorf("the disk lost %s that the app was told to be safe, or damaged a lane; "+
			"see `promptspool spool repair --data %s` and its quarantine",
			print.Quantity(report.LostEvents(), "event"), data)
	}
	return nil
}

func checkFolder(c *cli.Context, data string) (report spool.Report, err error) {
	err = inSpool(data, func(f *spool.Folder) (err error) {
		report, err = f.Check(c.Context)
		return err
	})
	return report, err
}

func folderStatus(c *cli.Context, data string) (status spool.Status, err error) {
	err = inSpool(data, func(f *spool.Folder) (err error) {
		status, err = f.Status(c.Context)
		return err
	})
	return status, err
}

// damageTable prints the losses and the damage in a report.
func damageTable(t *print.Table, r spool.Report) {
	// The columns of what follows are others.
	_ = t.Flush()

	for _, l := range r.Lost {
		t.Row("lost", fmt.Sprintf("%d to %d", l.First, l.Last), l.Reason)
	}
	for _, l := range r.Lanes {
		for _, e := range l.Errors {
			t.Row("damaged", e)
		}
	}
	for _, q := range r.Quarantine {
		t.Row("in quarantine", q)
	}
}

// reportTable prints a report for people, its verdict last.
func reportTable(t *print.Table, r spool.Report) {
	t.Row("GENERATION", "STATE", "FIRST", "LAST", "WAITING", "BYTES", "ACKED", "DAMAGED")
	for _, g := range r.Generations {
		t.Row(g.Name, g.State, g.First, g.Last, g.Events, humanize.IBytes(uint64(g.Bytes)), g.Acked, g.Damaged)
	}
	for _, l := range r.Lanes {
		t.Row("lane "+l.Lane, "", "", "", l.Events, humanize.IBytes(uint64(l.Bytes)), "", l.Damaged)
	}
	damageTable(t, r)

	// Apart from what is lost: the app may never have been told that these are safe.
	if r.Uncertain > 0 {
		t.Row("not certain", print.Quantity(r.Uncertain, "event")+" of the newest commit missing; "+
			"the power most likely failed before the app was told of safety")
	}

	queued := print.Quantity(r.Events, "event")
	if r.Sound() {
		t.Row(fmt.Sprintf("Sound: %s queued, each is whole, and none is missing.", queued))
	} else {
		lost := print.Quantity(r.LostEvents(), "event")
		t.Row(fmt.Sprintf("Damaged: %s lost; %s queued and whole.", lost, queued))
	}
}
