// Package language holds what the template languages share: what they render into, with
// the variables and the bounds of one rendering, errors that know their place in a text,
// and JSON values as Python writes them.
package language

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"promptspool/api/wire"
)

// OutputBytesMax bounds what one rendering writes, over all texts of a blueprint.
const OutputBytesMax = 16 << 20

// missingMax bounds the missing variables that are named.
const missingMax = 100

// ErrOutput means that a rendering would write more than OutputBytesMax.
var ErrOutput = fmt.Errorf("becomes longer than %d MiB", OutputBytesMax>>20)

// Template is a parsed text. It never changes.
type Template interface {
	// AppendTo appends the rendered text to b.
	AppendTo(b []byte, r *Rendering) ([]byte, error)
	// Variables lists the variables that it uses, each once, in order of appearance.
	Variables() []string
}

// Rendering is the state of filling in one blueprint: its variables, and what its texts
// may still spend together.
type Rendering struct {
	Variables map[string]json.RawMessage
	Missing   []string // variables that were used but not given
	Output    int      // bytes that may still be written
	Work      int      // bytes of variables that f-strings have read

	// The work that jinja2 has spent. Its limits are in the package jinja.
	Steps   int            // steps made
	Looked  int            // Steps when Context was last checked
	Memory  int            // bytes of the values made
	Decoded map[string]any // variables that were decoded, by name

	Context context.Context // ends when no caller waits for the outcome any longer; nil if unknown
	Ended   bool            // Context ended before the rendering did
}

// NewRendering begins a rendering with these variables, which are JSON values.
func NewRendering(vars map[string]json.RawMessage) Rendering {
	return Rendering{Variables: vars, Output: OutputBytesMax}
}

// Miss notes a variable that was used but not given.
func (r *Rendering) Miss(name string) {
	if len(r.Missing) < missingMax && !slices.Contains(r.Missing, name) {
		r.Missing = append(r.Missing, name)
	}
}

// FaultsMax bounds how many faults, findings or warnings are reported for one thing.
const FaultsMax = 32

// VariablesMax bounds the variables of a blueprint.
const VariablesMax = wire.ObjectMembersMax

// Names lists variables in order of appearance, each once. The zero value is empty.
type Names struct {
	List []string
	seen map[string]bool
}

// Add appends names that are new and not empty. It stops one name beyond VariablesMax, so
// that callers can recognise too many.
func (n *Names) Add(more ...string) {
	if n.seen == nil {
		n.seen = make(map[string]bool)
	}
	for _, name := range more {
		if name != "" && !n.seen[name] && len(n.List) <= VariablesMax {
			n.seen[name] = true
			n.List = append(n.List, name)
		}
	}
}

// Shorten cuts a caller's text for a message.
func Shorten(s string) string {
	const bytesMax = 80
	if len(s) <= bytesMax {
		return s
	}
	// The cut may be within a character.
	return strings.ToValidUTF8(s[:bytesMax], "") + "..."
}
