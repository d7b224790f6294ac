package print

import (
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"
)

// Progress is a line on stderr that says how far a command is. It shows nothing where stderr is not a terminal.
type Progress struct {
	out   io.Writer // nil for none
	shown time.Time
}

// NewProgress returns the progress of a command.
func NewProgress(c *cli.Context) *Progress {
	if !IsTerminal(c.App.ErrWriter) {
		return &Progress{}
	}
	return &Progress{out: c.App.ErrWriter}
}

// Show writes a text over the one before, at most once a second.
func (p *Progress) Show(text string) {
	if p.out != nil && time.Since(p.shown) > time.Second {
		p.shown = time.Now()
		fmt.Fprintf(p.out, "\r%-78s", text)
	}
}

// End ends the line, if there is one.
func (p *Progress) End() {
	if !p.shown.IsZero() {
		fmt.Fprintln(p.out)
	}
}
