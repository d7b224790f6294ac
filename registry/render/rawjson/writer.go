package rawjson

import (
	"encoding/json"

	"promptspool/api/wire/jsonscan"
)

// Writer writes an object in one expression: NewObject().Str("a", "b").End(). Every call
// returns the Writer to use next.
type Writer []byte

// NewObject begins an object.
func NewObject() Writer { return append(make(Writer, 0, 128), '{') }

// Within begins an object at the end of b. End then returns b with the object.
func Within(b []byte) Writer { return append(b, '{') }

// Name begins a member. The name must have nothing to escape.
func (w Writer) Name(name string) Writer {
	if w[len(w)-1] != '{' {
		w = append(w, ',')
	}

	return append(append(append(w, '"'), name...), '"', ':')
}

// Str adds a member that is a string.
func (w Writer) Str(name, value string) Writer { return jsonscan.AppendString(w.Name(name), value) }

// Raw adds a member that is JSON.
func (w Writer) Raw(name string, value json.RawMessage) Writer {
	return append(w.Name(name), value...)
}

// End ends the object and returns it.
func (w Writer) End() json.RawMessage { return json.RawMessage(append(w, '}')) }
