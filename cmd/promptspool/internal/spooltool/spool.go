// Package spooltool has the commands `promptspool spool ...` and `promptspool dead ...`.
//
// They work on a sidecar's spool: through the control socket of a running sidecar, or in the folder of a stopped one.
package spooltool

import (
	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// SpoolCommand is `promptspool spool`.
func SpoolCommand() *cli.Command {
	return config.Commands("spool", "inspect, verify, repair and drain a sidecar's spool",
		config.Command("status",
			"show the events queued for the server; for a stopped sidecar, every event is read",
			spoolStatus, config.ShowingFlags(), []cli.Flag{sidecarDataFlag()}),

		config.Command("check",
			"read and verify every event, and prove that none is missing; changes nothing",
			checkSpool, []cli.Flag{sidecarDataFlag()}, config.OutputFlags()),

		config.Command("export [FILE]",
			"write events as newline-delimited JSON, which `requests import` takes",
			exportSpool, []cli.Flag{sidecarDataFlag()}),

		config.Command("repair", "show what would mend a stopped sidecar's spool, and do it with --apply",
			repairSpool, []cli.Flag{
				config.SwitchFlag("apply", "do it; what is damaged is kept in the folder quarantine"),
				sidecarDataFlag(),
			}, config.OutputFlags()),

		config.Command("drain",
			"deliver what a stopped sidecar's spool holds, until it is empty; "+
				"held events too, if the server takes their key",
			drainStopped, []cli.Flag{
				config.TextFlag("timeout", "10m", "after which `time` to give up; what is left stays"),
				sidecarDataFlag(),
				config.TextFlag("upstream", "", "the server's `URL`, such as http://127.0.0.1:8788"),
			}, config.OutputFlags(), config.TrustFlags("upstream")))
}

func spoolStatus(c *cli.Context) error {
	data, running, status, err := spoolTarget(c)
	if err != nil {
		return err
	}
	if !running {
		// A stopped sidecar's folder does not say where it forwarded to.
		status.Upstream = "- (no sidecar runs here)"
		status.Spool, err = folderStatus(c, data)
		if err != nil {
			return err
		}
	}

	s := status.Spool
	return print.Output(c, s, func(t *print.Table) {
		t.Row("queued", print.Quantity(s.Events, "event"))
		t.Row("payload", humanize.IBytes(uint64(s.Bytes)))
		t.Row("on disk", humanize.IBytes(uint64(s.DiskBytes)))
		oldest := "-"
		if !s.Oldest.IsZero() {
			oldest = t.Moment(s.Oldest)
		}
		t.Row("oldest", oldest)

		t.Row("held", print.Explained(s.Held, "event", "because the server rejects the key"))
		t.Row("dead letters", print.DeadLetters(int64(s.Dead), int64(s.Dropped)))
		t.Row("lost", print.Explained(s.Gaps, "event", "by damage to the disk"))
		if s.Uncertain > 0 {
			t.Row("not certain", print.Quantity(s.Uncertain, "event")+
				" of the newest commit missing after a crash, most likely never acknowledged")
		}
		t.Row("server", status.Upstream)
	})
}
