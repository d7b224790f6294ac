package jsonscan

import (
	"encoding/json"
	"slices"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestLookupFindsTheFirstMemberOfAnObjectOnly(t *testing.T) {
	for _, tt := range []struct {
		what, raw, value string
		found            bool
	}{
		{"a member", "\n{\"a\":[1, 2] ,\"b\":2}", "[1, 2]", true},
		{"behind one that holds the same name", ` { "x" : {"a":2} , "a" : [1, 2] }`, "[1, 2]", true},
		{"the first of two", `{"a":1,"a":2}`, "1", true},
		{"an escaped name", `{"\u0061":1}`, "1", true},
		{"the escaped one of two", `{"\u0061":"escaped","a":"second"}`, `"escaped"`, true},
		{"null", `{"a":null}`, "null", false},
		{"another case", `{"A":1}`, "", false},
		{"none", `{"b":{"a":1}}`, "", false},
		{"an empty object", "{}", "", false},
		{"in nothing", "", "", false},
		{"in null", "null", "", false},
		{"in an array", `[{"a":1}]`, "", false},
		{"in a string", `"a"`, "", false},
	} {
		t.Run(tt.what, func(t *testing.T) {
			value, found := Lookup(json.RawMessage(tt.raw), "a")
			if string(value) != tt.value || found != tt.found {
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

	want := []string{`b="\u0031"`, "a=2", "b=3", `0="b"`, "1=[1,2]", "2=null"}
	if !slices.Equal(got, want) {
		t.Errorf("walked %q, want %q", got, want)
	}
}

func TestAppendStringWritesWhatJSONReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.String().Draw(t, "s")

		var got string
		err := json.Unmarshal(AppendString(nil, want), &got)
		if err != nil || got != want {
			t.Fatalf("%q comes back as %q, %v", want, got, err)
		}
	})

	got, want := string(AppendString([]byte("a"), "<\xff\u2028\x7f>")), `a"<\ufffd\u2028`+"\x7f"+`>"`
	if got != want {
		t.Errorf("appended %q, want %q", got, want)
	}
}

// FuzzUnquote holds the reading of strings against encoding/json.
func FuzzUnquote(f *testing.F) {
	for _, s := range []string{
		`a\nb`, `\"\\\/\b\f\r\t`, `\u00e9\u00E9`, `\ud83d\ude00`, `\ud83d`, `\ud83dx`, `\ud83d\u0041`,
		`\ude00\ud83d\ude00`, `\ud83d\n`, `é\u2028`,
	} {
		f.Add(s)
	}

	f.Fuzz(func(t *testing.T, inner string) {
		quoted := []byte(`"` + inner + `"`)
		var want string
		if !utf8.ValidString(inner) || json.Unmarshal(quoted, &want) != nil {
			return // not a string of a body
		}

		if got := Unquote(quoted); got != want {
			t.Errorf("%s is read as %q, and by encoding/json as %q", quoted, got, want)
		}
		if _, ok := Lookup([]byte(`{`+string(quoted)+`:1}`), want); !ok {
			t.Errorf("the member called %s is not found as %q", quoted, want)
		}
	})
}
