package lane

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/dustin/go-humanize/english"

	"promptspool/spool/disk"
	"promptspool/spool/queue/frame"
)

// Config holds the folder of the lanes, and how they talk to the spool. Everything is
// required.
//
// The functions are called with the lock of the lanes held: they must not call back, and
// whatever they lock must not be held by a caller of the lanes.
type Config struct {
	// Dir is the spool's folder, in which the lanes are a folder and a file.
	Dir string
	// BytesMax bounds the disk blocks of both lanes together.
	BytesMax int64
	// Logger gets lost events and damaged files as errors.
	Logger *slog.Logger

	// CheckFailed returns why nothing may be written, or nil if it may.
	CheckFailed func() error
	// Fail puts the spool out of service because of a failed write or fsync. It returns
	// the error for the caller.
	Fail func(error) error
	// CountLost counts events of a lane that are gone, or no longer whole, and why.
	CountLost func(lane Lane, events int, why string)
	// CountDropped counts dead letters of limits that were dropped for lack of space.
	CountDropped func(events int)
	// NoteDisk counts bytes of disk that were taken.
	NoteDisk func(bytes int64)
	// Quarantine sets a damaged file aside; name is relative to Dir.
	Quarantine func(name string) error
}

// Lanes are both lanes of a spool that runs.
//
// They are a folder of segments (segment.go), named held-SEQUENCE, dead-SEQUENCE or
// limit-SEQUENCE by the first event that was in it. Memory grows with the segments, not with the events. All
// methods are safe for concurrent use.
type Lanes struct {
	config Config
	dir    string // of the segments

	mu       sync.Mutex
	closed   error // why nothing can be used any more; nil while it can
	count    disk.Slots
	lost     [2]int         // by lane: events found lost since the spool was opened
	segments []segment      // in order of their first sequence
	usage    [2]frame.Usage // by lane, without bytes
	bytes    int64          // of disk, both together
	newestAt time.Time      // the latest time of an append, of all events that were ever seen in a lane
}

// addLocked notes a segment and the events in it.
func (l *Lanes) addLocked(g segment, events []frame.EventKey) {
	// After those with the same first sequence, so that files stay in the order of their
	// moves.
	i, _ := slices.BinarySearchFunc(l.segments, g.first, func(s segment, first uint64) int {
		if s.first <= first {
			return -1
		}
		return 1
	})
	l.segments = slices.Insert(l.segments, i, g)
	l.bytes += g.bytes

	for _, k := range events {
		l.usage[g.lane].Add(k.Key, 1, 0)
		if k.At.After(l.newestAt) {
			l.newestAt = k.At
		}
	}
}

// dropLocked forgets a segment, but not the usage of its events, and returns it if it was
// known.
func (l *Lanes) dropLocked(path string) (g segment, known bool) {
	i := slices.IndexFunc(l.segments, func(s segment) bool { return s.path == path })
	if i < 0 {
		return g, false
	}

	g = l.segments[i]
	l.segments = slices.Delete(l.segments, i, i+1)
	l.bytes -= g.bytes
	return g, true
}

// Close ends all use of the lanes: later calls return reason. A second call does nothing.
func (l *Lanes) Close(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.closed == nil {
		_ = l.count.Close()
		l.closed = reason
	}
}

// writableLocked returns why nothing may be written, or nil.
func (l *Lanes) writableLocked() error {
	if l.closed != nil {
		return l.closed
	}
	return l.config.CheckFailed()
}

func (l *Lanes) segmentsIn(lane Lane) ([]segment, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed != nil {
		return nil, l.closed
	}

	return slices.DeleteFunc(slices.Clone(l.segments), func(g segment) bool { return g.lane != lane }), nil
}

// Events returns how many events the lane holds.
func (l *Lanes) Events(lane Lane) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.usage[lane].Events
}

// Newest returns the latest time of an append, of all events seen in a lane.
//
// Events that were released since the spool was opened count, too. The time is zero if
// there were none.
func (l *Lanes) Newest() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newestAt
}

// Keys returns the numbers of the keys that have events in some of these lanes. The map
// belongs to the caller.
func (l *Lanes) Keys(lanes ...Lane) map[uint32]struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()

	keys := make(map[uint32]struct{})
	for _, lane := range lanes {
		for key := range l.usage[lane].Keys {
			keys[key] = struct{}{}
		}
	}
	return keys
}

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
