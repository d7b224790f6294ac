package filterline

import (
	"fmt"
	"unicode/utf8"

	"promptspool/api/wire"
)

// faultAt returns a 422 about a place in a line, which is given in bytes. Callers get it in
// characters, whatever their language counts in.
func faultAt(text string, at int, format string, args ...any) error {
	return faultIn("filter", text, at, format, args...)
}

// faultIn is faultAt for a line that another field of a request has.
func faultIn(field, text string, at int, format string, args ...any) error {
	offset := utf8.RuneCountInString(text[:min(at, len(text))])
	reason := fmt.Sprintf(format, args...)

	return wire.Invalid(wire.FieldError{
		Field:  field,
		Reason: fmt.Sprintf("is wrong at character %d: %s", offset+1, reason),
		Offset: &offset,
	})
}
