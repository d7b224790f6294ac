package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

// nested returns an object of this depth. The object itself is the first level.
func nested(depth int) string {
	return `{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + "}"
}

// manyMembersOf returns an object with n members: m0, m1 and so on.
func manyMembersOf(n int, value string) string {
	b := []byte("{")
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `"m%d":%s`, i, value)
	}
	return string(append(b, '}'))
}

func TestParseObjectListsMembersInTheirOrderWithTheirBytes(t *testing.T) {
	for _, tt := range []struct{ what, body, want string }{
		{"empty", `{}`, ""},
		{"empty, with blanks", " \t\r\n{ \n} \t\r\n", ""},
		{"every kind of value", `{"s":"x","n":-1.5e+3,"t":true,"f":false,"z":null,"a":[1,[2]],"o":{"p":{}}}`,
			`s="x" n=-1.5e+3 t=true f=false z=null a=[1,[2]] o={"p":{}}`},
		{"blanks around everything", " { \"a\" : 1 , \"b\" :\t[ 1 ,2 ]\n,\"c\":{ } } ", `a=1 b=[ 1 ,2 ] c={ }`},
		{"brackets, quotes and commas in strings", `{"a":"}],{[\"","b":"\\","c":["\\\"]"],"d":"\\\\"}`,
			`a="}],{[\"" b="\\" c=["\\\"]"] d="\\\\"`},
		{"escaped names", `{"\u0061\n":1,"\"":2,"\\":3}`, "a\n=1 \"=2 \\=3"},

		{"numbers that no float holds",
			`{"a":1e400,"b":-1e-400,"c":123456789012345678901234567890,"d":0.1000000000000000055511151231257827}`,
			`a=1e400 b=-1e-400 c=123456789012345678901234567890 d=0.1000000000000000055511151231257827`},
		{"lone surrogates", `{"a":"\ud800","\udc00":1}`, "a=\"\\ud800\" \ufffd=1"},
		{"a pair of surrogates and U+0000", `{"\ud83d\ude00":"\u0000"}`, "😀=\"\\u0000\""},
		{"an empty name", `{"":1}`, "=1"},
		{"the same name in another case, or deeper", `{"a":{"a":1,"a":2},"A":1}`, `a={"a":1,"a":2} A=1`},
		{"the greatest depth", nested(JSONDepthMax), "a=" + nested(JSONDepthMax)[5:len(nested(JSONDepthMax))-1]},
	} {
		var got []string
		for _, m := range parse(t, tt.body) {
			got = append(got, m.Name+"="+string(m.Value))
		}
		same(t, tt.what, strings.Join(got, " "), tt.want)
	}
}

func TestParseObjectRefusesWhatIsNotOneStrictObject(t *testing.T) {
	for says, bodies := range map[string][]string{
		"not an object": {"1", "null", "[{}]", `"{}"`},
		"is not JSON": {
			"", " \n", "hello", `{"a":1`, `{"a":"b`, `{"a":"\`, `{"a":1}x`, `{"a":1}{"a":1}`, "{}\x00",
			"\ufeff{}", `{"a":1,}`, `{a:1}`, `{'a':1}`, `{"a":NaN}`, `{"a":-Infinity}`, `{"a":01}`, `{"a":+1}`,
			`{"a":1.}`, `{"a":1/*b*/}`, "{\"a\":\"b\nc\"}", `{"a":"\x"}`, "{\u00a0}", // a blank that is not JSON's
		},
		"not valid UTF-8": {
			"{\"a\":\"\xff\"}", "{\"\xc3\":1}", "{\"a\":[[{\"b\":\"\xed\xa0\x80\"}]]}", "{}\xff",
			"{\x00}\x00\xff\xfe", // UTF-16
		},
		"nested": {
			nested(JSONDepthMax + 1), strings.Repeat("[", 10<<20), strings.Repeat(`{"a":`, 2<<20),
		},
	} {
		for _, body := range bodies {
			object, err := ParseObject([]byte(body))
			if !IsCode(err, CodeBadJSON) || !strings.Contains(AsError(err).Message, says) || object != nil {
				t.Errorf("%.40q: %v, error %v; want code %s with %q", body, object, err, CodeBadJSON, says)
			}
		}
	}
}

func TestABodyThatIsNotJSONIsAnsweredWithThePlace(t *testing.T) {
	for body, want := range map[string]string{
		"{\n  \"é\": 1,\n  \"b\": 1795224000.N\n}": "(line 3, column 19: invalid character 'N' after decimal point " +
			"in numeric literal)",
		`{"a": [1, NaN]}`: "(line 1, column 11: NaN is no value of JSON: send null; " +
			"in Python json.dumps(..., allow_nan=False) shows where)",
		"{\n\"a\": -Infinity}": "(line 2, column 7: Infinity is no value of JSON: send null; " +
			"in Python json.dumps(..., allow_nan=False) shows where)",
		`{"é": x}`:           "(line 1, column 7: invalid character 'x' looking for beginning of value)",
		"{\"a\": 1,\n":       "(line 1, column 9: unexpected end of JSON input)",
		"":                   "(line 1, column 1: unexpected end of JSON input)",
		"{\"a\": 1}\n\n{}\n": "(line 3, column 1: invalid character '{' after top-level value)",
	} {
		if _, err := ParseObject([]byte(body)); !strings.Contains(AsError(err).Message, "not JSON "+want+". Send") {
			t.Errorf("%q: %v, want %s", body, err, want)
		}
	}

	_, err := ParseObject([]byte("{\n  \"\ufffd\": \"caf\xe9\"\n}"))
	same(t, "in Latin-1", AsError(err).Message,
		"The body is not valid UTF-8 (line 2, column 12: byte 0xE9). Send JSON in UTF-8.")
}

func TestParseObjectNamesAMemberThatIsTooMuch(t *testing.T) {
	parse(t, manyMembersOf(ObjectMembersMax, "0")) // the most that are accepted
	long := strings.Repeat("n", 300)
	for _, tt := range []struct{ what, body, want string }{
		{"twice", `{"a":1,"b":2,"a":1}`, "a is given twice"},
		{"twice, once escaped", `{"api_key":1,"api\u005fkey":2}`, "api_key is given twice"},
		{"twice, with different escapes", `{"\u00e9":1,"é":2}`, "é is given twice"},
		{"twice, by lone surrogates that no text tells apart", `{"\ud800":1,"\udfff":2}`, "\ufffd is given twice"},
		{"twice, with a long name", `{"` + long + `":1,"` + long + `":2}`, long[:200] + "... is given twice"},
		{"one too many", manyMembersOf(ObjectMembersMax+1, "0"),
			"m1000 is one field too many; at most 1000 are accepted"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			_, err := ParseObject([]byte(tt.body))
			wantFaults(t, err, tt.want)
		})
	}
}

func TestGetTakesNullForAbsentAndHasDoesNot(t *testing.T) {
	o := parse(t, `{"a":1,"z":null}`)
	for _, tt := range []struct {
		name, value string
		got, has    bool
	}{
		{"a", "1", true, true},
		{"z", "null", false, true},
		{"none", "", false, false},
	} {
		value, got := o.Get(tt.name)
		if string(value) != tt.value || got != tt.got || o.Has(tt.name) != tt.has {
			t.Errorf("%s: Get returns %q, %v and Has %v; want %q, %v, %v",
				tt.name, value, got, o.Has(tt.name), tt.value, tt.got, tt.has)
		}
	}
}

// FuzzParseObject compares ParseObject with encoding/json.
func FuzzParseObject(f *testing.F) {
	for _, body := range []string{
		`{}`, ` { "a" : 1 } `, `{"a":[],"b":{},"c":""}`,
		`{"a":-0.5e+3,"b":10,"c":0,"d":1E-2}`, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":1e}`, `{"a":.5}`,
		`{"a":true,"b":false,"c":null}`, `{"a":tru}`, `{"a":nulll}`,
		`{"a":"\u00e9\ud800\n"}`, `{"a":"\u00g0"}`, `{"a":"\x"}`, `{"a":"\`, `{"\u0061":1,"a":2}`,
		"{\"a\":\"12345678\x1f\"}", "{\"a\":\"1234567\u00e9 90\"}", "{\"a\":\"\xff\"}",
		`{"a":[1,]}`, `{"a":[1 2]}`, `{"a":{"b" 1}}`, `{"a":[}`, `{"a":1}x`, `{"a":+1}`, `{"a":1,"a":2}`, `{"a":1`,
		`{,}`, `[]`, manyMembersOf(pairwiseMax, "1"), manyMembersOf(pairwiseMax+1, `"1"`),
	} {
		f.Add([]byte(body))
	}

	f.Fuzz(func(t *testing.T, body []byte) {
		source := bytes.Clone(body)
		object, err := ParseObject(body)

		var want map[string]json.RawMessage
		strict := utf8.Valid(body) && json.Unmarshal(body, &want) == nil && want != nil &&
			deepest(t, body) <= JSONDepthMax

		switch {
		case err == nil && !strict:
			t.Fatal("accepted, though it is not strict JSON")
		case IsCode(err, CodeBadJSON) && strict:
			t.Fatalf("rejected, though it is strict JSON: %v", err)
		case err != nil && !IsCode(err, CodeBadJSON) && !IsCode(err, CodeInvalid):
			t.Fatalf("the error has another code: %v", err)
		}
		if err != nil {
			return
		}

		got := map[string]json.RawMessage{}
		for _, m := range object {
			got[m.Name] = m.Value
		}
		if len(got) != len(object) {
			t.Fatal("a member is listed twice")
		}
		same(t, "members", got, want)
		if !bytes.Equal(body, source) {
			t.Fatal("the body was changed")
		}
	})
}

// deepest returns the depth of valid JSON. It is independent of jsonscan.Depth.
func deepest(t *testing.T, body []byte) int {
	t.Helper()
	deepest, now := 0, 0
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()

	for {
		token, err := d.Token()
		if err == io.EOF {
			return deepest
		}
		if err != nil {
			t.Fatal(err)
		}

		switch token {
		case json.Delim('{'), json.Delim('['):
			now++
			deepest = max(deepest, now)
		case json.Delim('}'), json.Delim(']'):
			now--
		}
	}
}

// sameMembers compares members with the places of their values in the body.
func sameMembers(t *testing.T, got, want Object) {
	t.Helper()
	if len(got) != len(want) || (got == nil) != (want == nil) {
		t.Fatalf("the object has %d members, want %d", len(got), len(want))
	}
	for i, m := range want {
		if g := got[i]; g.Name != m.Name || string(g.Value) != string(m.Value) ||
			cap(g.Value) != len(g.Value) || g.Start != m.Start || g.End != m.End {
			t.Errorf("member %d is %v, want %v", i, g, m)
		}
	}
}

// A string is scanned eight bytes at a time, so each byte is tried in every position.
func TestAStringsEndIsFoundAnywhere(t *testing.T) {
	for size := range 40 {
		for _, odd := range []struct {
			text string
			ok   bool
		}{
			{"", true}, {`\"`, true}, {`\\`, true}, {"\x7f", true}, {"é", true},
			{"\x00", false}, {"\x1f", false}, {`\a`, false},
		} {
			body := `{"a":"` + strings.Repeat("x", size) + odd.text + `","b":1}`
			object, err := ParseObject([]byte(body))
			if (err == nil) != odd.ok || odd.ok &&
				(len(object) != 2 || len(object[0].Value) != size+len(odd.text)+2) {
				t.Errorf("%q: %v, %v", body, object, err)
			}
		}
	}
}

func TestNamesAreReadRightInARoomThatHeldOthers(t *testing.T) {
	space := parse(t, `{"a":1,"bb":2,"c":3}`)
	for _, body := range []string{
		`{"a":4,"bb":5,"c":6}`, `{"bb":1,"a":2}`, `{"a":1,"c":2,"bb":3,"d":4}`,
		`{"c":1,"bb":2,"c":3}`, `{}`, `{"ab":1}`,
	} {
		got, err := space.Parse([]byte(body))
		want, wrong := ParseObject([]byte(body))
		if (err == nil) != (wrong == nil) {
			t.Fatalf("%s: error %v, ParseObject returns %v", body, err, wrong)
		}
		if err == nil {
			sameMembers(t, got, want)
			space = got
		}
	}
}
