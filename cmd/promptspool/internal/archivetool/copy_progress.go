package archivetool

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/print"
	"promptspool/spool/archive/transfer"
)

// copyProgress returns a function that shows on stderr how far a copy is, if stderr is a terminal.
//
// It overwrites its line once a second; end ends the line.
func copyProgress(c *cli.Context, records int64) (report func(transfer.Progress), end func()) {
	if !print.IsTerminal(c.App.ErrWriter) {
		return func(transfer.Progress) {}, func() {}
	}
	return showProgress(c.App.ErrWriter, records, time.Now), func() { fmt.Fprintln(c.App.ErrWriter) }
}

func showProgress(w io.Writer, records int64, now func() time.Time) func(transfer.Progress) {
	begun, last, stage := now(), time.Time{}, ""

	return func(p transfer.Progress) {
		// Each stage has a pace of its own, so the estimate begins anew.
		if p.Stage != stage {
			begun, stage = now(), p.Stage
		} else if now().Sub(last) < time.Second {
			return
		}
		last = now()

		done := p.Done["records"].Items
		line := fmt.Sprintf("%s: %s of %s records", p.Stage, humanize.Comma(done), humanize.Comma(records))
		if passed := last.Sub(begun); passed > time.Second && done > 0 && done <= records {
			rate := float64(done) / passed.Seconds()
			left := time.Duration(float64(records-done) / rate * float64(time.Second))
			line += fmt.Sprintf(", %s a second, %s left", humanize.Comma(int64(rate)), left.Round(time.Second))
		}
		fmt.Fprintf(w, "\r%-78s", line)
	}
}
