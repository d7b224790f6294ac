package queue

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"

	"promptspool/spool/disk"
	"promptspool/spool/queue/frame"
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

// lossesName is a file in the quarantine, with a line of JSON for each loss that was found.
//
// Once the events around a loss are delivered, nothing else shows it. The file goes when a
// person has dealt with the quarantine and removes that.
const lossesName = "losses.jsonl"

// RecordedLoss is a loss of events as it was written down when it was found.
type RecordedLoss struct {
	FoundAt time.Time `json:"found_at"`
	Lane    string    `json:"lane,omitempty"`  // empty for events that waited
	First   uint64    `json:"first,omitempty"` // the sequences of events that waited
	Last    uint64    `json:"last,omitempty"`
	Events  uint64    `json:"events"`
	Reason  string    `json:"reason"`
}

// overlaps reports whether the loss has some of the sequences from first to last.
func (l *RecordedLoss) overlaps(first, last uint64) bool {
	return l.Lane == "" && l.First <= last && first <= l.Last
}

// readLosses returns the losses that were written down in the spool at dir, in the order
// in which they were found. A line that cannot be read is left out.
func readLosses(dir string) ([]RecordedLoss, error) {
	file, err := os.Open(filepath.Join(dir, quarantineName, lossesName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()

	var losses []RecordedLoss
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var l RecordedLoss
		if json.Unmarshal(lines.Bytes(), &l) == nil {
			losses = append(losses, l)
		}
	}
	if err := lines.Err(); err != nil && !disk.IsUnreadable(err) {
		return nil, err
	}
	return losses, nil
}

// loadLosses learns which losses were written down, so that none is written down twice.
func (q *Queue) loadLosses() error {
	losses, err := readLosses(q.config.Dir)
	for _, l := range losses {
		if l.Lane == "" {
			q.recorded = append(q.recorded, without(frame.Range{From: l.First, End: l.Last + 1}, q.recorded)...)
			sortRanges(q.recorded)
		}
	}
	return err
}

// recordLocked writes a loss down durably. If that fails, only the log and the metrics have
// it.
func (q *Queue) recordLocked(l RecordedLoss) {
	l.FoundAt = q.config.Now().UTC().Truncate(time.Second)
	line, err := json.Marshal(l)
	if err == nil {
		err = appendLine(q.path(quarantineName), lossesName, line)
	}
	if err != nil {
		q.config.Logger.Error("a loss of events could not be written down; `promptspool spool check` will not list it",
			"events", l.Events, "error", err)
	}
}

// appendLine durably appends a line to a file in a folder, which it makes if need be.
func appendLine(dir, name string, line []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}

	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Sync(), file.Close(), disk.SyncDir(dir), disk.SyncDir(filepath.Dir(dir)))
}

// addAside completes a report of the spool at dir with what was set aside and written down: when
// its losses were found, and the earlier ones, around which nothing waits any more.
func (r *Report) addAside(dir string) (err error) {
	r.Quarantine, err = quarantined(dir)
	if err != nil {
		return err
	}
	recorded, err := readLosses(dir)

	for _, l := range recorded {
		waits := false
		for i := range r.Lost {
			lost := &r.Lost[i]
			if !l.overlaps(lost.First, lost.Last) {
				continue
			}
			waits = true
			if lost.FoundAt.IsZero() {
				lost.FoundAt, lost.Reason = l.FoundAt, l.Reason
			}
		}

		if !waits {
			r.Earlier = append(r.Earlier, l)
		}
	}
	return err
}

// quarantined lists what was set aside in the spool at dir.
func quarantined(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, quarantineName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}

	var names []string
	for _, e := range entries {
		if e.Name() != lossesName {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// without returns the parts of a range that are in none of the others, which are in order
// and apart.
func without(g frame.Range, others []frame.Range) (parts []frame.Range) {
	for _, other := range others {
		if g.From >= other.End || other.From >= g.End {
			continue
		}
		if g.From < other.From {
			parts = append(parts, frame.Range{From: g.From, End: other.From})
		}
		g.From = other.End
	}
	if g.From < g.End {
		parts = append(parts, g)
	}
	return parts
}

// lose counts and logs the sequences from <= s < end as lost, except those that were
// counted before or are below the frontier. The caller must not hold mu.
func (q *Queue) lose(from, end uint64, why string) {
	q.mu.Lock()
	defer q.mu.Unlock()

	from = max(from, q.frontier)
	q.gaps = slices.DeleteFunc(q.gaps, func(g frame.Range) bool { return g.End <= q.frontier })

	// Reading finds the same gap again and again, and so does each start.
	lost := frame.Range{From: from, End: end}
	for _, g := range without(lost, q.gaps) {
		q.countGapLocked(g, why)
	}
	for _, g := range without(lost, q.recorded) {
		q.recordLocked(RecordedLoss{First: g.From, Last: g.End - 1, Events: g.End - g.From, Reason: why})
		q.recorded = append(q.recorded, g)
	}

	sortRanges(q.gaps)
	sortRanges(q.recorded)
}

// countGapLocked counts a range that overlaps no known gap.
func (q *Queue) countGapLocked(g frame.Range, why string) {
	n := g.End - g.From
	q.gaps = append(q.gaps, g)
	q.addGapsLocked(n)
	q.config.Logger.Error("events that were acknowledged to the app are lost",
		"events", n, "first", g.From, "last", g.End-1, "reason", why, "dir", q.config.Dir)
}

func sortRanges(ranges []frame.Range) {
	slices.SortFunc(ranges, func(a, b frame.Range) int { return cmp.Compare(a.From, b.From) })
}

// afterLostLocked returns the first sequence >= from that is not counted as lost.
func (q *Queue) afterLostLocked(from uint64) uint64 {
	// The gaps are in order, so one pass is enough even where they touch.
	for _, g := range q.gaps {
		if g.From <= from && from < g.End {
			from = g.End
		}
	}

	return from
}

// addGapsLocked adds to the count of lost events.
func (q *Queue) addGapsLocked(events uint64) {
	q.gapEvents += events
	q.config.Metrics.SpoolGaps.Add(float64(events))
}

// addLaneGaps adds events that a lane lost to the same count. The caller must not hold
// mu.
func (q *Queue) addLaneGaps(lane Lane, events int, why string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.addGapsLocked(uint64(events))
	q.recordLocked(RecordedLoss{Lane: lane.String(), Events: uint64(events), Reason: why})
}

// addDropped counts dead letters of limits that were dropped. The caller must not hold mu.
func (q *Queue) addDropped(events int) {
	q.mu.Lock()
	defer q.mu.Unlock()

	q.dropped += events
	q.config.Metrics.DeadLettersDropped.Add(float64(events))
}

// noteUncertain counts and logs events that are missing and may never have been answered.
// The caller must not hold mu.
func (q *Queue) noteUncertain(events int, name string) {
	if events == 0 {
		return
	}

	q.mu.Lock()
	q.uncertain += uint64(events)
	q.mu.Unlock()

	q.config.Metrics.SpoolUncertain.Add(float64(events))
	q.config.Logger.Warn("events of the newest commit are missing; "+
		"it is not certain that they were acknowledged: "+
		"the power most likely failed before they could be",
		"events", events, "generation", q.path(name))
}
