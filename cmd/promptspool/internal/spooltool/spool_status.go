package spooltool

import (
	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/print"
)

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
