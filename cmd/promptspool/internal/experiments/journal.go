package experiments

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"sync"
)

// journalFolder is where runs keep what an interrupted one must not pay for twice.
const journalFolder = ".promptspool-experiments"

// task is one row for one version.
type task struct {
	Row     string `json:"row,omitempty"`
	Version int    `json:"version,omitempty"`
}

// step is a line of a journal: what is known of a task so far. Later lines add to earlier ones.
type step struct {
	task
	Plan   *plan             `json:"plan,omitempty"`   // in the first line
	ID     string            `json:"id,omitempty"`     // of the request; the command was given the row
	Path   string            `json:"path,omitempty"`   // where the answer is logged
	Body   json.RawMessage   `json:"body,omitempty"`   // as it is logged there
	Scores []json.RawMessage `json:"scores,omitempty"` // as they are logged
	Scored bool              `json:"scored,omitempty"` // the scores are known
	Failed bool              `json:"failed,omitempty"` // there is no answer: the row is asked again
}

// journal keeps the steps of a run in a file, each before the next one begins. It outlives the process, but
// its last lines not a power cut. It is safe for concurrent use.
type journal struct {
	mutex sync.Mutex
	file  *os.File
	steps map[task]step
}

// openJournal opens the journal of an experiment, or begins it with a plan. A journal that exists must be
// of the same versions and file. Its plan counts: a filter may find other calls by now.
func openJournal(p *plan) (*journal, error) {
	if err := os.MkdirAll(journalFolder, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(journalFolder, p.Name+".jsonl")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}

	j := &journal{file: file, steps: map[task]step{}}
	begun, err := j.read()
	switch {
	case err != nil:
	case begun == nil:
		err = j.add(step{Plan: p})
	case begun.Template != p.Template || !reflect.DeepEqual(begun.Versions, p.Versions) || begun.File != p.File:
		err = fmt.Errorf("the experiment %s was begun with versions %v of %s and other rows; give another --name, "+
			"or remove %s to begin it again", p.Name, begun.Versions, begun.Template, file.Name())
	default:
		p.Rows = begun.Rows
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return j, nil
}

// read reads what an earlier run wrote. A last line that is cut was not acted on.
func (j *journal) read() (begun *plan, err error) {
	text, err := io.ReadAll(j.file)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var s step
		switch err := json.Unmarshal(line, &s); {
		case err != nil:
		case s.Plan != nil:
			begun = s.Plan
		default:
			j.merge(s)
		}
	}
	// Behind a line that is cut.
	_, err = j.file.WriteString("\n")

	return begun, err
}

// merge adds a line to its task.
func (j *journal) merge(s step) {
	known := j.steps[s.task]
	switch {
	case s.Failed:
		known = step{task: s.task}
	case s.Body != nil:
		known.Path, known.Body = s.Path, s.Body
	case s.Scored:
		known.Scores, known.Scored = s.Scores, true
	default:
		known = s
	}
	j.steps[s.task] = known
}

// add writes a step.
func (j *journal) add(s step) error {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return err
	}
	j.merge(s)

	return nil
}

// of returns what is known of a task.
func (j *journal) of(t task) step {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.steps[t]
}

// forget ends a task. Only what was not answered is noted, which is asked again.
func (j *journal) forget(s step) (err error) {
	if s.Failed {
		err = j.add(step{task: s.task, Failed: true})
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	delete(j.steps, s.task)
	return err
}

// end removes the journal of a run that is complete: its server has everything.
func (j *journal) end() error {
	err := errors.Join(j.file.Close(), os.Remove(j.file.Name()))
	// Other experiments may have theirs there.
	_ = os.Remove(journalFolder)
	return err
}
