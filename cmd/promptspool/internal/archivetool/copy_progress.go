package archivetool

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"promptspool/spool/database/transfer"
)

// copyProgress returns a function that says how far a copy is, and how long the rest of its stage takes.
func copyProgress(records int64, now func() time.Time) func(transfer.Progress) string {
	begun, stage := now(), ""

	return func(p transfer.Progress) string {
		// Each stage has its own pace, so the estimate begins again.
		if p.Stage != stage {
			begun, stage = now(), p.Stage
		}

		done := p.Done["records"].Items
		line := fmt.Sprintf("%s: %s of %s records", p.Stage, humanize.Comma(done), humanize.Comma(records))
		if passed := now().Sub(begun); passed > time.Second && done > 0 && done <= records {
			rate := float64(done) / passed.Seconds()
			left := time.Duration(float64(records-done) / rate * float64(time.Second))
			line += fmt.Sprintf(", %s a second, %s left", humanize.Comma(int64(rate)), left.Round(time.Second))
		}
		return line
	}
}
