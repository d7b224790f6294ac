package spool

// Report is what reading every frame of a spool found.
type Report struct {
	Frontier    uint64             `json:"frontier"` // the lowest sequence that is not acknowledged
	Next        uint64             `json:"next"`     // the sequence of the next append
	Events      int                `json:"events"`   // that wait and are whole
	Bytes       int64              `json:"bytes"`    // theirs, as they were given to Append
	Generations []GenerationReport `json:"generations"`
	Lanes       []LaneReport       `json:"lanes"`
	Lost        []Loss             `json:"lost"`       // in order; what the server has is none
	Quarantine  []string           `json:"quarantine"` // folders that were set aside earlier
	// Uncertain counts events of the newest commit that are missing and may never have been
	// acknowledged to the app. They are not in Lost.
	Uncertain int `json:"uncertain"`
}

// GenerationReport is what was found of one generation.
type GenerationReport struct {
	Name    string `json:"name"`
	State   State  `json:"state"`
	First   uint64 `json:"first"`
	Last    uint64 `json:"last"`    // First-1 when it is empty
	Events  int    `json:"events"`  // that wait and are whole
	Bytes   int64  `json:"bytes"`   // theirs
	Acked   uint64 `json:"acked"`   // events that the server or a lane has
	Damaged uint64 `json:"damaged"` // events that wait and are not whole: lost
	Plan    Plan   `json:"plan"`
	// Unreadable is the bytes of its files that the disk cannot read.
	Unreadable int64 `json:"unreadable_bytes,omitempty"`
}

// State says how a generation lies on the disk.
type State string

// The states of a generation.
const (
	StateWritten State = "written" // it takes new events, in a running process
	StateSealed  State = "sealed"  // it was closed in order, and its files are what they were then
	StateOpen    State = "open"    // it was not closed, and both of its logs tell the same
	StateDamaged State = "damaged" // Badger would lose something by opening it, or by reading it
)

// Plan says what is done with a generation by the next Open, or by Repair.
type Plan string

// The plans for a generation. What Rebuild and Quarantine find damaged is set aside and kept.
const (
	PlanKeep       Plan = "keep"
	PlanRemove     Plan = "remove"     // all in it is acknowledged or in a newer edition, or nothing ever was in it
	PlanReplay     Plan = "replay"     // Badger replays its log
	PlanRebuild    Plan = "rebuild"    // every whole event goes to a new edition
	PlanQuarantine Plan = "quarantine" // nothing in it is whole, or a newer edition that lacks events has taken its place
)

// LaneReport is what was found of one lane.
type LaneReport struct {
	Lane    string `json:"lane"`
	Events  int    `json:"events"` // that are whole
	Bytes   int64  `json:"bytes"`  // theirs
	Damaged int    `json:"damaged"`
	Lost    int    `json:"lost"` // that the lane held and nobody released; of a running spool, as found since it was opened
	// Errors tell of files that are not as they were written; what is whole in them counts.
	Errors []string `json:"errors,omitempty"`
}

// Loss is a run of events that the app was told are safe, and of which no whole copy is left where it should be.
type Loss struct {
	First  uint64 `json:"first"`
	Last   uint64 `json:"last"`
	Reason string `json:"reason"`
}

// LostEvents counts the events in Lost, and those that the lanes have lost.
func (r *Report) LostEvents() (n uint64) {
	for _, l := range r.Lanes {
		n += uint64(l.Lost)
	}
	for _, l := range r.Lost {
		n += l.Last - l.First + 1
	}
	return n
}

// Sound says that every event that was acknowledged to the app and is not at the server is there and whole.
func (r *Report) Sound() bool {
	for _, l := range r.Lanes {
		if l.Damaged > 0 || len(l.Errors) > 0 {
			return false
		}
	}
	return len(r.Lost) == 0
}

// Work says that some generation is not as a start would leave it.
func (r *Report) Work() bool {
	for _, g := range r.Generations {
		if g.Plan != PlanKeep {
			return true
		}
	}
	return false
}

// lose adds the sequences from <= s < end, if there are any.
func (r *Report) lose(from, end uint64, reason string) {
	if from < end {
		r.Lost = append(r.Lost, Loss{from, end - 1, reason})
	}
}
