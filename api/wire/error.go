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

// The codes and, by Status, the HTTP status of each. Of several faults in one call the first of this order is told.
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
	CodeNotFound: 404, CodeMethod: 405, CodeTooLarge: 413, CodeEncoding: 415, CodeTimeout: 408, CodeBadJSON: 400,
	CodeUnauthorized: 401, CodeForbidden: 403, CodeInvalid: 422, CodeConflict: 409, CodeTooMany: 429,
	CodeNotImplemented: 501, CodeUnavailable: 503, CodeInternal: 500,
}

// FieldError says what is wrong with one field, by its path in the body ("tags[3]").
type FieldError struct {
	Field  string `json:"field"`
	Reason string `json:"reason"`
}

// Error is the one error type that crosses the wire. Message says what happened and the next step.
type Error struct {
	Code       Code
	Message    string
	Fields     []FieldError
	RetryAfter time.Duration // sent as Retry-After, in whole seconds rounded up, when above 0
	Cause      error         // logged; sent only as far as Message tells it
}

// Error gives code, message, fields and cause, for logs.
func (e *Error) Error() string {
	s := string(e.Code) + ": " + e.Message
	for _, f := range e.Untold() {
		s += "; " + f.Field + ": " + f.Reason
	}
	if e.Cause != nil && !strings.Contains(e.Message, e.Cause.Error()) {
		s += ": " + e.Cause.Error()
	}
	return s
}

// ErrorBody is an Error as it is sent.
type ErrorBody struct {
	Success bool         `json:"success"`
	Error   Code         `json:"error"`
	Message string       `json:"message"`
	Fields  []FieldError `json:"fields"`
}

// Body returns what is sent of the error.
func (e *Error) Body() ErrorBody {
	return ErrorBody{Error: e.Code, Message: e.Message, Fields: append([]FieldError{}, e.Fields...)}
}

// Untold returns the fields that Message does not tell, for a reader who gets both.
func (e *Error) Untold() []FieldError {
	if len(e.Fields) > 0 && e.Message == messageOf(e.Fields[0]) {
		return e.Fields[1:]
	}
	return e.Fields
}

// messageOf is the sentence that tells a field's error.
func messageOf(f FieldError) string { return fmt.Sprintf("%s %s.", f.Field, f.Reason) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Status is the HTTP status that fits the code; 500 for a code it does not know.
func (e *Error) Status() int {
	if s, ok := statuses[e.Code]; ok {
		return s
	}
	return 500
}

// CodeOfStatus is the reverse of Status, for a client that reads an answer without a code.
func CodeOfStatus(status int) Code {
	for c, s := range statuses {
		if s == status {
			return c
		}
	}
	return CodeInternal
}

// Errorf makes an Error. What one %w verb in format stands for becomes its cause, and its text a part of the message that
// the caller reads.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Cause: errors.Unwrap(err)}
}

// Unavailable is a 503 that tells the caller when to come back.
func Unavailable(retryAfter time.Duration, format string, args ...any) *Error {
	e := Errorf(CodeUnavailable, format, args...)
	e.RetryAfter = retryAfter
	return e
}

// Invalid is a 422 for the fields given; its message tells the first. Names that callers chose are cut to 200 bytes.
func Invalid(fields ...FieldError) *Error {
	for i := range fields {
		if name := fields[i].Field; len(name) > 200 {
			fields[i].Field = strings.ToValidUTF8(name[:200], "") + "..."
		}
	}
	e := &Error{Code: CodeInvalid, Message: "The body was not accepted.", Fields: fields}
	if len(fields) > 0 {
		e.Message = messageOf(fields[0])
	}
	return e
}

// AsError finds the Error in err's chain; any other error becomes a 500 that does not tell its text. A call
// that was canceled, mostly because its caller left, is CodeUnavailable.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if errors.Is(err, context.Canceled) {
		return &Error{Code: CodeUnavailable, Message: "The call ended before it could be answered. Send it again.", Cause: err}
	}

	return &Error{Code: CodeInternal, Message: "Something failed inside promptspool; its log says what.", Cause: err}
}

// IsCode says whether err carries an Error with this code.
func IsCode(err error, code Code) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}
