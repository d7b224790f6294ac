// Package lane keeps the events that cannot be delivered, in plain files beside the queue.
//
// There are two lanes: held events, whose key the server rejects, and dead letters, whose
// content it rejects. An event that was moved to a lane is fsynced there, and stays until
// Release. The exception are dead letters whose record is at a limit: see limited.go.
//
//	lanes.go     what memory knows about the lanes, and how many events there must be
//	load.go      opening, with what is whole and what is damaged; events in
//	read.go      the events of a lane, one at a time, also of a stopped spool; events out
//	limited.go   dead letters of limits, which give way to everything else
//	segment.go   the format of a file
//
// The lanes are a part of the queue: it is package queue that knows the bounds of disk, sets
// damaged files aside and ends when an fsync fails. Config holds how they talk.
package lane

import (
	"errors"
	"fmt"
	"time"

	"promptspool/spool/queue/frame"
)

// ErrFull means that the lanes, or the disk under them, have no space for more.
//
// Events that were not moved stay in the spool. Replay or purge what is in the lanes, or
// raise --spool-bytes-max.
var ErrFull = errors.New("held events and dead letters fill their share of the disk; " +
	"replay or purge them, or raise --spool-bytes-max")

// Lane is a place for events that cannot be delivered and must not hold up the others.
type Lane byte

// The lanes.
const (
	Held Lane = iota // events of a key that the server rejects
	Dead             // events that the server rejects for their content
)

// String returns the lane's name, as used in messages and in the names of its files.
func (l Lane) String() string {
	if l == Dead {
		return "dead"
	}
	return "held"
}

// Parse returns the lane of this name.
func Parse(name string) (Lane, error) {
	for _, l := range []Lane{Held, Dead} {
		if l.String() == name {
			return l, nil
		}
	}

	return 0, fmt.Errorf("%q is not one of the lanes: held, dead", name)
}

// Entry is an event in a lane, with why and when it was moved there.
type Entry struct {
	frame.Entry
	Reason  string
	MovedAt time.Time
	AtLimit bool // it is a dead letter because its record is at a limit
}
