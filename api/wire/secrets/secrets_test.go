package secrets

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
)

// bodies returns the lines of a file of testdata, without its comments.
func bodies(t testing.TB, name string) (all []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		if line != "" && !strings.HasPrefix(line, "# ") {
			all = append(all, strings.ReplaceAll(line, "PROBE", probe))
		}
	}
	if len(all) < 30 {
		t.Fatalf("%s has only %d bodies", name, len(all))
	}

	return all
}

func TestBodiesAreStrippedAsTheirFileSays(t *testing.T) {
	for pair := range slices.Chunk(bodies(t, "stripped.txt"), 2) {
		want := strings.TrimPrefix(pair[1], "\t")
		same(t, pair[0], stripped(t, pair[0]), want)
		same(t, want+", again", stripped(t, want), want)
	}

	for body, want := range map[string]string{
		"{\n \"a\" :\r\n[1,\n2]\n,\n\"b\":{\r\"c\"\n:1}\n}": `{"a" :  [1, 2],"b":{ "c" :1}}`,
		"{\"kwargs\":{\"api_key\"\n:\n\"x\"\n}}":            `{"kwargs":{"api_key" : "[masked]" }}`,
	} {
		same(t, "line breaks between tokens", stripped(t, body), want)
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
