package records_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/spool/database/databasetest"
)

// The server decodes events that a sidecar has answered 200 with the code that checks new
// writes. These tests fail if a check, perhaps a newer one, drops what it finds fault with.

// shown is what a record shows of the fields that callers set.
type shown struct {
	Function, Provider, Status, ErrorType string
	Timed                                 bool // both times are known
	Tags                                  []string
	Metadata                              map[string]string
	Groups                                []string
	Scores                                map[string]int
	Template                              string
	Version                               int
	Label, Variables                      string
}

// usual is what a record shows that has usualRequest and each of usualWrites.
func usual() shown {
	return shown{
		Function:  "f",
		Provider:  "p",
		Status:    "WARNING",
		ErrorType: "E",
		Timed:     true,
		Tags:      []string{"a", "b"},
		Metadata:  map[string]string{"a": "1", "b": "2"},
		Groups:    []string{"g", "h"},
		Scores:    map[string]int{"s": 7},
		Template:  "greet",
		Version:   3,
		Variables: `{"x":1}`,
	}
}

// usualWrites has for each kind the members of a write without faults.
var usualWrites = map[wire.Kind]map[string]string{
	wire.KindRequest: {
		"function_name": `"f"`, "provider_type": `"p"`, "status": `"WARNING"`, "error_type": `"E"`,
		"kwargs": `{}`, "request_response": `{}`, "request_start_time": `1`, "request_end_time": `2`,
		"tags": `["a","b"]`, "metadata": `{"a":"1"}`, "group_id": `"g"`,
		"prompt_id": `"of the request"`, "prompt_input_variables": `{}`,
	},
	wire.KindScore:    {"name": `"s"`, "score": `7`},
	wire.KindMetadata: {"metadata": `{"b":"2"}`},
	wire.KindGroup:    {"group_id": `"h"`},
	wire.KindPrompt:   {"prompt_name": `"greet"`, "version": `3`, "prompt_input_variables": `{"x":1}`},
}

// kinds are the keys of usualWrites, the request first.
var kinds = []wire.Kind{wire.KindRequest, wire.KindScore, wire.KindMetadata, wire.KindGroup, wire.KindPrompt}

// accept records the usual writes of a new record, with one member of one of them replaced or,
// if value is "", missing. It returns what the record shows, and the body of the changed write.
func (s server) accept(t *testing.T, n int, kind wire.Kind, member, value string) (got shown, body string) {
	t.Helper()
	id := databasetest.ID(1_000_000 + n)
	var events []wire.Event
	for i, k := range kinds {
		members := maps.Clone(usualWrites[k])
		if k != wire.KindRequest {
			members["request_id"] = `"` + id + `"`
		}
		if k == kind {
			members[member] = value
		}

		var parts []string
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if members[name] != "" {
				parts = append(parts, fmt.Sprintf("%q:%s", name, members[name]))
			}
		}
		e := write(n*len(kinds)+i, k, "{"+strings.Join(parts, ",")+"}")
		e.AcceptedAt, e.RequestID = databasetest.Start, id
		events = append(events, e)
		if k == kind {
			body = string(e.Body)
		}
	}

	for _, r := range s.record(t, events...) {
		if r.Code != wire.ResultAccepted {
			t.Fatalf("an event that a sidecar has answered 200 is %+v", r)
		}
	}
	rec, err := s.Request(t.Context(), s.id, id)
	if err != nil {
		t.Fatal(err)
	}

	return showing(rec), body
}

func showing(rec wire.Record) shown {
	got := shown{
		Function:  rec.FunctionName,
		Provider:  rec.Provider,
		Status:    rec.Status,
		ErrorType: rec.ErrorType,
		Timed:     rec.StartTime != nil && rec.EndTime != nil,
		Tags:      rec.Tags,
		Metadata:  rec.Metadata,
		Groups:    rec.GroupIDs,
		Scores:    map[string]int{},
	}
	for _, score := range rec.Scores {
		got.Scores[score.Name] = int(score.Number)
	}
	if p := rec.Prompt; p != nil {
		got.Template, got.Variables = p.Name, string(p.InputVariables)
		if p.Version != nil {
			got.Version = *p.Version
		}
		if p.Label != nil {
			got.Label = *p.Label
		}
	}

	return got
}

// checkBodies fails unless an export has each of these bodies as it was sent.
func (s server) checkBodies(t *testing.T, sent []string) {
	t.Helper()
	kept := map[string]bool{}
	err := s.ExportEvents(t.Context(), s.id, wire.Search{}, func(events []wire.Event) error {
		for _, e := range events {
			kept[string(e.Body)] = true
		}
		return nil
	}, func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}

	for _, body := range sent {
		if !kept[body] {
			t.Errorf("the body is not kept: %.200s", body)
		}
	}
}

// A text may be faulty in ways that no check looks for today. Wherever it is, it is kept.
func TestATextOfAnAcceptedEventIsKeptWhateverItHolds(t *testing.T) {
	texts := []string{
		"a\x00b\x07c\x1b[31m\x7f\u0085", "a\r\nb\n\n", "  a\t", " ", "\u202ea\u200b\ufeff\u2028", "\ufffd",
		`<script>"'\{{x}}%s${y}`, "00012345678901234567890", "null", "../../etc/passwd", "__proto__",
		strings.Repeat("é", wire.NameRunesMax), strings.Repeat("é", 2000),
	}
	set := func(field func(*shown) *string) func(*shown, string) {
		return func(s *shown, text string) { *field(s) = text }
	}
	places := []struct {
		kind          wire.Kind
		member, value string // %s is the text, quoted
		want          func(s *shown, text string)
	}{
		{wire.KindRequest, "tags", `["a",%s,"b"]`, func(s *shown, text string) { s.Tags = []string{"a", text, "b"} }},
		{wire.KindRequest, "metadata", `{"a":"1","k":%s}`, func(s *shown, text string) { s.Metadata["k"] = text }},
		{wire.KindRequest, "metadata", `{"a":"1",%s:"v"}`, func(s *shown, text string) { s.Metadata[text] = "v" }},
		{wire.KindMetadata, "metadata", `{"b":"2","k":%s}`, func(s *shown, text string) { s.Metadata["k"] = text }},
		{wire.KindMetadata, "metadata", `{"b":"2",%s:"v"}`, func(s *shown, text string) { s.Metadata[text] = "v" }},
		{wire.KindRequest, "function_name", `%s`, set(func(s *shown) *string { return &s.Function })},
		{wire.KindRequest, "provider_type", `%s`, set(func(s *shown) *string { return &s.Provider })},
		{wire.KindRequest, "error_type", `%s`, func(s *shown, text string) {
			// Rows show the beginning. The body has the rest.
			s.ErrorType = string([]rune(text)[:min(len([]rune(text)), wire.NameRunesMax)])
		}},
		{wire.KindRequest, "group_id", `%s`, func(s *shown, text string) { s.Groups[0] = text }},
		{wire.KindGroup, "group_id", `%s`, func(s *shown, text string) { s.Groups[1] = text }},
		{wire.KindScore, "name", `%s`, func(s *shown, text string) { s.Scores = map[string]int{text: 7} }},
		{wire.KindPrompt, "prompt_name", `%s`, set(func(s *shown) *string { return &s.Template })},
		{wire.KindPrompt, "label", `%s`, func(s *shown, text string) { s.Label, s.Version = text, 0 }},
	}

	s := newServer(t)
	n := 0
	for _, place := range places {
		for _, text := range texts {
			if strings.HasSuffix(place.value, `:"v"}`) && len([]rune(text)) > wire.MetadataKeyRunesMax {
				continue // see the next test
			}
			quoted, _ := json.Marshal(text)
			if text == "\ufffd" {
				quoted = []byte(`"\ud800"`) // an unpaired surrogate
			}

			n++
			got, _ := s.accept(t, n, place.kind, place.member, fmt.Sprintf(place.value, quoted))
			want := usual()
			place.want(&want, text)
			slices.Sort(want.Groups)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s %s with %.40q (-want +got):\n%s", place.kind, place.member, place.value, text, diff)
			}
		}
	}
}

// A value that is at fault costs at most itself: everything beside it is shown, and the body
// is kept as it was sent.
func TestAFaultOfAnAcceptedEventCostsNoMoreThanItself(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	many := func(n int, entry string) string {
		var entries []string
		for i := range n {
			entries = append(entries, strings.ReplaceAll(entry, "#", fmt.Sprint(i)))
		}
		return strings.Join(entries, ",")
	}
	same := func(*shown) {}
	faults := []struct {
		kind          wire.Kind
		member, value string
		want          func(s *shown)
	}{
		// Kept although a new write with it is rejected.
		{wire.KindRequest, "tags", `["a","` + long(513) + `"]`, func(s *shown) { s.Tags[1] = long(513) }},
		{wire.KindRequest, "metadata", `{"a":"1","k":"first","\u006b":"last"}`,
			func(s *shown) { s.Metadata["k"] = "last" }},
		{wire.KindRequest, "metadata", `{"a":"1",` + many(5, `"k#":"`+long(60_000)+`"`) + `}`, func(s *shown) {
			for i := range 4 { // what fits
				s.Metadata[fmt.Sprintf("k%d", i)] = long(60_000)
			}
		}},
		{wire.KindRequest, "function_name", `"` + long(1025) + `"`, func(s *shown) { s.Function = long(1025) }},
		{wire.KindRequest, "user_id", `"` + long(257) + `"`,
			func(s *shown) { s.Metadata["user_id"] = long(256) }},
		{wire.KindRequest, "group_id", `"` + long(513) + `"`, func(s *shown) { s.Groups = []string{"h", long(513)} }},
		{wire.KindGroup, "group_id", `"` + long(513) + `"`, func(s *shown) { s.Groups[1] = long(513) }},
		{wire.KindScore, "name", `"` + long(513) + `"`, func(s *shown) { s.Scores = map[string]int{long(513): 7} }},
		{wire.KindPrompt, "prompt_name", `"` + long(513) + `"`, func(s *shown) { s.Template = long(513) }},
		{wire.KindScore, "request_id", `"another"`, same},
		{wire.KindScore, "session_id", `"s"`, same},
		{wire.KindMetadata, "request_id", `7`, same},
		{wire.KindGroup, "request_id", ``, same},

		// Not shown: no version ever accepted it, or it has no meaning. What is beside it is
		// shown.
		{wire.KindRequest, "tags", `["a",1,"b",null]`, same},
		{wire.KindRequest, "tags", `"a"`, func(s *shown) { s.Tags = []string{} }},
		{wire.KindRequest, "tags", `[` + many(wire.TagsMax+1, `"t#"`) + `]`, func(s *shown) {
			s.Tags = nil
			for i := range wire.TagsMax {
				s.Tags = append(s.Tags, fmt.Sprintf("t%d", i))
			}
		}},
		{wire.KindRequest, "metadata",
			`{"a":"1","k":null,"` + long(1025) + `":"v","l":"` + long(64<<10+1) + `"}`, same},
		{wire.KindRequest, "metadata", `[]`, func(s *shown) { delete(s.Metadata, "a") }},
		{wire.KindMetadata, "metadata", `{` + many(wire.MetadataKeysMax+1, `"k#":"v"`) + `}`, func(s *shown) {
			delete(s.Metadata, "b")
			for i := range wire.MetadataKeysMax {
				s.Metadata[fmt.Sprintf("k%d", i)] = "v"
			}
		}},
		{wire.KindRequest, "function_name", `""`, func(s *shown) { s.Function = "" }},
		{wire.KindRequest, "function_name", `7`, func(s *shown) { s.Function = "" }},
		{wire.KindRequest, "kwargs", `[]`, same},
		{wire.KindRequest, "kwargs", ``, same},
		{wire.KindRequest, "request_response", ``, same},
		{wire.KindRequest, "request_start_time", `1e30`, func(s *shown) { s.Timed = false }},
		{wire.KindRequest, "request_start_time", `"soon"`, func(s *shown) { s.Timed = false }},
		{wire.KindRequest, "session_id", `{}`, same},
		{wire.KindRequest, "status", `"WEIRD"`, func(s *shown) { s.Status = "ERROR" }}, // for its error_type
		{wire.KindRequest, "trace_id", `"t"`, same},
		{wire.KindRequest, "time_to_first_token_ms", `-1`, same},
		{wire.KindRequest, "group_id", `{}`, func(s *shown) { s.Groups = []string{"h"} }},
		{wire.KindScore, "score", `101`, func(s *shown) { s.Scores = map[string]int{} }},
		{wire.KindScore, "score", `"7"`, func(s *shown) { s.Scores = map[string]int{} }},
		{wire.KindScore, "value", `[7]`, func(s *shown) { s.Scores = map[string]int{} }},
		{wire.KindScore, "author", `"a\u0000b"`, same},
		{wire.KindScore, "source", `"an oracle"`, same},
		{wire.KindPrompt, "version", `0`, func(s *shown) { s.Version = 0 }},
		{wire.KindPrompt, "prompt_input_variables", `[]`, func(s *shown) { s.Variables = "" }},
	}

	s := newServer(t)
	var sent, reasons []string
	for i, c := range faults {
		got, body := s.accept(t, i, c.kind, c.member, c.value)
		sent = append(sent, body)
		want := usual()
		c.want(&want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s %.80s (-want +got):\n%s", c.kind, c.member, c.value, diff)
		}

		found := reasonsOf(t, c.kind, body)
		if len(found) == 0 {
			t.Errorf("%s: %s %.80s is not at fault", c.kind, c.member, c.value)
		}
		reasons = append(reasons, found...)
	}
	s.checkBodies(t, sent)

	for _, check := range checksOfWrites(t) {
		if !slices.ContainsFunc(reasons, check.MatchString) {
			t.Errorf("no row has the fault %s: add one that shows what of such a value is kept", check)
		}
	}
}

// reasonsOf returns what a new write with this body is rejected for, or a call kept without.
func reasonsOf(t *testing.T, kind wire.Kind, body string) (reasons []string) {
	t.Helper()
	object, err := wire.ParseObject([]byte(body))
	if err != nil {
		t.Fatal(err)
	}

	switch kind {
	case wire.KindRequest:
		var w wire.RequestWrite
		w, err = wire.DecodeRequest(object, true, time.Now())
		for _, d := range w.Dropped {
			reasons = append(reasons, d.Reason)
		}
	case wire.KindScore:
		_, err = wire.DecodeScore(object)
	case wire.KindMetadata:
		_, err = wire.Decode[wire.MetadataWrite](object)
	case wire.KindGroup:
		_, err = wire.Decode[wire.GroupWrite](object)
	case wire.KindPrompt:
		_, err = wire.Decode[wire.PromptWrite](object)
	}

	var e *wire.Error
	if errors.As(err, &e) {
		for _, f := range e.Fields {
			reasons = append(reasons, f.Reason)
		}
	}

	return reasons
}

// checksOfWrites returns the reasons of all checks that decoders of writes use. They are read
// from the source, so that a new one is seen here.
func checksOfWrites(t *testing.T) (checks []*regexp.Regexp) {
	t.Helper()
	reason := regexp.MustCompile(`f\.(?:fault\(|excess\([^,]+, )[^,]+, "([^"]+)"`)
	verb := regexp.MustCompile(`%[a-z]`)
	for _, file := range []string{"field.go", "write.go"} {
		source, err := os.ReadFile("../../../api/wire/" + file)
		if err != nil {
			t.Fatal(err)
		}
		found := reason.FindAllStringSubmatch(string(source), -1)
		if len(found) == 0 {
			t.Fatalf("%s has no checks; they have moved", file)
		}
		for _, m := range found {
			// Only the fetch of a template reads such an object.
			if m[1] == "has more than %d members" {
				continue
			}
			pattern := verb.ReplaceAllString(regexp.QuoteMeta(m[1]), ".+")
			checks = append(checks, regexp.MustCompile("^"+pattern+"$"))
		}
	}

	return checks
}
