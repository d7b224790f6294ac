package queue

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"promptspool/spool/disk"
	"promptspool/spool/queue/frame"
)

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

// addLosses completes a report with what was written down: when its losses were found, and
// the earlier ones, around which nothing waits any more.
func (r *Report) addLosses(recorded []RecordedLoss) {
	for _, l := range recorded {
		waits := false
		for i := range r.Lost {
			lost := &r.Lost[i]
			if !l.overlaps(lost.First, lost.Last) {
				continue
			}
			if waits = true; lost.FoundAt.IsZero() {
				lost.FoundAt, lost.Reason = l.FoundAt, l.Reason
			}
		}

		if !waits {
			r.Earlier = append(r.Earlier, l)
		}
	}
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
