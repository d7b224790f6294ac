package lane

import (
	"errors"
	"fmt"
	"os"

	"github.com/dustin/go-humanize/english"

	"promptspool/spool/disk"
)

// A file stores how many events each lane holds, held events first. Nothing else would show
// that a file of a lane is gone. It is beside the folder of the lanes, which may go as a whole.
//
// A count is raised after events are durable in a lane, and lowered before they are removed.
// So a crash can only leave it too low, by events that are still in the spool or that were
// given up, and never raises a false alarm.
const (
	countName  = "lanes.count"
	countMagic = "PSN\x01"
)

// atLeast returns how many events the lane holds at least; 0 if the file cannot tell.
func atLeast(count disk.Slots, lane Lane) int {
	if !count.Sure() {
		return 0
	}
	return int(count.Numbers[lane])
}

// saveCountLocked makes the number of events in the lanes durable.
func (l *Lanes) saveCountLocked() error { return l.saveCountLessLocked(Held, 0) }

// saveCountLessLocked is saveCountLocked without some events of a lane that are about to
// be removed.
func (l *Lanes) saveCountLessLocked(lane Lane, less int) error {
	events := [2]uint64{uint64(l.usage[Held].Events), uint64(l.usage[Dead].Events)}
	events[lane] -= uint64(less)

	if err := l.count.Save(events); err != nil {
		return l.config.Fail(fmt.Errorf("cannot write %s: %w", l.count.Path(), err))
	}
	return nil
}

// loseLocked counts and logs events of a lane that are gone, or no longer whole.
func (l *Lanes) loseLocked(lane Lane, events int, why string) {
	if events <= 0 {
		return
	}

	l.lost[lane] += events
	l.config.CountLost(lane, events, why)
	l.config.Logger.Error("events that were acknowledged to the app are lost",
		"lane", lane.String(), "events", events, "reason", why, "dir", l.dir)
}

// forgetMissingLocked drops a segment whose file is gone although it was not released,
// and counts its events as lost. It reports whether it did.
//
// The keys of these events are not known, so Keys names them until the next start.
func (l *Lanes) forgetMissingLocked(g segment) (bool, error) {
	if _, err := os.Lstat(g.path); !errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	g, known := l.dropLocked(g.path)
	if !known {
		// It was released.
		return false, nil
	}

	// Save the lower count, or the next start would report the same events again.
	l.usage[g.lane].Events -= g.count
	l.loseLocked(g.lane, g.count, g.path+" was removed")
	return true, l.saveCountLocked()
}

// stillThere counts the events of a segment whose file is gone, and returns an error
// then. It returns nil for a segment that was released.
func (l *Lanes) stillThere(g segment) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writableLocked() != nil {
		return nil
	}

	// The caller read the lane without a lock, so it cannot tell a released segment from
	// one that was removed by hand.
	missing, err := l.forgetMissingLocked(g)
	if missing {
		events := english.Plural(g.count, "event", "")
		lost := fmt.Errorf("spool: %s of the %s lane lost: %s was removed", events, g.lane, g.path)
		return errors.Join(lost, err)
	}
	return err
}

// Lost returns how many events of a lane were found lost since the spool was opened.
func (l *Lanes) Lost(lane Lane) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost[lane]
}
