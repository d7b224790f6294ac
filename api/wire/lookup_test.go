package wire

import "testing"

func TestLookupFindsTheFirstMemberOfAnObjectOnly(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{`{"a":1}`, `1`},
		{` { "x" : {"a":2} , "a" : [1, 2] }`, `[1, 2]`},
		{`{"\u0061":"escaped","a":"second"}`, `"escaped"`},
		{`{"a":null}`, ``}, {`{}`, ``}, {`{"A":1}`, ``},
		{``, ``}, {`[{"a":1}]`, ``}, {`"a"`, ``}, {`null`, ``},
	} {
		got, ok := Lookup([]byte(c.raw), "a")
		if ok != (c.want != "") || ok && string(got) != c.want {
			t.Errorf("%s: got %s, %v; want %s", c.raw, got, ok, c.want)
		}
	}
}
