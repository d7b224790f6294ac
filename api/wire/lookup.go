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
	for quoted, m := range rawMembers(raw) {
		if isName(quoted, name) {
			return m.Value, string(m.Value) != "null"
		}
	}
	return nil, false
}

// isName says whether a name as it is written is this one, mostly without a copy of it.
func isName(quoted []byte, name string) bool {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner) == name
	}
	return unescape(inner) == name
}
