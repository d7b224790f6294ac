package calls_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"promptspool/api/calls"
	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

// family is a call of one provider's API, as its documentation shows it, and what is read
// from it, in one line:
//
//	texts in > texts out | model | input/output tokens c=cached w=written to a cache
//	r=reasoning | finish reason | shape
type family struct {
	Name string
	Call json.RawMessage
	Want string
}

// cases returns the cases of a file of testdata.
func cases[T any](t testing.TB, name string) (all []T) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &all); err != nil || len(all) < 10 {
		t.Fatalf("%d cases: %v", len(all), err)
	}

	return all
}

// oneLine returns a call in one line, as a family has it.
func oneLine(body []byte) string {
	line := func(s string) string { return strings.ReplaceAll(s, "\n", " ") }
	count := func(n *int64) string {
		if n == nil {
			return "?"
		}
		return fmt.Sprint(*n)
	}

	c := calls.Read(body)
	in, out := c.Texts()
	s := fmt.Sprintf("%s > %s | %s | %s/%s", line(in), line(out), c.Model, count(c.Usage.Input), count(c.Usage.Output))
	for _, part := range []struct {
		name string
		n    *int64
	}{{"c", c.Usage.Cached}, {"w", c.Usage.CacheWrite}, {"r", c.Usage.Reasoning}} {
		if part.n != nil && *part.n > 0 {
			s += fmt.Sprintf(" %s=%d", part.name, *part.n)
		}
	}

	s += " | " + c.FinishReason + " | " + c.Shape()
	if !c.Readable {
		s += " | unreadable"
	}

	return s
}

func TestEveryProvidersCallsAreRead(t *testing.T) {
	for _, c := range append(cases[family](t, "calls.json"), cases[family](t, "streams.json")...) {
		t.Run(c.Name, func(t *testing.T) {
			if got := oneLine(c.Call); got != c.Want {
				t.Errorf("got\n  %s\nwant\n  %s", got, c.Want)
			}
		})
	}
}

func TestALogRequestIsRead(t *testing.T) {
	body := `{"provider":"acme","model":"acme-1","input":{"type":"chat","messages":[{"role":"user",` +
		`"content":[{"type":"text","text":"Hi"}]}]},
		"output":{"type":"completion","content":[{"type":"text","text":"Hello"}]},"input_tokens":3,` +
		`"output_tokens":2,"price":0.0000025,
		"request_start_time":"2026-03-01T12:00:00Z","request_end_time":"2026-03-01T12:00:01Z",` +
		`"prompt_name":"greet","prompt_version_number":2}`

	const want = "Hi > Hello | acme-1 | 3/2 |  | plain_text"
	if got := oneLine([]byte(body)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	rec := recordOf(t, body)
	if rec.Provider != "acme" || rec.Price == nil || *rec.Price != 0.0000025 ||
		rec.Prompt == nil || rec.Prompt.Name != "greet" || *rec.Prompt.Version != 2 || *rec.LatencyMS != 1000 {
		t.Errorf("the record is %+v", rec)
	}
}

// withoutText is what answers have that have no text: vectors, pictures, spans without content.
var withoutText = regexp.MustCompile(`(?i)embed|"url|b64|"list"|"message"\s*:\s*{\s*}|"span"|\\\\u`)

func FuzzReadCall(f *testing.F) {
	for _, c := range append(cases[family](f, "calls.json"), cases[family](f, "streams.json")...) {
		f.Add([]byte(c.Call))
	}
	for _, c := range cases[usageCase](f, "usage.json") {
		f.Add(c.body())
	}
	f.Add([]byte(`{"input":{"messages":[{}]},"output":{"content":[7]}}`))

	f.Fuzz(func(t *testing.T, body []byte) {
		call := calls.Read(body)
		calls.Read(body)
		_ = call.Shape()
		if wrong := wholeOf(call.Usage); wrong != "" {
			t.Errorf("%s: %+v", wrong, call.Usage)
		}

		// A record is readable if there is something to read: an answer, why there is none, or vectors.
		nothing := len(call.Output) == 0 && call.FinishReason == "" && call.Failure == nil
		if nothing && call.Readable && !withoutText.Match(body) {
			t.Errorf("a record of nothing is readable: %s", body)
		}
	})
}

// recordOf returns the record of a request with this body.
func recordOf(t *testing.T, body string) wire.Record {
	t.Helper()

	id := databasetest.ID(1000)
	e := databasetest.Event(t, 1, wire.KindRequest, id, body)
	states, bodies := databasetest.Fold([]archive.Event{e})

	return states[id].View(t.Context(), bodies[e.ID])
}
