package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// all returns every builtin with one action.
func all(action string) []Rule { return []Rule{{Builtin: Builtins, Action: action}} }

func rulesOf(t testing.TB, rules ...Rule) *Rules {
	t.Helper()
	r, _, err := New(rules, []byte("a secret"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func apply(t testing.TB, r *Rules, body string) string {
	t.Helper()
	if !json.Valid([]byte(body)) {
		t.Fatalf("the test's own body is not JSON: %s", body)
	}
	got := string(r.Body([]byte(body), func(string, string) {}))
	if !json.Valid([]byte(got)) {
		t.Fatalf("%s became %s, which is not JSON", body, got)
	}
	return got
}

func TestWhatIsBuiltIn(t *testing.T) {
	r := rulesOf(t, all(Mask)...)

	for text, want := range map[string]string{
		"mail ann@example.com now":                         "mail [email] now",
		"<Ann.O'Neil+x@mail.example.co.uk>, b@c.de.":       "<[email]>, [email].",
		"no mail: @ann a@b a@b.c 1@2.3 @@ a@.com x@y.1z":   "no mail: @ann a@b a@b.c 1@2.3 @@ a@.com x@y.1z",
		"call +14155550132, or (415) 555-0132":             "call [phone], or [phone]",
		"415.555.0132; 415-555-0132; +49 30 901820":        "[phone]; [phone]; [phone]",
		"2026-03-01 12:00:00, 192.168.100.200, 1795224000": "2026-03-01 12:00:00, 192.168.100.200, 1795224000",
		"0195e3c2-1111-7222-8333-444455556666":             "0195e3c2-1111-7222-8333-444455556666",
		"card 4111 1111 1111 1111, 5500-0000-0000-0004":    "card [card], [card]",
		"378282246310005 is one, 4111111111111112 is not":  "[card] is one, 4111111111111112 is not",
		"x4111111111111111 4111111111111111y":              "x4111111111111111 4111111111111111y",
		"Authorization: Bearer abc.def-123456":             "Authorization: Bearer [bearer_token]",
		"Authorization: Bearer\tabc.def-123456":            "Authorization: Bearer\t[bearer_token]",
		"4111  1111   1111 1111, 4111111111111111.0":       "[card], [card].0",
		"4111 1111 1111 1111 12/29 and 415-555-0132  1234": "[card] 12/29 and [phone]  1234",
		"the bearer of news":                               "the bearer of news",
		"sk-proj-0123456789abcdefghij and task-force":      "[provider_key] and task-force",
		"AKIAIOSFODNN7EXAMPLE, hf_abcdefghijklmnopqrstuv":  "[provider_key], [provider_key]",
		"ünïcode ann@exämple.com ✓":                        "ünïcode [email] ✓",
	} {
		quoted, _ := json.Marshal(text)
		var out struct{ A string }
		if err := json.Unmarshal([]byte(apply(t, r, `{"a":`+string(quoted)+`}`)), &out); err != nil {
			t.Fatal(err)
		}
		if out.A != want {
			t.Errorf("%q became %q; want %q", text, out.A, want)
		}
	}
}

func TestEveryStringIsLookedAt(t *testing.T) {
	r := rulesOf(t, all(Mask)...)

	for _, tt := range []struct{ name, body, want string }{
		{"an unknown field, deep", `{"odd":[{"x":["a@b.io"]}]}`, `{"odd":[{"x":["[email]"]}]}`},
		{"tags and metadata", `{"tags":["a@b.io"],"metadata":{"k":"a@b.io"}}`,
			`{"tags":["[email]"],"metadata":{"k":"[email]"}}`},
		{"escapes", `{"a":"\u0061\u0040b.io\n"}`, `{"a":"[email]\n"}`},
		{"a tool's arguments", `{"a":"{\"to\":\"a\\u0040b.io\",\"card\":4111111111111111}"}`,
			`{"a":"{\"to\":\"[email]\",\"card\":\"[card]\"}"}`},
		{"arguments in arguments", `{"a":"[\"{\\\"x\\\":\\\"a@b.io\\\"}\"]"}`,
			`{"a":"[\"{\\\"x\\\":\\\"[email]\\\"}\"]"}`},
		{"names of members", `{"m":{"a@b.io":1,"c@d.io":2}}`, `{"m":{"[email]":1,"[email]~2":2}}`},
		{"a card as a number", `{"a":[4111111111111111,4111111111111112,12]}`, `{"a":["[card]",4111111111111112,12]}`},
		{"a card with a point", `{"a":[4111111111111111.0,4111111111111111.5]}`, `{"a":["[card]",4111111111111111.5]}`},
		{"a phone as a number", `{"phone":14155550132,"work_phone":4155550132.0,"a":14155550132}`,
			`{"phone":"[phone]","work_phone":"[phone]","a":14155550132}`},
		{"names of top-level members", `{"a@b.io":1,"request_id":"x"}`, `{"[email]":1,"request_id":"x"}`},
		{"what the server needs", `{"prompt_name":"a@b.io","request_id":"a@b.io"}`,
			`{"prompt_name":"a@b.io","request_id":"a@b.io"}`},
		{"ids of traces", `{"span_id":"4111111111111111","trace_id":"x"}`,
			`{"span_id":"4111111111111111","trace_id":"x"}`},
		{"what a span needs, but not beside it", `{"span":{"traceId":"4111111111111111"},"traceId":"4111111111111111"}`,
			`{"span":{"traceId":"4111111111111111"},"traceId":"[card]"}`},
		{"all other bytes", `{ "n" : 1.50e+03, "s":"\u0041\/<&>é" }`, `{ "n" : 1.50e+03, "s":"\u0041\/<&>é" }`},
		{"nothing", `{}`, `{}`},
	} {
		if got := apply(t, r, tt.body); got != tt.want {
			t.Errorf("%s: %s became %s; want %s", tt.name, tt.body, got, tt.want)
		}
	}
}

func TestPaths(t *testing.T) {
	for _, tt := range []struct{ path, action, body, want string }{
		{"metadata.*", Mask, `{"metadata":{"a":"x","b":"y"},"a":"x"}`,
			`{"metadata":{"a":"[masked]","b":"[masked]"},"a":"x"}`},
		{"$.kwargs.messages[*].content", Mask,
			`{"kwargs":{"messages":[{"role":"u","content":"x"},{"content":["y",{"t":"z"},7,true,null]}]}}`,
			`{"kwargs":{"messages":[{"role":"u","content":"[masked]"},` +
				`{"content":["[masked]",{"t":"[masked]"},"[masked]","[masked]",null]}]}}`},
		{"..password", Drop, `{"a":{"password":"x","b":1},"password":"y","c":[{"password":1}]}`,
			`{"a":{"b":1},"c":[{}]}`},
		{"a[1]", Drop, `{"a":[1, 2, 3]}`, `{"a":[1, 3]}`},
		{"a[0]", Drop, `{"a":[1, 2, 3]}`, `{"a":[2, 3]}`},
		{"a[2]", Drop, `{"a":[1, 2, 3]}`, `{"a":[1, 2]}`},
		{"a[*]", Drop, `{"a":[1, 2, 3]}`, `{"a":[]}`},
		{"a['b c'][0]", Mask, `{"a":{"b c":["x"]}}`, `{"a":{"b c":["[masked]"]}}`},
		{"kwargs", Drop, `{"x":1,"kwargs":{"a":1},"y":2}`, `{"x":1,"kwargs":{},"y":2}`}, // the server wants an object
		{"..*", Drop, `{"x":"1","request_id":"i","tags":["a"],"score":7}`, `{"request_id":"i","tags":[],"score":7}`},
		{"..score", Mask, `{"score":7,"a":{"score":7}}`, `{"score":7,"a":{"score":"[masked]"}}`},
		{"..a..b", Mask, `{"a":{"a":{"x":{"b":"1"}}},"b":"2"}`, `{"a":{"a":{"x":{"b":"[masked]"}}},"b":"2"}`},
		{"nowhere", Drop, `{"a":1}`, `{"a":1}`},
	} {
		r := rulesOf(t, Rule{Path: tt.path, Action: tt.action})

		if got := apply(t, r, tt.body); got != tt.want {
			t.Errorf("%s %s: %s became %s; want %s", tt.action, tt.path, tt.body, got, tt.want)
		}
	}
}

func TestPatternsAndActions(t *testing.T) {
	r := rulesOf(t, Rule{Pattern: `(?i)project\s+\w+`, Action: Drop}, Rule{Builtin: []string{"email"}, Action: Hash})
	got := apply(t, r, `{"a":"for Project X: Ann@b.io","b":{"k":"ann@b.io"},"c":"{\"x\":\"ANN@B.IO\"}","project x":1}`)
	hash := regexp.MustCompile(`\[email:([0-9a-f]{16})\]`).FindAllStringSubmatch(got, -1)
	if len(hash) != 3 || hash[0][1] != hash[1][1] || hash[1][1] != hash[2][1] {
		t.Errorf("one address has several hashes, or none: %s", got)
	}
	if !strings.HasPrefix(got, `{"a":"for : [email:`) || !strings.HasSuffix(got, `"project x":1}`) {
		t.Errorf("the pattern: %s", got)
	}
	other, _, err := New([]Rule{{Builtin: []string{"email"}, Action: Hash}}, []byte("another secret"))
	if err != nil {
		t.Fatal(err)
	}
	if again := apply(t, other, `{"b":"ann@b.io"}`); strings.Contains(again, hash[0][1]) {
		t.Error("another secret makes the same hash")
	}
}

func TestRulesThatCannotBe(t *testing.T) {
	for want, rule := range map[string]Rule{
		"a rule needs one of builtin, path and pattern":      {},
		"a rule needs one of builtin, path and pattern ":     {Path: "a", Pattern: "b"},
		`the action "burn" is not one of mask, hash, drop`:   {Path: "a", Action: "burn"},
		"the action hash needs --redact-secret-file":         {Path: "a", Action: Hash},
		"the pattern is not RE2":                             {Pattern: `(?=x)`},
		`the pattern "x*" matches the empty string`:          {Pattern: "x*"},
		`unknown builtin "iban"`:                             {Builtin: []string{"iban"}},
		"the builtin email is named twice":                   {Builtin: []string{"email", "email"}},
		"the server needs score as it is":                    {Path: "score", Action: Drop},
		`the path "a.[b" has a syntax error at ".[b"`:        {Path: "a.[b"},
		`the path "$" has a syntax error at "$"; write it l`: {Path: "$"},
	} {
		_, index, err := New([]Rule{{Path: "fine"}, rule}, nil)
		if err == nil || index != 1 || !strings.HasPrefix(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%+v: %d, %v; want %q", rule, index, err, want)
		}
	}

	if _, index, err := New(make([]Rule, patternsMax+1), nil); err == nil || index != -1 {
		t.Errorf("too many rules: %v", err)
	}
}

func TestWhatIsMetIsCounted(t *testing.T) {
	counts := map[string]int{}
	r := rulesOf(t, Rule{Builtin: []string{"email"}}, Rule{Path: "x", Action: Drop}, Rule{Pattern: "zz", Action: Hash})
	r.Body([]byte(`{"a":"a@b.io c@d.io","x":1,"b":"zz"}`), func(rule, action string) { counts[rule+" "+action]++ })
	if diff := cmp.Diff(map[string]int{"email mask": 2, "path drop": 1, "pattern hash": 1}, counts); diff != "" {
		t.Error(diff)
	}
}

func TestNoRulesChangeNothing(t *testing.T) {
	body := []byte(`{"a":"a@b.io"}`)
	for _, r := range []*Rules{nil, {}, rulesOf(t, Rule{Builtin: []string{"card"}})} {
		if got := r.Body(body, func(string, string) {}); &got[0] != &body[0] {
			t.Error("the body was copied")
		}
	}
}

// TestDeepPathsStayLinear has a path in which each level could double the work of the one
// above.
func TestDeepPathsStayLinear(t *testing.T) {
	r := rulesOf(t, Rule{Path: strings.Repeat("..*", 31) + "..q"})
	body := strings.Repeat(`{"a":`, 400) + `1` + strings.Repeat(`}`, 400)
	if got := apply(t, r, body); got != body {
		t.Error("a path matched something that is not there")
	}
}

func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"a":"a@b.io +14155550132 4111111111111111 Bearer abcdefgh sk-0123456789abcdefghij"}`,
		`{"a":[{"b c":"{\"x\":1}"}],"":null}`,
		`{"password":1}`,
	} {
		f.Add([]byte(seed))
	}

	masks := rulesOf(f, append(all(Mask), Rule{Path: "..password", Action: Drop}, Rule{Path: "x.*", Action: Hash})...)
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) || bytes.TrimLeft(body, " \t\r\n")[0] != '{' {
			return
		}

		before := bytes.Clone(body)
		got := masks.Body(body, func(string, string) {})
		if !json.Valid(got) {
			t.Fatalf("%q became %q", body, got)
		}
		if !bytes.Equal(before, body) {
			t.Fatal("the caller's bytes were changed")
		}
		if strings.Contains(string(got), "ann@example.com") {
			t.Fatalf("an address is left: %q", got)
		}
	})
}

// Every name becomes "[email]" and needs a number of its own. Memory, not time: it is the
// same however busy the machine is, and each number that is tried is a text.
func TestNamesThatBecomeEqualCostInProportion(t *testing.T) {
	r := rulesOf(t, all(Mask)...)
	if got, want := apply(t, r, `{"a":{"a@b.io":1,"b@b.io":2,"[email]~2":3,"c@b.io":4}}`),
		`{"a":{"[email]":1,"[email]~2":2,"[email]~2":3,"[email]~3":4}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	cost := func(n int) uint64 {
		var b strings.Builder
		b.WriteString(`{"kwargs":{"a":1`)
		for i := range n {
			fmt.Fprintf(&b, `,"a%d@b.io":1`, i)
		}
		b.WriteString("}}")
		body := []byte(b.String())

		before := allocated()
		r.Body(body, func(string, string) {})
		return allocated() - before
	}
	if once, fourfold := cost(1000), cost(4000); fourfold > 8*once {
		t.Errorf("four times as many names take %d bytes, not about four times %d", fourfold, once)
	}
}

// allocated returns how many bytes this process has ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)

	return m.TotalAlloc
}
