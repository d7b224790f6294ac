package main

import (
	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"
)

// spoolCommand looks into the spool of a running sidecar.
func spoolCommand() *cli.Command {
	return &cli.Command{
		Name:  "spool",
		Usage: "look into a sidecar's spool",
		Subcommands: []*cli.Command{{
			Name: "status", Usage: "say what waits for the server",
			Flags:  []cli.Flag{stringFlag("data", "", "the sidecar's data `folder`; for up it is .promptspool/sidecar"), outputFlag()},
			Action: spoolStatus,
		}},
	}
}

func spoolStatus(c *cli.Context) error {
	var status sidecarStatus
	if err := control(c, "GET", "/status", nil, &status); err != nil {
		return err
	}
	if status.Role != "sidecar" {
		return wrong(c, "data", text(c, "data"), "is the folder of a "+status.Role+", which has no spool; give a sidecar's")
	}
	s := status.Spool
	return output(c, s, func(t *table) {
		t.row("waiting", humanize.Comma(int64(s.Events))+" events")
		t.row("payload", humanize.IBytes(uint64(s.Bytes)))
		t.row("on disk", humanize.IBytes(uint64(s.DiskBytes)))
		oldest := "-"
		if !s.Oldest.IsZero() {
			oldest = moment(s.Oldest)
		}
		t.row("oldest", oldest)
		t.row("held", humanize.Comma(int64(s.Held))+" events, whose key the server refuses")
		t.row("dead letters", humanize.Comma(int64(s.Dead)))
		t.row("lost", humanize.Comma(int64(s.Gaps))+" events, by damage to the disk")
		t.row("server", status.Upstream)
	})
}
