package queue

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"
)

// Report is what reading every frame of a spool found.
type Report struct {
	Frontier    uint64             `json:"frontier"` // the lowest sequence that is not acknowledged
	Next        uint64             `json:"next"`     // the sequence of the next append
	Events      int                `json:"events"`   // that wait and are whole
	Bytes       int64              `json:"bytes"`    // of these events, as given to Append
	Generations []GenerationReport `json:"generations"`
	Lanes       []LaneReport       `json:"lanes"`
	Lost        []Loss             `json:"lost"`       // in order, without events that the server has
	Quarantine  []string           `json:"quarantine"` // folders and files that were set aside earlier
	// Earlier are losses that were found before, and around which nothing waits any more.
	// Removing the folder quarantine forgets them.
	Earlier []RecordedLoss `json:"earlier_losses"`
	// Uncertain counts events of the newest commit that are missing and may never have
	// been acknowledged to the app. They are not in Lost.
	Uncertain int `json:"uncertain"`
}

// GenerationReport is what was found in one generation.
type GenerationReport struct {
	Name    string `json:"name"`
	State   State  `json:"state"`
	First   uint64 `json:"first"`
	Last    uint64 `json:"last"`    // First-1 when it is empty
	Events  int    `json:"events"`  // that wait and are whole
	Bytes   int64  `json:"bytes"`   // of these events
	Acked   uint64 `json:"acked"`   // events that the server or a lane has
	Damaged uint64 `json:"damaged"` // events that wait and are not whole: lost
	Plan    Plan   `json:"plan"`
	// Unreadable is how many bytes of its files the disk cannot read.
	Unreadable int64 `json:"unreadable_bytes,omitempty"`
}

// State is the condition of a generation on the disk.
type State string

// The states of a generation.
const (
	StateWritten State = "written" // it takes new events, in a running process
	StateSealed  State = "sealed"  // it was closed in order, and its files are what they were then
	StateOpen    State = "open"    // it was not closed, and both of its logs agree
	StateDamaged State = "damaged" // Badger would lose something by opening it, or by reading it
)

// Plan is what the next Open, or Repair, does with a generation.
type Plan string

// The plans for a generation. Damaged files that Rebuild and Quarantine find are set
// aside and kept.
const (
	PlanKeep       Plan = "keep"
	PlanRemove     Plan = "remove"     // all of it is acknowledged or in a newer edition, or it was always empty
	PlanReplay     Plan = "replay"     // Badger replays its log
	PlanRebuild    Plan = "rebuild"    // every whole event goes to a new edition
	PlanQuarantine Plan = "quarantine" // nothing in it is whole, or a newer edition without some events replaced it
)

// LaneReport is what was found in one lane.
type LaneReport struct {
	Lane    string `json:"lane"`
	Events  int    `json:"events"` // that are whole
	Bytes   int64  `json:"bytes"`  // of these events
	Damaged int    `json:"damaged"`
	// Lost counts events that the lane held and that were not released. In a running
	// spool, it counts those found lost since the spool was opened.
	Lost int `json:"lost"`
	// Errors name files that are not as they were written. Whole events in them count as
	// Events.
	Errors []string `json:"errors,omitempty"`
}

// Loss is a run of lost events: no whole copy of them is left where it should be. The app
// was told that they are safe.
type Loss struct {
	First  uint64 `json:"first"`
	Last   uint64 `json:"last"`
	Reason string `json:"reason"`
	// FoundAt is when a running spool found it; zero if none has yet.
	FoundAt time.Time `json:"found_at,omitzero"`
}

// LostEvents returns the number of events in Lost, and of those that the lanes have lost.
func (r *Report) LostEvents() (n uint64) {
	for _, l := range r.Lanes {
		n += uint64(l.Lost)
	}
	for _, l := range r.Lost {
		n += l.Last - l.First + 1
	}
	return n
}

// EarlierEvents returns the number of events in Earlier.
func (r *Report) EarlierEvents() (n uint64) {
	for _, l := range r.Earlier {
		n += l.Events
	}
	return n
}

// Sound reports whether every event that was acknowledged to the app is whole, or at the
// server.
func (r *Report) Sound() bool {
	damaged := func(l LaneReport) bool { return l.Damaged > 0 || len(l.Errors) > 0 }

	// Damaged events of generations are in Lost.
	return len(r.Lost) == 0 && !slices.ContainsFunc(r.Lanes, damaged)
}

// Work reports whether some generation is not as a start would leave it.
func (r *Report) Work() bool {
	return slices.ContainsFunc(r.Generations, func(g GenerationReport) bool { return g.Plan != PlanKeep })
}

// lose adds the sequences from <= s < end, if there are any.
func (r *Report) lose(from, end uint64, reason string) {
	if from < end {
		r.Lost = append(r.Lost, Loss{First: from, Last: end - 1, Reason: reason})
	}
}

// checkLane reads every event of a lane.
func checkLane(lane Lane, events iter.Seq2[LaneEntry, error]) LaneReport {
	r := LaneReport{Lane: lane.String()}
	for e, err := range events {
		switch {
		case err == nil:
			r.Events++
			r.Bytes += int64(len(e.Data))
		// An error without a sequence is about a whole file.
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
