package spool

import (
	"errors"
	"fmt"
	"iter"

	"github.com/dustin/go-humanize/english"
)

// ParseLane returns the lane of this name.
func ParseLane(name string) (Lane, error) {
	for _, l := range []Lane{LaneHeld, LaneDead} {
		if l.String() == name {
			return l, nil
		}
	}

	return 0, fmt.Errorf("%q is not one of the lanes: held, dead", name)
}

// Lane yields the events of a lane, as Spool.Lane does.
//
// From a damaged file, which Open would set aside, it yields the events that are whole,
// and then an error with Seq 0.
func (f *Folder) Lane(lane Lane) iter.Seq2[LaneEntry, error] {
	return func(yield func(LaneEntry, error) bool) {
		names, err := segmentNames(f.path(lanesName))
		if err != nil {
			yield(LaneEntry{}, err)
			return
		}

		for _, n := range names {
			if n.lane != lane || n.unfinished {
				continue
			}

			// A damaged file is salvaged, any other error is passed on, and the loop goes
			// on after both.
			path := f.path(lanesName, n.name)
			_, _, err := describeSegment(path, lane)
			switch {
			case err == nil && !segment{path: path, lane: lane}.each(yield):
				return
			case errors.Is(err, errFrame) && !eachSalvaged(path, yield):
				return
			case err != nil && !errors.Is(err, errFrame) && !yield(LaneEntry{}, err):
				return
			}
		}
	}
}

// eachSalvaged yields what is whole in a damaged file of a lane, then an error. It
// returns false when yield did.
func eachSalvaged(path string, yield func(LaneEntry, error) bool) bool {
	whole, promised, err := salvage(path)
	if err != nil {
		return yield(LaneEntry{}, err)
	}

	for _, event := range whole {
		if e, err := unwrapLane(event.key, event.wrapped); !yield(e, err) {
			return false
		}
	}

	all := english.Plural(max(promised, len(whole)), "event", "")
	return yield(LaneEntry{}, fmt.Errorf("spool: %s is damaged: %d of %s in it whole", path, len(whole), all))
}

// checkLane reads every event of a lane.
func checkLane(lane Lane, events iter.Seq2[LaneEntry, error]) LaneReport {
	r := LaneReport{Lane: lane.String()}
	for e, err := range events {
		switch {
		case err == nil:
			r.Events++
			r.Bytes += int64(len(e.Data))
		case e.Seq > 0:
			r.Damaged++
		default:
			r.Errors = append(r.Errors, err.Error())
		}
	}

	return r
}

// lose adds lost events of the lane, if there are any.
func (r *LaneReport) lose(events int) {
	if events <= 0 {
		return
	}

	r.Lost = events
	r.Errors = append(r.Errors, fmt.Sprintf("%s of the %s lane lost: missing from all of its files",
		english.Plural(events, "event", ""), r.Lane))
}
