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
	"sync"
)

// journalFolder is where runs keep what an interrupted one must not pay for twice.
const journalFolder = ".promptspool-experiments"

// task is one row for one version.
type task struct {
	Row     string `json:"row,omitempty"`
	Version int    `json:"version,omitempty"`
}

// step is a line of a journal: the plan in the first one, then how far a task is. A later line replaces an
// earlier one: the command was given the row, the row was answered, or it failed and is asked again.
type step struct {
	task
	Plan   *plan           `json:"plan,omitempty"`
	ID     string          `json:"id,omitempty"`   // of the request
	Body   json.RawMessage `json:"body,omitempty"` // the answer, as it is logged
	Failed bool            `json:"failed,omitempty"`
}

// journal keeps the steps of a run in a file, each before the next one begins. It outlives the process, but
// its last lines not a power cut. It is safe for concurrent use.
type journal struct {
	mutex sync.Mutex
	file  *os.File
	steps map[task]step
}

// openJournal opens the journal of an experiment, or begins it with a plan. A journal that exists must be
// of the same versions and file. Its rows count: a filter may find other calls by now.
func openJournal(p *plan) (*journal, error) {
	path := filepath.Join(journalFolder, p.Name+".jsonl")
	err := os.MkdirAll(journalFolder, 0o700)
	if err != nil {
		return nil, err
	}
	j := &journal{steps: map[task]step{}}
	j.file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(j.file)
	if err != nil {
		return nil, err
	}

	begun := p
	for line := range bytes.Lines(text) {
		var s step
		switch err := json.Unmarshal(line, &s); {
		case err != nil: // it was cut, and not acted on
		case s.Plan != nil:
			begun = s.Plan
		default:
			j.steps[s.task] = s
		}
	}
	if begun.Template != p.Template || !slices.Equal(begun.Versions, p.Versions) || begun.File != p.File {
		return nil, fmt.Errorf("the experiment %s was begun with versions %v of %s and other rows; give another "+
			"--name, or remove %s to begin it again", p.Name, begun.Versions, begun.Template, path)
	}
	p.Rows = begun.Rows
	// The last line may be cut.
	_, err = j.file.WriteString("\n")

	return j, errors.Join(err, j.add(step{Plan: p}))
}

// add writes a step.
func (j *journal) add(s step) error {
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if s.Plan == nil {
		j.steps[s.task] = s
	}
	_, err = j.file.Write(append(line, '\n'))

	return err
}

// of returns how far a task is.
func (j *journal) of(t task) step {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.steps[t]
}

// end removes the journal of a run that is complete: its server has everything.
func (j *journal) end() error {
	err := errors.Join(j.file.Close(), os.Remove(j.file.Name()))
	// Other experiments may have theirs there.
	_ = os.Remove(journalFolder)
	return err
}
