package wire

import (
	"strings"
	"testing"
)

func sameMembers(t *testing.T, got, want Object) {
	t.Helper()
	if len(got) != len(want) || (got == nil) != (want == nil) {
		t.Fatalf("there are %d members, not %d", len(got), len(want))
	}
	for i, m := range want {
		if g := got[i]; g.Name != m.Name || string(g.Value) != string(m.Value) || cap(g.Value) != len(g.Value) || g.start != m.start || g.end != m.end {
			t.Errorf("member %d is %v, not %v", i, g, m)
		}
	}
}

// Every byte of a string is looked at, wherever among eight it stands.
func TestAStringsEndIsFoundAnywhere(t *testing.T) {
	for size := range 40 {
		for _, odd := range []struct {
			text string
			ok   bool
		}{{"", true}, {`\"`, true}, {`\\`, true}, {"\x7f", true}, {"é", true}, {"\x00", false}, {"\x1f", false}, {`\a`, false}} {
			body := `{"a":"` + strings.Repeat("x", size) + odd.text + `","b":1}`
			object, err := ParseObject([]byte(body))
			if (err == nil) != odd.ok || odd.ok && (len(object) != 2 || len(object[0].Value) != size+len(odd.text)+2) {
				t.Errorf("%q: %v, %v", body, object, err)
			}
		}
	}
}

func TestNamesAreReadRightInARoomThatHeldOthers(t *testing.T) {
	room := parse(t, `{"a":1,"bb":2,"c":3}`)
	for _, body := range []string{`{"a":4,"bb":5,"c":6}`, `{"bb":1,"a":2}`, `{"a":1,"c":2,"bb":3,"d":4}`, `{"c":1,"bb":2,"c":3}`, `{}`, `{"ab":1}`} {
		got, err := room.Parse([]byte(body))
		want, wrong := ParseObject([]byte(body))
		if (err == nil) != (wrong == nil) {
			t.Fatalf("%s: %v, %v", body, err, wrong)
		}
		if err == nil {
			sameMembers(t, got, want)
			room = got
		}
	}
}
