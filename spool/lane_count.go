package spool

import (
	"errors"
	"fmt"
	"os"

	"github.com/dustin/go-humanize/english"
)

// A laneCount stores on disk how many events each lane holds, held events first
// (slots.go). Nothing else would show that a file of a lane is gone.
//
// It is raised after events are durable in a lane, and lowered before they are removed.
// So a crash can only leave it too low, by events that are still in the spool or that
// were given up, and never raises a false alarm.
type laneCount struct{ slots }

const (
	laneCountName  = "lanes.count" // beside the folder of the lanes, which may go as a whole
	laneCountMagic = "PSN\x01"
)

// atLeast returns how many events the lane holds at least; 0 if the file cannot tell.
func (c *laneCount) atLeast(lane Lane) int {
	switch {
	case !c.sure():
		return 0
	case lane == LaneHeld:
		return int(c.numbers[0])
	}
	return int(c.numbers[1])
}

// saveCountLocked makes the number of events in the lanes durable.
func (l *lanes) saveCountLocked() error { return l.saveCountLessLocked(LaneHeld, 0) }

// saveCountLessLocked is saveCountLocked without some events of a lane that are about to
// be removed.
func (l *lanes) saveCountLessLocked(lane Lane, events int) error {
	count := [2]uint64{uint64(l.usage[LaneHeld].total.events), uint64(l.usage[LaneDead].total.events)}
	if lane == LaneHeld {
		count[0] -= uint64(events)
	} else {
		count[1] -= uint64(events)
	}

	if err := l.count.save(count); err != nil {
		return l.fail(fmt.Errorf("cannot write %s: %w", l.count.file.Name(), err))
	}
	return nil
}

// loseLocked counts and logs events of a lane that are gone, or no longer whole.
func (l *lanes) loseLocked(lane Lane, events int, why string) {
	if events <= 0 {
		return
	}

	l.lost[lane] += events
	l.countLost(events)
	l.log.Error("events that were acknowledged to the app are lost",
		"lane", lane.String(), "events", events, "reason", why, "dir", l.dir)
}

// forgetMissingLocked drops a segment whose file is gone although it was not released,
// and counts its events as lost. It reports whether it did.
//
// The keys of these events are not known, so Keys names them until the next start.
func (l *lanes) forgetMissingLocked(g segment) (bool, error) {
	if _, err := os.Lstat(g.path); !errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	g, known := l.dropLocked(g.path)
	if !known {
		return false, nil // it was released
	}

	// Save the lower count, or the next start would report the same events again.
	l.usage[g.lane].total.events -= g.count
	l.loseLocked(g.lane, g.count, "somebody removed "+g.path)
	return true, l.saveCountLocked()
}

// stillThere counts the events of a segment whose file is gone, and returns an error
// then. It returns nil for a segment that was released.
func (l *lanes) stillThere(g segment) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writableLocked() != nil {
		return nil
	}

	missing, err := l.forgetMissingLocked(g)
	if missing {
		events := english.Plural(g.count, "event", "")
		lost := fmt.Errorf("spool: %s of the %s lane lost: somebody removed %s", events, g.lane, g.path)
		return errors.Join(lost, err)
	}
	return err
}

// lostEvents returns how many events of a lane were found lost since the spool was
// opened.
func (l *lanes) lostEvents(lane Lane) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost[lane]
}
