package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Code names what went wrong; it is the "error" member of an answer.
type Code string

// The codes, in order of precedence: of several faults in one request, the first one is
// reported. Status gives the HTTP status of each.
const (
	CodeNotFound       Code = "not_found"
	CodeMethod         Code = "method_not_allowed"
	CodeTooLarge       Code = "too_large"
	CodeEncoding       Code = "unsupported_encoding"
	CodeTimeout        Code = "timeout"
	CodeBadJSON        Code = "bad_json"
	CodeUnauthorized   Code = "unauthorized"
	CodeForbidden      Code = "forbidden"
	CodeInvalid        Code = "invalid"
	CodeConflict       Code = "conflict"
	CodeTooMany        Code = "too_many_requests"
	CodeNotImplemented Code = "not_implemented"
	CodeUnavailable    Code = "unavailable"
	CodeInternal       Code = "internal"
)

var statuses = map[Code]int{
	CodeNotFound:       404,
	CodeMethod:         405,
	CodeTooLarge:       413,
	CodeEncoding:       415,
	CodeTimeout:        408,
	CodeBadJSON:        400,
	CodeUnauthorized:   401,
	CodeForbidden:      403,
	CodeInvalid:        422,
	CodeConflict:       409,
	CodeTooMany:        429,
	CodeNotImplemented: 501,
	CodeUnavailable:    503,
	CodeInternal:       500,
}

// FieldError says what is wrong with one field.
type FieldError struct {
	Field  string `json:"field"`  // its path in the body: "tags[3]"
	Reason string `json:"reason"` // a predicate: "must be a string"

	// Offset is where in a filter line the fault is, in characters from 0.
	Offset *int `json:"offset,omitempty"`
}

// Error is the one error type that crosses the wire.
type Error struct {
	Code       Code
	Message    string // what happened, and the next step
	Fields     []FieldError
	TraceIDs   []string      // of the traces that are closed already
	RetryAfter time.Duration // sent as Retry-After, in seconds rounded up, when above 0
	Affects    Affected      // whose requests fail now; "" means those of all callers
	Cause      error         // logged; callers see only what Message repeats of it
}

// Affected names those whose requests fail with an error for now.
type Affected string

// Calls of other accounts, or with other keys, succeed meanwhile.
const (
	AffectsAccount Affected = "account" // those of the caller's project
	AffectsKey     Affected = "key"     // those with the caller's key
)

// UnmarshalJSON reads a value that is not known here as "": all callers. It never fails, so that
// the rest of the answer counts.
func (a *Affected) UnmarshalJSON(text []byte) error {
	switch read := Affected(strings.Trim(string(text), `"`)); read {
	case AffectsAccount, AffectsKey:
		*a = read
	default:
		*a = ""
	}

	return nil
}

// Error returns code, message, fields and cause, for logs.
func (e *Error) Error() string {
	s := string(e.Code) + ": " + e.Message
	for _, f := range e.Untold() {
		s += "; " + f.Field + ": " + f.Reason
	}
	if e.Cause != nil && !strings.Contains(e.Message, e.Cause.Error()) {
		s = strings.TrimSuffix(s, ".") + ": " + e.Cause.Error()
	}

	return s
}

// ErrorBody is an Error as it is sent.
type ErrorBody struct {
	Success bool         `json:"success"`
	Error   Code         `json:"error"`
	Message string       `json:"message"`
	Fields  []FieldError `json:"fields"`
	Code    int          `json:"code,omitempty"` // of google.rpc.Status, for OTLP exporters only

	// Affects is set if only requests of the caller's project, or with its key, fail now.
	Affects Affected `json:"affects,omitempty"`

	// TraceIDs are those of a conflict with traces that are closed.
	TraceIDs []string `json:"trace_ids,omitempty"`
}

// Body returns the part of the error that is sent.
func (e *Error) Body() ErrorBody {
	return ErrorBody{
		Error:    e.Code,
		Message:  e.Message,
		Fields:   append([]FieldError{}, e.Fields...), // not nil, so that it is sent as []
		Affects:  e.Affects,
		TraceIDs: e.TraceIDs,
	}
}

// Untold returns the fields that Message does not mention, for a reader who gets both.
func (e *Error) Untold() []FieldError {
	if len(e.Fields) > 0 && e.Message == e.Fields[0].sentence() {
		return e.Fields[1:]
	}
	return e.Fields
}

// sentence is the field's error as a message.
func (f FieldError) sentence() string { return fmt.Sprintf("%s %s.", f.Field, f.Reason) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Status returns the HTTP status of the code; 500 for an unknown code.
func (e *Error) Status() int {
	if s, ok := statuses[e.Code]; ok {
		return s
	}
	return 500
}

// CodeOfStatus is the inverse of Status, for a client that reads an answer without a
// code.
func CodeOfStatus(status int) Code {
	for c, s := range statuses {
		if s == status {
			return c
		}
	}
	return CodeInternal
}

// Errorf makes an Error with a formatted message. An error that is formatted with %w
// becomes its cause, and its text part of the message that the caller reads.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Cause: errors.Unwrap(err)}
}

// Unavailable makes a CodeUnavailable that tells the caller when to retry.
func Unavailable(retryAfter time.Duration, format string, args ...any) *Error {
	e := Errorf(CodeUnavailable, format, args...)
	e.RetryAfter = retryAfter
	return e
}

// Invalid makes a CodeInvalid for the given fields; its message is about the first. It
// shortens long field names, which callers choose, to 200 bytes.
func Invalid(fields ...FieldError) *Error {
	for i := range fields {
		// The cut may split a character, which must not be sent as invalid UTF-8.
		if name := fields[i].Field; len(name) > 200 {
			fields[i].Field = strings.ToValidUTF8(name[:200], "") + "..."
		}
	}
	e := &Error{Code: CodeInvalid, Message: "The body was not accepted.", Fields: fields}
	if len(fields) > 0 {
		e.Message = fields[0].sentence()
	}

	return e
}

// AsError returns the Error in err's chain. A canceled request, which mostly means that the
// caller left, is CodeUnavailable. Any other error is CodeInternal and does not reveal
// its text.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}

	code, message := CodeInternal, "Something failed inside promptspool. Its log has the details."
	if errors.Is(err, context.Canceled) {
		code, message = CodeUnavailable, "The request ended before it could be answered. Send it again."
	}

	return &Error{Code: code, Message: message, Cause: err}
}

// IsCode reports whether err carries an Error with this code.
func IsCode(err error, code Code) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}

// Away is why a server could not be asked. It is in the chain of an Error with
// CodeUnavailable, and distinguishes the server's own answer from one of something in
// between, such as a proxy.
type Away struct {
	Status int   // of an answer that was not the server's; 0 if there was none
	Err    error // the network's error; nil if there was an answer
}

// Error describes what happened.
func (a *Away) Error() string {
	if a.Err != nil {
		return a.Err.Error()
	}
	return fmt.Sprintf("a foreign answer with status %d", a.Status)
}

// Unwrap returns the network's error.
func (a *Away) Unwrap() error { return a.Err }
