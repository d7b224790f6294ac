package render

import (
	"encoding/json"
	"fmt"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/rawjson"
)

// checker collects what is wrong with a document.
type checker struct {
	faults []wire.FieldError
	isData bool // the messages fill a placeholder: braces in them mean nothing
}

func (c *checker) fault(path, format string, args ...any) {
	if len(c.faults) < language.FaultsMax {
		c.faults = append(c.faults, wire.FieldError{Field: path, Reason: fmt.Sprintf(format, args...)})
	}
}

// object reads the object at path.
func (c *checker) object(path string, raw json.RawMessage) (wire.Object, bool) {
	o, err := wire.ParseObject(raw)
	if err == nil {
		return o, true
	}

	e := wire.AsError(err)
	for _, f := range e.Fields {
		c.fault(join(path, f.Field), "%s", f.Reason)
	}
	if len(e.Fields) == 0 {
		c.fault(path, "must be a JSON object")
	}

	return nil, false
}

// list reads the array at path.
func (c *checker) list(path string, raw json.RawMessage, most int) []json.RawMessage {
	if len(raw) == 0 || raw[0] != '[' {
		c.fault(path, "must be an array")
		return nil
	}
	list := rawjson.Elements(raw)
	// Its entries are not looked at: each could add another fault.
	if len(list) > most {
		c.fault(path, "has more than %d entries", most)
		return nil
	}

	return list
}

// text reads a member that must be a string and, if it is required, must not be empty.
func (c *checker) text(path string, o wire.Object, name string, required bool) string {
	v, ok := o.Get(name)
	if ok && v[0] != '"' {
		c.fault(path, "must be a string")
		return ""
	}

	s := rawjson.Text(v)
	if required && s == "" {
		c.fault(path, "is missing")
	}

	return s
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
