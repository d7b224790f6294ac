package wire

import (
	"bytes"
	"encoding/json"
)

// Lookup returns the first member called name of an object inside a body that ParseObject has accepted, and whether it is
// there and not null. Of anything but an object (no bytes at all, an array, a string) it finds nothing. The value
// aliases raw.
func Lookup(raw json.RawMessage, name string) (json.RawMessage, bool) {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 || raw[0] != '{' {
		return nil, false
	}
	for m := range members(raw) {
		if m.Name == name {
			return m.Value, string(m.Value) != "null"
		}
	}
	return nil, false
}
