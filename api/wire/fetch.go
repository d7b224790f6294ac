package wire

import (
	"bytes"
	"encoding/json"
)

// TemplateFetch is the body of a template fetch. Raw members alias the body it was decoded from.
type TemplateFetch struct {
	Selector
	Provider  string
	Model     string
	Variables map[string]json.RawMessage // nil if input_variables was absent: placeholders stay as written
	Overrides map[string]json.RawMessage // model_parameter_overrides

	Room *FetchRoom // nil: none
}

// FetchRoom is memory that one fetch after another may use. What is made in it is valid as long as its owner leaves it alone.
type FetchRoom struct {
	Variables map[string]json.RawMessage // empty; nil: a new one is made each time
	Kwargs    []byte                     // llm_kwargs are written from its beginning, and it is grown for them
	names     []string                   // of variables before, so that one that is the same again is not copied anew
}

// DecodeFetch reads the body of a template fetch. Nothing, as of an absent body, means the latest version.
func DecodeFetch(object Object) (TemplateFetch, error) { return DecodeFetchIn(nil, object) }

// DecodeFetchIn is DecodeFetch with room for what it reads; nil: none.
func DecodeFetchIn(room *FetchRoom, object Object) (TemplateFetch, error) {
	f := fields{object: object}
	w := TemplateFetch{
		Selector: Selector{Version: f.version("version"), Label: f.text("label", false, NameRunesMax)},
		Provider: f.text("provider", false, NameRunesMax),
		Model:    f.text("model", false, NameRunesMax),

		Variables: f.values("input_variables", room),
		Overrides: f.values("model_parameter_overrides", nil),
		Room:      room,
	}
	if skip, ok := f.raw("skip_input_variable_rendering", false); ok {
		switch string(skip) {
		case "true":
			w.Variables = nil
		case "false":
		default:
			f.fault("skip_input_variable_rendering", "must be true or false")
		}
	}
	return w, f.err()
}

// values reads an object into a map, that of the room if there is one; nil if it is absent.
func (f *fields) values(name string, room *FetchRoom) map[string]json.RawMessage {
	v := f.json(name, false)
	if v == nil {
		return nil
	}
	if room == nil {
		room = &FetchRoom{}
	}
	if room.Variables == nil {
		room.Variables = make(map[string]json.RawMessage)
	}
	i := 0
	for quoted, e := range rawMembers(v) {
		if len(room.Variables) == ObjectMembersMax {
			f.fault(name, "has more than %d members", ObjectMembersMax)
			break
		}
		room.Variables[room.name(i, quoted)] = e.Value
		i++
	}
	return room.Variables
}

// Bounds of the names that a room keeps.
const (
	roomNamesMax     = 16
	roomNameBytesMax = 64
)

// name is the text of the name of variable i, for which mostly the same was given the last time.
func (r *FetchRoom) name(i int, quoted []byte) string {
	if i < len(r.names) && string(quoted[1:len(quoted)-1]) == r.names[i] && bytes.IndexByte(quoted, '\\') < 0 {
		return r.names[i]
	}
	name := unquote(quoted)
	switch {
	case len(name) > roomNameBytesMax:
	case i < len(r.names):
		r.names[i] = name
	case i == len(r.names) && i < roomNamesMax:
		r.names = append(r.names, name)
	}
	return name
}
