package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// greeting returns a template with three versions, made at noon and each hour after it.
// Its label prod moved to versions 1 and 2 half an hour after each was made. Its label
// beta was deleted.
func greeting() Template {
	hour := func(n float64) time.Time { return noon.Add(time.Duration(n * float64(time.Hour))) }

	return Template{
		Name:     "greeting",
		Versions: []Stamp{{At: hour(0)}, {At: hour(1)}, {At: hour(2)}},
		Labels:   []Label{{Name: "prod", Version: 2}},
		Moves: []Move{
			{Label: "prod", Version: 1, At: hour(.5)},
			{Label: "beta", Version: 2, At: hour(1)},
			{Label: "prod", Version: 2, At: hour(1.5)},
			{Label: "beta", At: hour(2)},
		},
	}
}

func TestResolveTellsWhatASelectorMeansNow(t *testing.T) {
	template := greeting()

	for _, tt := range []struct {
		what     string
		selector Selector
		version  int
		ok       bool
	}{
		{"nothing: the latest", Selector{}, 3, true},
		{"a version", Selector{Version: 1}, 1, true},
		{"the latest version", Selector{Version: 3}, 3, true},
		{"a future version", Selector{Version: 4}, 4, false},
		{"a label", Selector{Label: "prod"}, 2, true},
		{"label and version: the label wins", Selector{Label: "prod", Version: 1}, 2, true},
		{"a deleted label", Selector{Label: "beta"}, 0, false},
		{"an unknown label, with a version that exists", Selector{Label: "test", Version: 1}, 0, false},
	} {
		if version, ok := template.Resolve(tt.selector); version != tt.version || ok != tt.ok {
			t.Errorf("%s: the version is %d, %v; want %d, %v", tt.what, version, ok, tt.version, tt.ok)
		}
	}

	if version, ok := (&Template{}).Resolve(Selector{}); ok || version != 0 {
		t.Errorf("the latest of no versions is %d, %v", version, ok)
	}
}

func TestResolveAtTellsWhatASelectorMeantThen(t *testing.T) {
	template := greeting()

	for _, tt := range []struct {
		what     string
		selector Selector
		after    time.Duration // since noon
		version  int           // 0 if there was none
	}{
		{"the latest, before the first", Selector{}, -1, 0},
		{"the latest, at the moment of the first", Selector{}, 0, 1},
		{"the latest, just before the second", Selector{}, time.Hour - 1, 1},
		{"the latest, long after", Selector{}, 99 * time.Hour, 3},
		{"a label, before it was set", Selector{Label: "prod"}, time.Minute, 0},
		{"a label, at the moment it was set", Selector{Label: "prod"}, 30 * time.Minute, 1},
		{"a label, after it moved", Selector{Label: "prod"}, 2 * time.Hour, 2},
		{"a label, before it was deleted", Selector{Label: "beta"}, 90 * time.Minute, 2},
		{"a label, after it was deleted", Selector{Label: "beta"}, 2 * time.Hour, 0},
		{"a label that never existed", Selector{Label: "test"}, 99 * time.Hour, 0},
		{"label and version: the label wins", Selector{Label: "prod", Version: 3}, time.Hour, 1},
		{"a version that a later clock made", Selector{Version: 3}, 0, 3},
	} {
		version, ok := template.ResolveAt(tt.selector, noon.Add(tt.after))
		if version != tt.version || ok != (tt.version > 0) {
			t.Errorf("%s: the version is %d, %v; want %d", tt.what, version, ok, tt.version)
		}
	}
}

func TestAFetchWithoutABodyMeansTheLatest(t *testing.T) {
	for _, body := range []string{
		"", "null", " \r\n", " null\n", "{}",
		`{"version":null,"label":null,"input_variables":null}`, `{"version":"","label":""}`,
	} {
		got, err := decodeFetch([]byte(body))
		wantFaults(t, err)
		same(t, fmt.Sprintf("fetch of %q", body), got, TemplateFetch{})
	}

	for _, body := range []string{"x", "[]", "nul", "null null", `"greeting"`} {
		if _, err := decodeFetch([]byte(body)); !IsCode(err, CodeBadJSON) {
			t.Errorf("%q: error is %v, want code %s", body, err, CodeBadJSON)
		}
	}
}

func TestDecodeFetchReadsEveryField(t *testing.T) {
	got, err := decodeFetch([]byte(`{"version":"3","label":"prod","provider":"openai","model":"gpt-4o",` +
		`"input_variables":{"ci\u0074y":"Rome","n":[1, 2]},
		"model_parameter_overrides":{"temperature":0.50},"skip_input_variable_rendering":false,"api_key":"ps_1"}`))
	wantFaults(t, err)
	same(t, "fetch", got, TemplateFetch{
		Selector: Selector{Version: 3, Label: "prod"},
		Provider: "openai",
		Model:    "gpt-4o",
		Variables: map[string]json.RawMessage{
			"city": json.RawMessage(`"Rome"`),
			"n":    json.RawMessage("[1, 2]"),
		},
		Overrides: map[string]json.RawMessage{"temperature": json.RawMessage("0.50")},
	})

	got, err = decodeFetch([]byte(`{"input_variables":{}}`))
	wantFaults(t, err)
	if got.Variables == nil {
		t.Error("empty input_variables are decoded as absent")
	}
}

// publishing returns the body of a publish with these members in prompt_template, in
// prompt_version and beside the two.
func publishing(base, version, beside string) string {
	return `{"prompt_template":{` + base + `},"prompt_version":{` + version + `}` + beside + `}`
}

// The members of a valid publish.
const (
	someBase    = `"prompt_name":"team/greeting","tags":["a"]`
	someVersion = `"prompt_template":{"type":"chat"},"metadata":{"model":{}},"commit_message":"first"`
)

func TestDecodePublishReadsBothObjects(t *testing.T) {
	want := Publish{
		PublishedName: PublishedName{
			Name: "team/greeting",
			Tags: []string{"a"},
		},
		PublishedVersion: PublishedVersion{
			Blueprint:     json.RawMessage(`{"type":"chat"}`),
			Metadata:      json.RawMessage(`{"model":{}}`),
			CommitMessage: "first",
		},
		PublishedPlace: PublishedPlace{Labels: []string{"prod"}},
	}

	for what, body := range map[string]string{
		"as the schema says": publishing(someBase, someVersion, `,"release_labels":["prod"]`),
		"as SDKs send it": publishing(someBase+","+someVersion, someBase+","+someVersion,
			`,"release_labels":["prod"]`),
		"with unknown members": publishing(someBase+`,"folder_id":1`, someVersion+`,"webhook":null`,
			`,"release_labels":["prod"],"x":1`),
		"with members in the wrong object": publishing(someBase+`,"commit_message":1`, someVersion+`,"tags":1`,
			`,"release_labels":["prod"]`),
		"with escapes": publishing(`"prompt\u005fname":"team\/greeting","tags":["a"]`, someVersion,
			`,"release_labels":["prod"]`),
	} {
		got, err := DecodePublish(parse(t, body))
		wantFaults(t, err)
		same(t, what, got, want)
	}

	got, err := DecodePublish(parse(t, publishing(
		`"prompt_name":"p","tags":null`,
		`"prompt_template":{},"metadata":null`,
		`,"release_labels":null`)))
	wantFaults(t, err)
	same(t, "the smallest publish", got, Publish{
		PublishedName:    PublishedName{Name: "p"},
		PublishedVersion: PublishedVersion{Blueprint: json.RawMessage("{}")},
	})
}

func TestDecodePublishNamesWhatIsWrong(t *testing.T) {
	const badName = "prompt_template.prompt_name must not begin or end with a blank, " +
		"nor contain control characters"

	for _, tt := range []struct {
		what, body string
		want       []string
	}{
		{"nothing", `{}`, []string{"prompt_template is missing", "prompt_version is missing"}},
		{"null", `{"prompt_template":null,"prompt_version":null}`,
			[]string{"prompt_template is missing", "prompt_version is missing"}},
		{"wrong kinds", `{"prompt_template":"x","prompt_version":[]}`,
			[]string{"prompt_template must be an object", "prompt_version must be an object"}},
		{"empty objects", publishing("", "", ""),
			[]string{"prompt_template.prompt_name is missing", "prompt_version.prompt_template is missing"}},
		{"wrong kinds inside",
			publishing(`"prompt_name":1,"tags":"a"`, `"prompt_template":"x","metadata":1,"commit_message":2`, ""),
			[]string{
				"prompt_template.prompt_name must be a string",
				"prompt_template.tags must be an array of strings",
				"prompt_version.prompt_template must be an object",
				"prompt_version.metadata must be an object",
				"prompt_version.commit_message must be a string",
			}},

		{"a blank before the name", publishing(`"prompt_name":" x"`, someVersion, ""), []string{badName}},
		{"a blank behind the name", publishing(`"prompt_name":"x\u00a0"`, someVersion, ""), []string{badName}},
		{"a line break in the name", publishing(`"prompt_name":"x\ny"`, someVersion, ""), []string{badName}},
		{"a NUL in the name", publishing(`"prompt_name":"x\u0000y"`, someVersion, ""), []string{badName}},
		{"an empty name", publishing(`"prompt_name":""`, someVersion, ""),
			[]string{"prompt_template.prompt_name must not be empty"}},
		{"the longest name", publishing(`"prompt_name":`+text("é", 512), someVersion, ""), nil},
		{"a longer name", publishing(`"prompt_name":`+text("é", 513), someVersion, ""),
			[]string{"prompt_template.prompt_name is longer than 512 characters"}},
		{"the longest commit message",
			publishing(someBase, `"prompt_template":{},"commit_message":`+text("é", 512), ""), nil},
		{"a longer commit message", publishing(someBase, `"prompt_template":{},"commit_message":`+text("é", 513), ""),
			[]string{"prompt_version.commit_message is longer than 512 characters"}},

		{"an empty label", publishing(someBase, someVersion, `,"release_labels":["prod",""]`),
			[]string{"release_labels must not contain an empty label"}},
		{"a label that is too long", publishing(someBase, someVersion, `,"release_labels":[`+text("é", 513)+`]`),
			[]string{"release_labels[0] is longer than 512 characters"}},
		{"labels that are not an array", publishing(someBase, someVersion, `,"release_labels":"prod"`),
			[]string{"release_labels must be an array of strings"}},
		{"external ids of other shapes", publishing(someBase, someVersion,
			`,"external_ids":[{"source":"cms","external_id":"1"},{"source":"","external_id":2},7]`),
			[]string{
				"external_ids[1].source must not be empty",
				"external_ids[1].external_id must be a string",
				"external_ids[2] must be an object with source and external_id",
			}},
		{"an external id that is not in an array", publishing(someBase, someVersion, `,"external_ids":"1"`),
			[]string{"external_ids must be an array of objects with source and external_id"}},
		{"too many external ids", publishing(someBase, someVersion, `,"external_ids":[`+
			strings.Repeat(`{"source":"a","external_id":"b"},`, 32)+`{"source":"a","external_id":"b"}]`),
			[]string{"external_ids has more than 32 entries"}},
		{"a source that is too long", publishing(someBase, someVersion,
			`,"external_ids":[{"source":`+text("é", 129)+`,"external_id":"b"}]`),
			[]string{"external_ids[0].source is longer than 128 characters"}},
		{"a member twice inside", publishing(someBase+`,"tags":[]`, someVersion, ""),
			[]string{"prompt_template.tags is given twice"}},
		{"too many members inside", publishing(someBase, strings.Trim(manyMembersOf(1001, "1"), "{}"), ""),
			[]string{"prompt_version.m1000 is one field too many; at most 1000 are accepted"}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			_, err := DecodePublish(parse(t, tt.body))
			wantFaults(t, err, tt.want...)
		})
	}
}
