package print

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
)

func TestProgressTellsHowMuchIsDone(t *testing.T) {
	for _, tt := range []struct {
		p    *Progress
		want string
	}{
		{&Progress{stage: "Verifying"}, "Verifying: 20s"},
		{&Progress{stage: "Writing", done: 40 << 20}, "Writing: 40 MiB, 20s"},
		{&Progress{stage: "Restoring", done: 40 << 20, total: 400 << 20},
			"Restoring: 40 MiB of 400 MiB, 20s"},
		{&Progress{stage: "Copying", noun: "records", done: 24_000, total: 24_000},
			"Copying: 24,000 of 24,000 records, 20s"},
	} {
		equal(t, tt.want, tt.p.text(20*time.Second), tt.want)
	}
}

func TestProgressIsShownOnATerminalOnly(t *testing.T) {
	var piped, screen bytes.Buffer
	p := NewProgress(&cli.Context{App: &cli.App{ErrWriter: &piped}}, "Writing", "", 0)
	_, _ = p.Write(make([]byte, 1024))
	p.End()
	equal(t, "piped", piped.String(), "")

	p.out, p.timer = &screen, time.NewTimer(time.Hour)
	p.show()
	p.End()
	text := screen.String()
	if !strings.HasPrefix(text, "\rWriting: 1.0 KiB, ") || !strings.HasSuffix(text, " \r") {
		t.Errorf("on a terminal: %q", text)
	}
	screen.Reset()
	p.show() // the timer's last call may come after the end
	equal(t, "after the end", screen.String(), "")
}
