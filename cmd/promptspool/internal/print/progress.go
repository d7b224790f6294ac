package print

import (
	"cmp"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"
)

// Progress is a line on stderr that says every second how far a command is. It shows nothing where stderr is not a
// terminal. Writing to it counts bytes.
type Progress struct {
	out   io.Writer
	noun  string // what is counted; "" for bytes
	begun time.Time
	timer *time.Timer

	mutex       sync.Mutex
	stage       string // what is being done
	done, total int64  // a total of 0 is not known
}

// NewProgress begins the progress of a command through a number of things; 0 if it is not known.
func NewProgress(c *cli.Context, stage, noun string, total int64) *Progress {
	p := &Progress{out: c.App.ErrWriter, noun: noun, begun: time.Now(), stage: stage, total: total}
	if IsTerminal(p.out) {
		p.timer = time.AfterFunc(time.Second, p.show)
	}
	return p
}

// Write counts bytes.
func (p *Progress) Write(b []byte) (int, error) {
	p.Add(int64(len(b)))
	return len(b), nil
}

// Add counts more things that are done.
func (p *Progress) Add(n int64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.done += n
}

// Set notes how many things are done, and what is being done; "" if that has not changed.
func (p *Progress) Set(stage string, done int64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.stage, p.done = cmp.Or(stage, p.stage), done
}

// End takes the line away.
func (p *Progress) End() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
		fmt.Fprintf(p.out, "\r%78s\r", "")
	}
}

func (p *Progress) show() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.timer == nil {
		return
	}
	fmt.Fprintf(p.out, "\r%-78s", p.text(time.Since(p.begun)))
	p.timer.Reset(time.Second)
}

// text returns how far a command is after a time, with its rate and the time left.
func (p *Progress) text(after time.Duration) string {
	count, noun := humanize.Comma, " "+p.noun
	if p.noun == "" {
		count, noun = func(n int64) string { return humanize.IBytes(uint64(n)) }, ""
	}

	text, rest := p.stage+": ", after.Round(time.Second).String()
	if p.done > 0 {
		text += count(p.done)
		if p.total > 0 {
			text += " of " + count(p.total)
		}
		perSecond := float64(p.done) / after.Seconds()
		text += noun + ", " + count(int64(perSecond)) + noun + "/s, "
		if left := float64(p.total - p.done); left > 0 {
			rest = time.Duration(left/perSecond*1e9).Round(time.Second).String() + " left"
		}
	}
	return text + rest
}
