package language

import (
	"encoding/json"
	"fmt"
	"slices"
)

// OutputBytesMax bounds what one rendering writes, over all texts of a blueprint.
const OutputBytesMax = 16 << 20

// missingMax bounds the missing variables that are named.
const missingMax = 100

var ErrOutput = fmt.Errorf("becomes longer than %d MiB", OutputBytesMax>>20)

// Template is a parsed text.
type Template interface {
	// appendTo renders it behind b.
	AppendTo(b []byte, r *Rendering) ([]byte, error)
	// Variables lists those that it uses, in order of appearance, each once.
	Variables() []string
}

// Rendering is the state of one call: variables, what may still be spent, what was missing.
type Rendering struct {
	Variables map[string]json.RawMessage
	Output    int // bytes that may still be written
	Work      int // bytes that were read, by f-strings
	Missing   []string

	// of jinja2
	Steps   int             // that were made
	Looked  int             // what steps was when done was last looked at
	Done    <-chan struct{} // closed when nobody waits for the outcome any more; nil if that is not told
	Ended   bool            // done was closed
	Memory  int             // bytes that values took
	Decoded map[string]any  // variables as values
}

func NewRendering(vars map[string]json.RawMessage) Rendering {
	return Rendering{Variables: vars, Output: OutputBytesMax}
}

func (r *Rendering) Miss(name string) {
	if len(r.Missing) < missingMax {
		r.Missing = addOnce(r.Missing, name)
	}
}

// addOnce appends a name that is not there yet.
func addOnce(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}
