package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func TestEveryCodeHasItsStatus(t *testing.T) {
	codes := []Code{CodeNotFound, CodeMethod, CodeTooLarge, CodeEncoding, CodeTimeout, CodeBadJSON,
		CodeUnauthorized, CodeForbidden, CodeInvalid, CodeConflict,
		CodeTooMany, CodeNotImplemented, CodeUnavailable, CodeInternal}
	want := []int{404, 405, 413, 415, 408, 400, 401, 403, 422, 409, 429, 501, 503, 500}

	if len(statuses) != len(codes) {
		t.Errorf("%d codes have a status, but %d are listed here", len(statuses), len(codes))
	}

	for i, code := range codes {
		same(t, "status of "+string(code), (&Error{Code: code}).Status(), want[i])
		same(t, fmt.Sprint("code of ", want[i]), CodeOfStatus(want[i]), code)
	}

	same(t, "status of an unknown code", (&Error{Code: "teapot"}).Status(), 500)
	same(t, "code of an unknown status", CodeOfStatus(418), CodeInternal)
}

func TestErrorfKeepsItsCause(t *testing.T) {
	e := Errorf(CodeUnavailable, "The server %s is away: %w", "a", io.ErrUnexpectedEOF)
	same(t, "message", e.Message, "The server a is away: unexpected EOF")
	same(t, "text", e.Error(), "unavailable: The server a is away: unexpected EOF") // the cause once
	if !errors.Is(e, io.ErrUnexpectedEOF) {
		t.Error("errors.Is does not find the cause")
	}

	if e := Errorf(CodeInvalid, "100%% wrong"); e.Cause != nil || e.Message != "100% wrong" {
		t.Errorf("without a cause: %+v", e)
	}

	e = Unavailable(1500*time.Millisecond, "Full at %d.", 7)
	if e.Code != CodeUnavailable || e.RetryAfter != 1500*time.Millisecond || e.Message != "Full at 7." {
		t.Errorf("unavailable: %+v", e)
	}
}

func TestInvalidCutsNamesThatCallersChose(t *testing.T) {
	e := Invalid(FieldError{Field: "tags." + strings.Repeat("é", 1<<20), Reason: "is wrong"})
	same(t, "field", e.Fields[0].Field, "tags."+strings.Repeat("é", 97)+"...") // not within a character
	same(t, "message", e.Message, e.Fields[0].Field+" is wrong.")
	name := strings.Repeat("n", 200)
	same(t, "a field that just fits", Invalid(FieldError{Field: name, Reason: "x"}).Fields[0].Field, name)
}

func TestACallThatWasCanceledDidNotFail(t *testing.T) {
	e := AsError(fmt.Errorf("while looking: %w", context.Canceled))
	if e.Code != CodeUnavailable || !errors.Is(e, context.Canceled) {
		t.Errorf("the error is %+v", e)
	}
}

func TestAsErrorFindsOursAndHidesOthers(t *testing.T) {
	ours := Errorf(CodeNotFound, "There is none.")
	if got := AsError(fmt.Errorf("while looking: %w", ours)); got != ours {
		t.Errorf("found %v, want ours", got)
	}

	secret := errors.New("open /etc/passwd: denied")
	got := AsError(secret)
	if got.Code != CodeInternal || strings.Contains(got.Message, "passwd") || !errors.Is(got, secret) {
		t.Errorf("a foreign error became %+v", got)
	}

	for _, tt := range []struct {
		err  error
		want bool
	}{
		{ours, true},
		{fmt.Errorf("x: %w", ours), true},
		{Errorf(CodeInvalid, "x"), false},
		{secret, false},
		{nil, false},
	} {
		same(t, fmt.Sprint("IsCode of ", tt.err), IsCode(tt.err, CodeNotFound), tt.want)
	}
}
