package main

import (
	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"
)

func spoolStatusCommand() *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "say what waits for the server; of a stopped sidecar, everything is read for it",
		Flags:  []cli.Flag{sidecarDataFlag(), outputFlag()},
		Action: spoolStatus,
	}
}

func spoolStatus(c *cli.Context) error {
	data, running, status, err := spoolTarget(c)
	if err != nil {
		return err
	}
	if !running {
		status.Upstream = "- (no sidecar runs here)"
		if status.Spool, err = folderStatus(c, data); err != nil {
			return err
		}
	}
	s := status.Spool
	return output(c, s, func(t *table) {
		t.row("queued", quantity(s.Events, "event"))
		t.row("payload", humanize.IBytes(uint64(s.Bytes)))
		t.row("on disk", humanize.IBytes(uint64(s.DiskBytes)))
		oldest := "-"
		if !s.Oldest.IsZero() {
			oldest = moment(s.Oldest)
		}
		t.row("oldest", oldest)
		t.row("held", quantity(s.Held, "event")+", because the server rejects the key")
		t.row("dead letters", humanize.Comma(int64(s.Dead)))
		t.row("lost", quantity(s.Gaps, "event")+", by damage to the disk")
		if s.Uncertain > 0 {
			t.row("not certain", quantity(s.Uncertain, "event")+" of the newest commit missing after a crash, most likely never acknowledged")
		}
		t.row("server", status.Upstream)
	})
}
