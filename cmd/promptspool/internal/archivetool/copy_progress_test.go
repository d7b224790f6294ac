package archivetool

import (
	"testing"
	"time"

	"promptspool/spool/database/transfer"
)

func TestACopyTellsHowFarItIs(t *testing.T) {
	now := time.Now()
	progress := copyProgress(10_000, func() time.Time { return now })
	last := ""
	for n := range 5 {
		done := transfer.Contents{"records": {Items: int64(1000 * n)}}
		last = progress(transfer.Progress{Stage: "copying", Done: done})
		now = now.Add(700 * time.Millisecond)
	}

	if last != "copying: 4,000 of 10,000 records, 1,428 a second, 4s left" {
		t.Errorf("the progress is %q", last)
	}
}
