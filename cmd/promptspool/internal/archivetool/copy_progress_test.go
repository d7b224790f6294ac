package archivetool

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"promptspool/spool/archive/transfer"
)

func TestACopyTellsHowFarItIs(t *testing.T) {
	var out bytes.Buffer
	now := time.Now()
	report := showProgress(&out, 10_000, func() time.Time { return now })
	for n := range 5 {
		report(transfer.Progress{Stage: "copying", Done: transfer.Contents{"records": {Items: int64(1000 * n)}}})
		now = now.Add(700 * time.Millisecond)
	}

	const want = "copying: 4,000 of 10,000 records, 1,428 a second, 4s left"
	lines := strings.Split(out.String(), "\r")
	if last := strings.TrimSpace(lines[len(lines)-1]); len(lines) != 4 || last != want {
		t.Errorf("the progress is %q", lines)
	}
}
