package wire

import (
	"encoding/json"
	"iter"
)

// Members walks the members of a JSON object that json.Valid has accepted, in the order they came, a repeated one each
// time. Their values alias object.
func Members(object json.RawMessage) iter.Seq[Member] { return members(object) }

// Elements walks the elements of a JSON array that json.Valid has accepted, with their index. They alias array.
func Elements(array json.RawMessage) iter.Seq2[int, json.RawMessage] { return elements(array) }

// Unquote returns the text of a JSON string that json.Valid has accepted and that has no blanks around it.
func Unquote(quoted json.RawMessage) string { return unquote(quoted) }
