package experiments

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"promptspool/spool/disk"
)

// journalFolder is where runs keep what an interrupted one must not pay for twice.
const journalFolder = ".promptspool-experiments"

// plan is what an interrupted run must find again.
type plan struct {
	Name     string `json:"name"`
	Template string `json:"template"`
	Versions []int  `json:"versions"` // the one to try, and the base if there is one
	File     string `json:"file,omitempty"`
	Rows     []row  `json:"rows"`
}

// task is one row for one version.
type task struct {
	Row     string `json:"row,omitempty"`
	Version int    `json:"version,omitempty"`
}

// step is a line of a journal: the plan in the first one, then how far a task is. A later line replaces an
// earlier one: the command was given the row, it answered, or (without an id) it failed and is asked again.
type step struct {
	task
	Plan *plan           `json:"plan,omitempty"`
	ID   string          `json:"id,omitempty"`   // of the request
	Body json.RawMessage `json:"body,omitempty"` // the answer, as it is logged
}

// journal is a file with the steps of a run, each written before the next one begins. It outlives the process,
// but its last lines not a power cut. It is locked, and safe for concurrent use.
type journal struct{ *os.File }

// openJournal opens the journal of an experiment, or begins it with a plan, and returns how far its tasks were.
// A journal that exists must be of the same versions and file. Its rows count: a filter may find other calls by
// now.
func openJournal(p *plan) (j journal, steps map[task]step, err error) {
	path := filepath.Join(journalFolder, p.Name+".jsonl")
	err = os.MkdirAll(journalFolder, 0o700)
	if err == nil {
		j.File, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	}
	if err == nil {
		err = disk.Lock(j.File)
	}
	if errors.Is(err, disk.ErrLocked) {
		err = fmt.Errorf("the experiment %s is running in another process; wait for it, or give another --name",
			p.Name)
	}
	if err != nil {
		return j, nil, err
	}
	text, err := io.ReadAll(j)
	if err != nil {
		return j, nil, err
	}

	begun := p
	steps = map[task]step{}
	for line := range bytes.Lines(text) {
		var s step
		switch err := json.Unmarshal(line, &s); {
		case err != nil: // it was cut, and not acted on
		case s.Plan != nil:
			begun = s.Plan
		default:
			steps[s.task] = s
		}
	}
	if begun.Template != p.Template || !slices.Equal(begun.Versions, p.Versions) || begun.File != p.File {
		return j, nil, fmt.Errorf("the experiment %s was begun with versions %v of %s and other rows; give another "+
			"--name, or remove %s to begin it again", p.Name, begun.Versions, begun.Template, path)
	}
	p.Rows = begun.Rows
	// The last line may be cut.
	_, err = j.WriteString("\n")

	return j, steps, errors.Join(err, j.add(step{Plan: p}))
}

// add writes a step.
func (j journal) add(s step) error {
	line, err := json.Marshal(s)
	if err == nil {
		_, err = j.Write(append(line, '\n'))
	}
	return err
}

// end removes the journal of a run that is complete: its server has everything.
func (j journal) end() error {
	err := errors.Join(j.Close(), os.Remove(j.Name()))
	// Other experiments may have theirs there.
	_ = os.Remove(journalFolder)
	return err
}
