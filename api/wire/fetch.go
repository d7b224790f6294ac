package wire

import (
	"encoding/json"

	"promptspool/api/wire/jsonscan"
)

// TemplateFetch is the body of a template fetch. Raw members alias the body it was decoded from.
type TemplateFetch struct {
	Selector
	Provider  string
	Model     string
	Variables map[string]json.RawMessage // nil if input_variables was absent: placeholders stay as written
	Overrides map[string]json.RawMessage // model_parameter_overrides

	// Room is where llm_kwargs may be written, from its beginning; it is grown for them. nil: they are made anew.
	Room *[]byte
}

// DecodeFetch reads the body of a template fetch. Nothing, as of an absent body, means the latest version.
func DecodeFetch(object Object) (TemplateFetch, error) {
	f := fields{object: object}
	w := TemplateFetch{
		Selector: Selector{Version: f.version("version"), Label: f.text("label", false, NameRunesMax)},
		Provider: f.text("provider", false, NameRunesMax),
		Model:    f.text("model", false, NameRunesMax),

		Variables: f.values("input_variables"),
		Overrides: f.values("model_parameter_overrides"),
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

// values reads an object into a map; nil if it is absent.
func (f *fields) values(name string) map[string]json.RawMessage {
	v := f.json(name, false)
	if v == nil {
		return nil
	}

	values := make(map[string]json.RawMessage)
	for m := range jsonscan.Members(v) {
		if len(values) == ObjectMembersMax {
			f.fault(name, "has more than %d members", ObjectMembersMax)
			break
		}
		values[m.Name] = m.Value
	}

	return values
}
