package spooltool

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/datafolder"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/spool/queue"
)

func checkSpool(c *cli.Context) error {
	data, running, _, err := spoolTarget(c)
	if err != nil {
		return err
	}

	progress := print.NewProgress(c, "Verifying", "", 0)
	var report queue.Report
	if running {
		err = ops.ControlLong(c.Context, data, "GET", "/spool/check", nil, func(r io.Reader) error {
			return json.NewDecoder(r).Decode(&report)
		})
	} else {
		report, err = checkFolder(c, data)
	}
	if progress.End(); err != nil {
		return err
	}

	if err := print.Output(c, report, func(t *print.Table) { reportTable(t, data, report) }); err != nil {
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

func quarantineOf(data string) string { return filepath.Join(datafolder.Spool(data), "quarantine") }

func checkFolder(c *cli.Context, data string) (queue.Report, error) {
	return inSpool(data, func(f *queue.Folder) (queue.Report, error) { return f.Check(c.Context) })
}

func folderStatus(c *cli.Context, data string) (queue.Status, error) {
	return inSpool(data, func(f *queue.Folder) (queue.Status, error) { return f.Status(c.Context) })
}

// damageTable prints the losses and the damage in the report of a spool.
func damageTable(t *print.Table, data string, r queue.Report) {
	for _, l := range r.Lost {
		t.Row("Lost: " + lossText(t, queue.RecordedLoss{
			FoundAt: l.FoundAt,
			First:   l.First,
			Last:    l.Last,
			Events:  l.Last - l.First + 1,
			Reason:  l.Reason,
		}))
	}
	for _, l := range r.Lanes {
		for _, e := range l.Errors {
			t.Row("Damaged: " + e)
		}
	}
	for _, l := range r.Earlier {
		t.Row("Lost earlier: " + lossText(t, l))
	}

	quarantine := quarantineOf(data)
	for _, name := range r.Quarantine {
		t.Row("Set aside: " + filepath.Join(quarantine, name))
	}
	if len(r.Quarantine)+len(r.Earlier) > 0 {
		t.Row("Once you have dealt with it, remove the folder " + quarantine + "; it is reported until then.")
	}
}

// lossText says which events were lost, when that was found, and why.
func lossText(t *print.Table, l queue.RecordedLoss) string {
	text := print.Quantity(l.Events, "event")
	switch {
	case l.Lane != "":
		text += " of the " + l.Lane + " lane"
	case l.Events == 1:
		text += fmt.Sprintf(", number %d", l.First)
	default:
		text += fmt.Sprintf(", numbers %d to %d", l.First, l.Last)
	}

	// A sidecar that has not started since then has not found it.
	if !l.FoundAt.IsZero() {
		text += ", found " + t.Moment(l.FoundAt)
	}
	return text + ": " + l.Reason
}

// reportTable prints a report for people, its verdict last.
func reportTable(t *print.Table, data string, r queue.Report) {
	t.Head("GENERATION", "STATE", "FIRST", "LAST", "WAITING", "BYTES", "ACKED", "DAMAGED")
	for _, g := range r.Generations {
		t.Row(g.Name, g.State, g.First, g.Last, g.Events, humanize.IBytes(uint64(g.Bytes)), g.Acked, g.Damaged)
	}
	for _, l := range r.Lanes {
		t.Row("lane "+l.Lane, "", "", "", l.Events, humanize.IBytes(uint64(l.Bytes)), "", l.Damaged)
	}
	damageTable(t, data, r)

	// Apart from what is lost: the app may never have been told that these are safe.
	if r.Uncertain > 0 {
		t.Row("Not certain: " + print.Quantity(r.Uncertain, "event") + " of the newest commit missing; " +
			"the power most likely failed before the app was told that they are safe")
	}

	queued := print.Quantity(r.Events, "event")
	switch earlier := r.EarlierEvents(); {
	case !r.Sound():
		lost := print.Quantity(r.LostEvents(), "event")
		t.Row(fmt.Sprintf("Damaged: %s lost; %s queued and whole.", lost, queued))
	case earlier > 0:
		t.Row(fmt.Sprintf("Sound now: %s queued, each is whole. Lost earlier: %s.",
			queued, print.Quantity(earlier, "event")))
	default:
		t.Row(fmt.Sprintf("Sound: %s queued, each is whole, and none is missing.", queued))
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
