package wire

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// noon has nanoseconds, which must not be lost.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// someID is a valid UUIDv7.
const someID = "0195517d-2c00-7abc-8def-0123456789ab"

// parse parses a body that must be a JSON object.
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

// same fails the test, with a diff, if got differs from want.
func same(t tester, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// wantFaults expects a 422 with exactly these faults, each as "field reason". Without
// any, it expects no error.
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

// text returns a JSON string that repeats s n times.
func text(s string, n int) string { return `"` + strings.Repeat(s, n) + `"` }

// A filter becomes some 100 bytes, and may be sent in two.
func TestAFilterOfTooManyPartsIsRefusedBeforeItIsRead(t *testing.T) {
	search := func(parts string) error {
		object, err := ParseObject([]byte(`{"filter_group":` + parts + `}`))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Decode[Search](object)
		return err
	}
	const condition = `{"field":"tags","operator":"is","value":"a"}`
	list := func(n int, part string) string {
		return `{"filters":[` + strings.TrimSuffix(strings.Repeat(part+",", n), ",") + `]}`
	}

	if err := search(list(900, condition)); err != nil {
		t.Error(err)
	}
	deep := strings.Repeat(`{"Filters":[`, 100) + condition + strings.Repeat(`]}`, 100)
	for _, parts := range []string{list(1001, condition), list(100_000, "0"), list(2, list(600, "{}")), deep} {
		if err := search(parts); err == nil || !strings.Contains(fmt.Sprint(err), "more than 1000 filters") {
			t.Errorf("%.80s...: %v", parts, err)
		}
	}
	before := allocated()
	_ = search(list(1_000_000, "0"))
	if took := allocated() - before; took > 10<<20 {
		t.Errorf("2 MB of filters took %d bytes", took)
	}
}

// allocated returns how many bytes this process has ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)

	return m.TotalAlloc
}
