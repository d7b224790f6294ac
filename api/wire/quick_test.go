package wire

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzQuick holds the quick way of reading an object against the one that says what is wrong.
func FuzzQuick(f *testing.F) {
	for _, body := range []string{
		`{}`, ` { "a" : 1 } `, `{"a":[],"b":{},"c":""}`, `{"a":-0.5e+3,"b":10,"c":0,"d":1E-2}`, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":1e}`, `{"a":.5}`, `{"a":+1}`,
		`{"a":true,"b":false,"c":null}`, `{"a":tru}`, `{"a":nulll}`, `{"a":"\u00e9\ud800\n"}`, `{"a":"\u00g0"}`, `{"a":"\x"}`, `{"a":"\`, `{"\u0061":1,"a":2}`, `{"a":1,"a":2}`,
		"{\"a\":\"12345678\x1f\"}", "{\"a\":\"1234567\u00e9 90\"}", "{\"a\":\"\xff\"}", `{"a":[1,]}`, `{"a":[1 2]}`, `{"a":{"b" 1}}`, `{"a":[}`, `{"a":1}x`, `{"a":1`, `{,}`, `[]`,
		nested(quickDepthMax), nested(quickDepthMax + 1), manyMembersOf(listedMax-1, "1"), manyMembersOf(listedMax+1, `"1"`),
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		quick, ok := Object(nil).quick(body)
		want, err := Object(nil).judge(body)
		switch {
		case ok && err != nil:
			t.Fatalf("the quick way takes %q: %v", body, err)
		case ok:
			sameMembers(t, quick, want)
		case err == nil && len(want) < listedMax && depth(body) <= quickDepthMax && !bytes.Contains(body, []byte(`\`)):
			t.Fatalf("the quick way does not see that %q is in order", body)
		}
	})
}

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
