package wire

import (
	"encoding/json"
	"testing"
)

func TestLookupFindsAMemberOfAnObjectAndNothingInAnythingElse(t *testing.T) {
	for _, tt := range []struct {
		what, raw, value string
		found            bool
	}{
		{"a member", "\n{\"a\":[1, 2] ,\"b\":2}", "[1, 2]", true},
		{"the first of two", `{"a":1,"a":2}`, "1", true},
		{"an escaped name", `{"\u0061":1}`, "1", true},
		{"null", `{"a":null}`, "null", false},
		{"none", `{"b":{"a":1}}`, "", false},
		{"in nothing", "", "", false},
		{"in an array", `[{"a":1}]`, "", false},
		{"in a string", `"a"`, "", false},
	} {
		t.Run(tt.what, func(t *testing.T) {
			if value, found := Lookup(json.RawMessage(tt.raw), "a"); string(value) != tt.value || found != tt.found {
				t.Errorf("is %q, %v; want %q, %v", value, found, tt.value, tt.found)
			}
		})
	}
}

func TestWalksGoThroughObjectsAndArraysInTheirOrder(t *testing.T) {
	var got []string
	for m := range Members(json.RawMessage(`{"b":"\u0031","a":2,"b":3}`)) {
		got = append(got, m.Name+"="+string(m.Value))
	}
	for i, e := range Elements(json.RawMessage(`[ "b" ,[1,2],null]`)) {
		got = append(got, string(rune('0'+i))+"="+string(e))
	}
	same(t, "walked", got, []string{`b="\u0031"`, "a=2", "b=3", `0="b"`, "1=[1,2]", "2=null"})
	same(t, "unquoted", Unquote(json.RawMessage(`"\u0031\n"`)), "1\n")
}
