package openapi

import (
	"bytes"
	"flag"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"promptspool/api/wire/packed/packedtest"
)

var update = flag.Bool("update", false, "write the description and the page anew")

// served is the description that the binary serves, for readers of the repository. Beside it is what
// the binary takes it from, which has a tenth of its bytes.
const served = "../dashboard/docs/openapi.json"

func TestTheServedDescriptionFollowsTheTypes(t *testing.T) {
	d, err := Describe()
	if err != nil {
		t.Fatal(err)
	}
	want, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(served, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(served); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s differs from the code (%v); run this test with -update", served, err)
	}
	packedtest.Check(t, served+".zst", string(want), *update)
}

// description is what the binary serves.
func description(t *testing.T) *Checker {
	t.Helper()
	text, err := os.ReadFile(served)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewChecker(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// examplesOf calls fn with each example of a document, and the place of the schema beside it.
func examplesOf(v any, place string, fn func(place string, example any)) {
	object, _ := v.(map[string]any)
	for name, inner := range object {
		at := place + "/" + escaped(name)
		if example := member(inner, "example"); example != nil && member(inner, "schema") != nil {
			fn(at+"/schema", example)
		}
		if name != "example" {
			examplesOf(inner, at, fn)
		}
	}
}

func TestEveryExampleFitsItsSchema(t *testing.T) {
	c := description(t)
	seen := 0
	examplesOf(c.document, "", func(place string, example any) {
		seen++
		if err := c.validate(place, example); err != nil {
			t.Errorf("%s: %v", place, err)
		}
	})
	if seen < 85 {
		t.Errorf("only %d examples were seen", seen)
	}
}

func TestTheCheckerSeesWhatDiffers(t *testing.T) {
	c := description(t)
	kind := http.Header{"Content-Type": {"application/json"}}
	good := `{"success": true, "message": "Score recorded.", "request_id": "` + exampleRequest + `"}`
	for _, tt := range []struct {
		path   string
		status int
		header http.Header
		body   string
		says   string
	}{
		{"/rest/track-score", 200, kind, good, ""},
		{"/library-track-score", 200, kind, good, ""},
		{"/rest/track-score", 200, kind, strings.Replace(good, "true", `"yes"`, 1), "success"},
		{"/rest/track-score", 200, kind, strings.Replace(good, "{", `{"more": 1, `, 1), "more"},
		{"/rest/track-score", 200, kind, `{"success": true}`, "missing"},
		{"/rest/track-score", 200, kind, `[`, "not JSON"},
		{"/rest/track-score", 202, kind, good, "202 is not described"},
		{"/rest/track-score", 200, http.Header{"Content-Type": {"text/html"}}, good, "text/html"},
		{"/rest/track-score", 401, kind, good, "missing"},
		{"/rest/backtest", 200, http.Header{"Content-Type": {"application/x-ndjson"}}, "{}\n", "missing"},
	} {
		err := c.CheckAnswer("POST", tt.path, tt.status, tt.header, []byte(tt.body))
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s %d %s: %v, want %q", tt.path, tt.status, tt.body, err, tt.says)
		}
	}

	for body, ok := range map[string]bool{
		`{"request_id": "` + exampleRequest + `", "score": 1, "name": null, "more": 1}`: true,
		`{"request_id": "` + exampleRequest + `", "score": 101}`:                        false,
		`{"score": 1}`: false,
	} {
		if err := c.CheckRequest("POST", "/rest/track-score", []byte(body)); (err == nil) != ok {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// pagesFolder holds the pages that show the description to people.
const pagesFolder = "../dashboard/docs/"

func TestTheReferenceFollowsTheDescription(t *testing.T) {
	d, err := Describe()
	if err != nil {
		t.Fatal(err)
	}
	want := d.Pages()

	// The page that leads to the others is written by hand around two lists.
	index, err := os.ReadFile(pagesFolder + "api.md")
	if err != nil {
		t.Fatal(err)
	}
	want["api"] = string(index)
	for name, text := range map[string]string{"calls": d.Index(), "spellings": d.Spellings()} {
		begin, end := "<!-- generated: "+name+" -->\n\n", "\n<!-- end -->"
		before, rest, ok := strings.Cut(want["api"], begin)
		_, after, ended := strings.Cut(rest, end)
		if !ok || !ended {
			t.Fatalf("api.md has no place for %s", name)
		}
		want["api"] = before + begin + text + end + after
	}

	for name, text := range want {
		path := pagesFolder + name + ".md"
		if got, err := os.ReadFile(path); err == nil && string(got) == text {
			continue
		}
		if !*update {
			t.Errorf("%s differs from the code; run this test with -update", path)
		} else if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheTransportReportsWhatDiffers(t *testing.T) {
	var reported []error
	transport := &Transport{Checker: description(t), Report: func(err error) { reported = append(reported, err) }}
	good := `{"success": true, "message": "Group created.", "id": "` + exampleEvent + `"}`
	for _, tt := range []struct {
		path, version, answer string
		reports               bool
	}{
		{"/rest/create-group", "1", good, false},
		{"/rest/create-group", "1", `{"success": true}`, true},
		{"/rest/create-group", "", `{"success": true}`, false}, // from a proxy in between
		{"/docs", "1", `{}`, false},
	} {
		reported = nil
		transport.RoundTripper = answering(func(*http.Request) *http.Response {
			header := http.Header{"Content-Type": {"application/json"}, "Promptspool-Version": {tt.version}}
			return &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(strings.NewReader(tt.answer))}
		})

		client := &http.Client{Transport: transport}
		res, err := client.Post("http://x"+tt.path, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || string(body) != tt.answer || (len(reported) > 0) != tt.reports {
			t.Errorf("%s %s: %v, reported %v", tt.path, tt.answer, err, reported)
		}
	}
}

// answering is a RoundTripper that needs no server.
type answering func(*http.Request) *http.Response

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }
