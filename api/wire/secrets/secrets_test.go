package secrets

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
)

func TestStrip(t *testing.T) {
	for _, tt := range []struct{ what, body, want string }{
		{"nothing to hide", `{"a":1}`, `{"a":1}`},
		{"api_key first", `{"api_key":"ps_1","a":1}`, `{"a":1}`},
		{"api_key last", `{"a":1,"api_key":"ps_1"}`, `{"a":1}`},
		{"api_key alone", `{"api_key":"ps_1"}`, `{}`},
		{"api_key as an object", `{"a":1,"api_key":{"b":["}"]},"c":2}`, `{"a":1,"c":2}`},
		{"api_key as a number", `{"api_key":12}`, `{}`},
		{"api_key null", `{"api_key":null,"a":1}`, `{"a":1}`},
		{"api_key escaped", `{"\u0061pi_key":"ps_1","a":1}`, `{"a":1}`},
		{"api_key in another spelling is no key for us", `{"API_KEY":1,"apiKey":"k","x-api-key":null}`,
			`{"API_KEY":"[masked]","apiKey":"[masked]","x-api-key":null}`},

		{"api_key elsewhere is not the caller's",
			`{"request_response":{"api_key":"x"},"tool":{"authorization":"y"}}`,
			`{"request_response":{"api_key":"x"},"tool":{"authorization":"y"}}`},
		{"metadata, in the same way as kwargs",
			`{"metadata":{"user_api_key":{"a":1},"headers":{"Authorization":"x"},"a":{"token":"y"},"token_count":7}}`,
			`{"metadata":{"user_api_key":"[masked]","headers":{"Authorization":"[masked]"},` +
				`"a":{"token":"[masked]"},"token_count":7}}`},
		{"the bytes of numbers, escapes and unknown fields",
			`{"n":1.50e+03,"s":"\u0041\/<&>é","kwargs":{"x":[1e400,"\ud800"]}}`,
			`{"n":1.50e+03,"s":"\u0041\/<&>é","kwargs":{"x":[1e400,"\ud800"]}}`},
		{"line breaks between tokens", "{\n \"a\" :\r\n[1,\n2]\n,\n\"b\":{\r\"c\"\n:1}\n}",
			`{"a" :  [1, 2],"b":{ "c" :1}}`},
		{"line breaks in strings stay escaped", `{"a":"x\ny\r"}`, `{"a":"x\ny\r"}`},

		{"credentials of each name",
			`{"kwargs":{"api_key":"1","OpenAI_API_Key":"2","authorization":"3","AWS_SECRET_ACCESS_KEY":"4",` +
				`"aws_secret":"5"}}`,
			`{"kwargs":{"api_key":"[masked]","OpenAI_API_Key":"[masked]","authorization":"[masked]",` +
				`"AWS_SECRET_ACCESS_KEY":"[masked]","aws_secret":"[masked]"}}`},
		{"names that only look like it",
			`{"kwargs":{"api_keys":1,"my_api_key_id":2,"api-key":3,"xapi_key":4,"authorizations":5,` +
				`"my_aws_secret":6,"key":7}}`,
			`{"kwargs":{"api_keys":1,"my_api_key_id":2,"api-key":3,"xapi_key":4,"authorizations":5,` +
				`"my_aws_secret":6,"key":7}}`},
		{"in args, deep in arrays and objects", `{"args":[1,{"a":[{"headers":{"Authorization" : "Bearer x"}}]}]}`,
			`{"args":[1,{"a":[{"headers":{"Authorization" : "[masked]"}}]}]}`},
		{"a credential of any kind",
			`{"kwargs":{"api_key":{"a":[1,"]"]},"x_api_key":[{}],"y_api_key":17,"z_api_key":true,"o":"k"}}`,
			`{"kwargs":{"api_key":"[masked]","x_api_key":"[masked]","y_api_key":"[masked]",` +
				`"z_api_key":"[masked]","o":"k"}}`},
		{"null is no credential", `{"kwargs":{"api_key":null,"a":1}}`, `{"kwargs":{"api_key":null,"a":1}}`},
		{"an escaped credential", `{"kwargs":{"api\u005fkey":"x"}}`, `{"kwargs":{"api\u005fkey":"[masked]"}}`},
		{"a credential that is longer than its mask, and one shorter",
			`{"kwargs":{"api_key":"` + strings.Repeat("k", 99) + `","b_api_key":""}}`,
			`{"kwargs":{"api_key":"[masked]","b_api_key":"[masked]"}}`},

		{"values that spell a credential's name",
			`{"kwargs":{"a":"api_key","b":["api_key","authorization"]},"args":"api_key"}`,
			`{"kwargs":{"a":"api_key","b":["api_key","authorization"]},"args":"api_key"}`},
		{"a text that holds JSON", `{"kwargs":{"a":"{\"api_key\":\"x\"}"}}`,
			`{"kwargs":{"a":"{\"api_key\":\"[masked]\"}"}}`},
		{"given twice", `{"kwargs":{"api_key":"x","api_key":"y"}}`,
			`{"kwargs":{"api_key":"[masked]","api_key":"[masked]"}}`},
		{"a credential before a line break", "{\"kwargs\":{\"api_key\"\n:\n\"x\"\n}}",
			`{"kwargs":{"api_key" : "[masked]" }}`},
	} {
		t.Run(tt.what, func(t *testing.T) {
			got := Strip([]byte(tt.body), parse(t, tt.body))
			same(t, "stripped", string(got), tt.want)
		})
	}
}

// A large body is in memory only once: it is stripped in place, and the line that is
// spooled holds the same bytes.
func TestALineHoldsTheBodyItself(t *testing.T) {
	for _, tt := range []struct {
		what, body string
		inPlace    bool
	}{
		{"nothing secret", `{"a":"x","kwargs":{"b":[1,2]}}`, true},
		{"a key to leave out", ` { "api_key" : "k", "a" : 1 } `, true},
		{"a long credential", `{"kwargs":{"api_key":"a-long-enough-secret"},"a":1}`, true},
		{"a credential shorter than its mask",
			`{"kwargs":{"api_key":1,"b":"rest"},"args":{"api_key":"y"},"a":1}`, false},
		{"short ones after a key that was left out",
			`{"api_key":"a-key-of-some-length","kwargs":{"api_key":1,"b":"rest"}}`, true},
	} {
		t.Run(tt.what, func(t *testing.T) {
			body := []byte(tt.body)
			want := wire.Event{
				ID:         wire.NewID(),
				Kind:       wire.KindRequest,
				RequestID:  wire.NewID(),
				AcceptedAt: time.Now(),
				Sidecar:    "pod-1",
			}
			got := want

			want.Body = slowlyStripped(t, tt.body)
			got.Body = Strip(body, parse(t, tt.body))

			line := got.LineParts()
			same(t, "line", string(bytes.Join(line, nil)), string(want.AppendLine(nil)))
			same(t, "stripped in place", &line[1][0] == &body[0], tt.inPlace)
		})
	}
}

// slowlyStripped strips a body into a copy, so that no byte is overwritten before it was
// read.
func slowlyStripped(t *testing.T, body string) []byte {
	t.Helper()
	source := rewriter{source: []byte(body)}
	return source.strip(parse(t, body))
}

// checkStripped compares a stripped body with the members of its source. A mask may
// stand for any value, and every credential must be masked.
func checkStripped(t *testing.T, stripped []byte, members map[string]json.RawMessage) {
	t.Helper()
	if bytes.ContainsAny(stripped, "\r\n") {
		t.Fatalf("the stripped body has a line break: %q", stripped)
	}

	got := decode(t, stripped).(map[string]any)
	want := map[string]any{}
	for name, value := range members {
		if name != "api_key" {
			want[name] = decode(t, value)
			checkMasked(t, got[name], name == "kwargs" || name == "args" || name == "parameters")
		}
	}
	same(t, "stripped", any(got), copyMasks(any(want), got))

	object, err := wire.ParseObject(stripped)
	if err != nil {
		t.Fatalf("the stripped body does not parse: %v", err)
	}
	same(t, "stripped twice", string(Strip(bytes.Clone(stripped), object)), string(stripped))
}

// decode decodes one JSON value and keeps the digits of its numbers.
func decode(t *testing.T, value []byte) any {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q is not JSON: %v", value, err)
	}

	return v
}

// checkMasked fails the test for each credential in v that is not masked. Only loose
// values, those with the settings of a client, have credentials by name.
func checkMasked(t *testing.T, v any, loose bool) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			checkMasked(t, value, loose)
			if loose && isCredential(name) && value != nil && value != maskedText {
				t.Errorf("%s is not masked: %v", name, value)
			}
		}
	case []any:
		for _, value := range v {
			checkMasked(t, value, loose)
		}
	}
}

// copyMasks returns v with each text that is masked in the other value replaced by it.
func copyMasks(v, masked any) any {
	if text, ok := masked.(string); ok && strings.Contains(text, maskedText) {
		return text
	}

	switch v := v.(type) {
	case map[string]any:
		masked, _ := masked.(map[string]any)
		for name := range v {
			v[name] = copyMasks(v[name], masked[name])
		}
	case []any:
		masked, _ := masked.([]any)
		for i := range min(len(v), len(masked)) {
			v[i] = copyMasks(v[i], masked[i])
		}
	}

	return v
}

// parse parses a body that must be a JSON object.
func parse(t *testing.T, body string) wire.Object {
	t.Helper()
	object, err := wire.ParseObject([]byte(body))
	if err != nil {
		t.Fatalf("ParseObject(%.200s): %v", body, err)
	}
	return object
}

// same fails the test, with a diff, if got differs from want.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
