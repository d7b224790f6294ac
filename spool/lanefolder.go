package spool

import (
	"errors"
	"fmt"
	"iter"
	"os"
)

// ParseLane reads a lane's name.
func ParseLane(name string) (Lane, error) {
	for _, l := range []Lane{LaneHeld, LaneDead} {
		if l.String() == name {
			return l, nil
		}
	}
	return 0, fmt.Errorf("%q is not one of the lanes: held, dead", name)
}

// Lane yields the events of a lane as Spool.Lane does. Of a damaged file, which Open would set aside, it yields the events that
// are whole, then an error with Seq 0.
func (f *Folder) Lane(lane Lane) iter.Seq2[LaneEntry, error] {
	return func(yield func(LaneEntry, error) bool) {
		entries, err := os.ReadDir(f.path(lanesName))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			yield(LaneEntry{}, err)
			return
		}
		for _, e := range entries {
			if l, ok := laneOf(e.Name()); !ok || l != lane {
				continue
			}
			path := f.path(lanesName, e.Name())
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

// eachSalvaged yields what is whole in a damaged file of a lane, then an error. It says false when yield did.
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
	return yield(LaneEntry{}, fmt.Errorf("spool: %s is damaged: %d events in it are whole, of %d", path, len(whole), max(promised, len(whole))))
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
