package wire

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

const someID = "0195517d-2c00-7abc-8def-0123456789ab"

func parse(t *testing.T, body string) Object {
	t.Helper()
	object, err := ParseObject([]byte(body))
	if err != nil {
		t.Fatalf("ParseObject(%.200s): %v", body, err)
	}
	return object
}

// tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
}

func same(t tester, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// wantFaults expects a 422 with exactly these faults, each as "field reason"; none means
// no error.
func wantFaults(t *testing.T, err error, want ...string) {
	t.Helper()
	var got []string
	if err != nil {
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeInvalid {
			t.Fatalf("error is %v, want code %s", err, CodeInvalid)
		}
		for _, f := range e.Fields {
			got = append(got, f.Field+" "+f.Reason)
		}
	}
	same(t, "faults", got, want)
}

// edit returns body with the member called name set to value, or without it if value is
// empty.
func edit(t *testing.T, body, name, value string) string {
	t.Helper()
	var members []string
	for _, m := range parse(t, body) {
		if m.Name != name {
			members = append(members, `"`+m.Name+`":`+string(m.Value))
		}
	}
	if value != "" {
		members = append(members, `"`+name+`":`+value)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// text is a JSON string of n times s.
func text(s string, n int) string { return `"` + strings.Repeat(s, n) + `"` }
