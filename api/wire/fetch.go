package wire

import "encoding/json"

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
}

// DecodeFetch reads the body of a template fetch. Nothing, as of an absent body, means the latest version.
func DecodeFetch(object Object) (TemplateFetch, error) { return DecodeFetchIn(nil, object) }

// DecodeFetchIn is DecodeFetch with room for what it reads; nil: none.
func DecodeFetchIn(room *FetchRoom, object Object) (TemplateFetch, error) {
	f := fields{object: object}
	var variables map[string]json.RawMessage
	if room != nil {
		variables = room.Variables
	}
	w := TemplateFetch{
		Selector: Selector{Version: f.version("version"), Label: f.text("label", false, NameRunesMax)},
		Provider: f.text("provider", false, NameRunesMax),
		Model:    f.text("model", false, NameRunesMax),

		Variables: f.values("input_variables", variables),
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

// values reads an object into a map, m if there is one; nil if it is absent.
func (f *fields) values(name string, m map[string]json.RawMessage) map[string]json.RawMessage {
	v := f.json(name, false)
	if v == nil {
		return nil
	}
	if m == nil {
		m = make(map[string]json.RawMessage)
	}
	for e := range members(v) {
		if len(m) == ObjectMembersMax {
			f.fault(name, "has more than %d members", ObjectMembersMax)
			break
		}
		m[e.Name] = e.Value
	}
	return m
}
