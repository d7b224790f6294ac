package experiments

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/calls"
	"promptspool/api/experiment"
	"promptspool/api/wire"
)

// fileOf returns a file with a text.
func fileOf(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRowsOfBothFormsSayTheSame(t *testing.T) {
	quoted := func(text string) json.RawMessage { return json.RawMessage(`"` + text + `"`) }
	want := []row{
		{
			ID: "a", Variables: map[string]json.RawMessage{"name": quoted("Ann"), "city": quoted("Rome, IT")},
			Expected: quoted("Hi"), Metadata: map[string]string{"team": "x"},
		},
		{
			ID: "2", Variables: map[string]json.RawMessage{"name": quoted("Bob"), "city": quoted("")},
			Expected: quoted("Ho"), Metadata: map[string]string{"team": ""},
		},
	}
	for name, text := range map[string]string{
		"rows.csv": "\ufeffid,name,city,expected,metadata.team\na,Ann,\"Rome, IT\",Hi,x\n,Bob,,Ho,\n",
		"rows.jsonl": `{"id":"a","variables":{"name":"Ann","city":"Rome, IT"},"expected":"Hi",` +
			`"metadata":{"team":"x"}}` + "\n\n" +
			`{"variables":{"name":"Bob","city":""},"expected":"Ho","metadata":{"team":""}}` + "\n",
	} {
		got, err := readRows(fileOf(t, name, text))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for text, why := range map[string]string{
		`{"variables":{}`: "row 1", `{"a":1}`: "unknown field", "{}\n[]": "row 2", `{"variables":null}`: "row 1",
		"{\"id\":\"a\"}\n{\"id\":\"a\"}": "two rows have the id",
	} {
		if _, err := readRows(fileOf(t, "rows.jsonl", text)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %s", text, err, why)
		}
	}
	if _, err := readRows(fileOf(t, "rows.csv", "a,b\n1\n")); err == nil {
		t.Error("a line of CSV with too few cells is read")
	}
}

func FuzzRows(f *testing.F) {
	f.Add([]byte("id,expected,metadata.a,b\n1,2,3,\"4\n5\"\n"))
	f.Add([]byte(`{"variables":{"a":1},"expected":{"b":[]}}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, read := range []func([]byte) ([]row, error){jsonRows, csvRows} {
			rows, err := read(text)
			for _, r := range rows {
				if r.Variables == nil && err == nil {
					t.Errorf("%+v would take the variables of a call", r)
				}
			}
		}
	})
}

// openai is an answer as it is logged.
func openai(message string) json.RawMessage {
	return json.RawMessage(`{"kwargs":{"model":"m","messages":[{"role":"user","content":"?"}]},` +
		`"request_start_time":1,"request_end_time":1.5,` +
		`"request_response":{"choices":[{"message":{"role":"assistant",` + message + `}}]}}`)
}

func TestEvaluators(t *testing.T) {
	schema := fileOf(t, "schema.json",
		`{"type":"object","required":["total"],"properties":{"total":{"type":"number"}}}`)
	text := openai(`"content":"{\"total\": 12.5}"`)
	tool := openai(`"tool_calls":[{"id":"1","function":{"name":"find","arguments":"{\"id\":7,\"deep\":{\"a\":[1]}}"}}]`)
	for _, test := range []struct {
		evaluator, expected string
		body                json.RawMessage
		want                string
	}{
		{"equal", `"{\"total\": 12.5}"`, text, "true"},
		{"equal", `{"total":12.5}`, text, "true"},
		{"equal", `{"total":12}`, text, "false"},
		{"equal", ``, text, "the row has no expected value"},
		{"contains:total", ``, text, "true"},
		{"contains", `"tota1"`, text, "false"},
		{`regex:^\{.*\}$`, ``, text, "true"},
		{"sum=schema:" + schema, ``, text, "true"},
		{"schema:" + schema, ``, openai(`"content":"{\"total\":\"12\"}"`), "false"},
		{"schema:" + schema, ``, openai(`"content":"total"`), "false"},
		{"tolerance:0.5", `"12.7"`, openai(`"content":" 12.5\n"`), "true"},
		{"tolerance:0.1", `12.7`, openai(`"content":"12.5"`), "false"},
		{"tolerance:0.1", `12.7`, openai(`"content":"about 12.7"`), "false"},
		{"tolerance:0.1", `"many"`, openai(`"content":"12.7"`), "invalid syntax"},
		{"tool:find", ``, tool, "true"},
		{`tool:find {"id":7}`, ``, tool, "true"},
		{`tool:find {"id":8}`, ``, tool, "false"},
		{`tool`, `"find {\"deep\":{\"a\":[1]}}"`, tool, "true"},
		{"tool:lose", ``, tool, "false"},
		{"max_latency:500ms", ``, tool, "true"},
		{"max_latency:499ms", ``, tool, "false"},
		{"max_cost:0.1", ``, tool, "true"},
		{"max_cost:0.01", ``, tool, "false"},
		{"equal:7", ``, openai(`"content":" 7"`), "true"},
	} {
		var r run
		if err := r.addEvaluator(test.evaluator, 0); err != nil {
			t.Errorf("%s: %v", test.evaluator, err)
			continue
		}
		e := r.evaluators[0]
		a := &answer{call: calls.Read(test.body), logged: &wire.Row{Latency: new(0.5), Price: new(0.05)}}
		a.Expected = json.RawMessage(test.expected)
		_, a.text = a.call.Texts()
		score, err := e.judge(1, a, nil)
		var got struct {
			Value json.RawMessage
			Name  string
		}
		_ = json.Unmarshal(score, &got)
		found := string(got.Value)
		if err != nil {
			found = err.Error()
		}
		if !strings.Contains(found, test.want) || err == nil && got.Name != e.name {
			t.Errorf("%s of %s, expected %s: %s, want %s", test.evaluator, test.body, test.expected, found, test.want)
		}
	}
	for _, wrong := range []string{
		"", "python judge.py", "regex:(", "schema:none.json", "tolerance:x", "max_latency:2x",
		"max_cost:$1", "errors=equal", "x=", "tolerance", "max_cost", `tool:find {"id"`,
	} {
		var r run
		if err := r.addEvaluator(wrong, 0); err == nil {
			t.Errorf("%q is read as %+v", wrong, r.evaluators)
		}
	}
	r := run{evaluators: []evaluator{{name: "equal"}}}
	if err := r.addEvaluator("equal:7", 0); err == nil {
		t.Error("two evaluators make one score")
	}
}

func TestGates(t *testing.T) {
	score := func(v float64) []wire.Score {
		value := wire.ScoreValue{Kind: wire.ScoreNumber, Number: v}
		return []wire.Score{{ScoreSlot: wire.ScoreSlot{Name: "good"}, ScoreValue: value}}
	}
	a := experiment.Calls{"1": {Scores: score(0.8)}, "2": {Scores: score(0.9)}}
	compare := func(second *wire.Row) *experiment.Comparison {
		c := experiment.Compare(a, experiment.Calls{"1": {Scores: score(0.82), Price: new(0.2)}, "2": second}, nil)
		return &c
	}
	good, failed := compare(&wire.Row{Scores: score(0.84), Price: new(0.4)}), compare(&wire.Row{Status: "ERROR"})
	unscored := compare(&wire.Row{})
	for _, test := range []struct {
		gate   string
		of     *experiment.Comparison
		bound  bool
		passed bool
		reason string
	}{
		{"good >= base - 0.02", good, false, true, "good is 0.83, the bound 0.83"},
		{"good>=base-0.01", good, false, false, "good is 0.83, the bound 0.84"},
		{"good > 0.83", good, false, false, "the bound 0.83"},
		{"good < base", good, false, true, "the bound 0.85"},
		{"cost <= base * 1.1", good, false, false, "no row has cost in both versions"},
		{"cost <= 0.3", good, false, true, "cost is 0.3"},
		{"errors <= 0", good, true, true, "errors is 0"},
		{"kind >= 0.1", good, false, false, "2 of 2 rows failed or have no kind"},
		{"good >= 0.1", unscored, false, false, "1 of 2 rows failed or have no good"},
		{"good >= 0.1", failed, false, false, "1 of 2 rows failed"},
		{"good >= 0.1", failed, true, true, "good is 0.82"},
		{"errors <= 0.4", failed, true, false, "errors is 0.5"},
	} {
		g, err := parseGate(test.gate)
		if err != nil {
			t.Errorf("%s: %v", test.gate, err)
			continue
		}
		if o := g.judge(test.of, test.bound); o.Passed != test.passed || !strings.Contains(o.Reason, test.reason) {
			t.Errorf("%s: %+v, want %v, %s", test.gate, o, test.passed, test.reason)
		}
	}
	for _, wrong := range []string{
		"", "good", "good = 1", "good >= base / 2", "good >= 1.2.3", ">= 1", "good >= 5%",
	} {
		if g, err := parseGate(wrong); err == nil {
			t.Errorf("%q is read as %+v", wrong, g)
		}
	}
}
