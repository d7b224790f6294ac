package filterline_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/spool/archive/query"
)

var update = flag.Bool("update", false, "write the tables anew")

// clock is a Sunday noon in a zone whose days do not begin with those of UTC.
var clock = filterline.Clock{
	Now:  time.Date(2026, 11, 22, 11, 0, 0, 0, time.UTC),
	Zone: time.FixedZone("CET", 3600),
}

// golden compares a table with a file of testdata, or writes it.
func golden(t *testing.T, name, table string) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if table != string(want) {
		t.Errorf("%s is not what the code says; look at the difference after a run with -update", path)
	}
}

// samples are a value of each kind, and a larger one.
var samples = map[filterline.Kind][2]string{
	filterline.Text:     {"a", "b"},
	filterline.Content:  {"a", "b"},
	filterline.Template: {"a", "b@2"},
	filterline.Number:   {"1", "2.5"},
	filterline.Score:    {"1", "2.5"},
	filterline.Duration: {"1s", "2500ms"},
	filterline.Time:     {"2026-11-01", "2026-11-02T10:00"},
	filterline.Flag:     {"json", "tool_call"},
}

// forms are the operators of a line, with a value for each %s.
var forms = []string{
	"%[1]s:%[2]s", "%[1]s:(%[2]s or %[3]s)", "%[1]s:*", "%[1]s:%[2]s*", "%[1]s:*%[2]s", "%[1]s:*%[2]s*",
	"%[1]s:>%[2]s", "%[1]s:>=%[2]s", "%[1]s:<%[2]s", "%[1]s:<=%[2]s",
	"%[1]s:%[2]s..%[3]s", "%[1]s:%[2]s..", "%[1]s:..%[3]s",
}

// Each field with each operator is carried out as the table in testdata says, and so is its
// negation, which finds exactly what it does not.
func TestEveryFieldAndOperatorOfALine(t *testing.T) {
	var table strings.Builder
	for i := range filterline.Fields {
		f := &filterline.Fields[i]
		values := samples[f.Kind]
		if f.Values != nil {
			values = [2]string{f.Values[0], f.Values[1]}
		}
		keys := append([]string{f.Name}, f.Aliases...)
		if f.NeedsPart {
			keys = []string{f.Name + ".k"}
		} else if f.Part != "" {
			keys = append(keys, f.Name+".k")
		}

		if !f.IsOfCalls() {
			continue
		}

		for _, form := range forms {
			var said string
			for _, key := range keys {
				text := fmt.Sprintf(form, key, values[0], values[1])
				carried := carriedOut(t, text)
				if !strings.Contains(key, ".") { // another spelling of the same
					if said == "" {
						fmt.Fprintf(&table, "%s\n\t%s\n", text, carried)
						said = carried
					} else if carried != said && !strings.Contains(carried, "character") {
						t.Errorf("%s is carried out as %s, and not as %s", text, carried, said)
					}
				} else {
					fmt.Fprintf(&table, "%s\n\t%s\n", text, carried)
				}
				checkNegation(t, text)
			}
		}
	}

	golden(t, "lines.txt", table.String())
}

// carriedOut returns the search that a line makes, or its fault.
func carriedOut(t *testing.T, text string) string {
	t.Helper()
	s, err := read(text, clock)
	if err != nil {
		return faultOf(t, err).Reason
	}
	if _, err := query.CompileMatch(s); err != nil {
		t.Errorf("%s is not accepted: %v", text, err)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}

	return string(raw)
}

func faultOf(t *testing.T, err error) wire.FieldError {
	t.Helper()
	var e *wire.Error
	if !errors.As(err, &e) || e.Code != wire.CodeInvalid || len(e.Fields) != 1 || e.Fields[0].Offset == nil {
		t.Fatalf("a fault of a line is %v; it must name its place", err)
	}

	return e.Fields[0]
}

// rows are requests that differ in what fields ask for. The last one has nothing.
func rows() []query.Subject {
	at := func(day, hour int) *time.Time { return new(time.Date(2026, 11, day, hour, 0, 0, 0, time.UTC)) }
	row := func(text string, n int64, when *time.Time) *wire.Row {
		tone := wire.Score{
			ScoreSlot:  wire.ScoreSlot{Name: text, Author: text},
			ScoreValue: wire.ScoreValue{Kind: wire.ScoreCategory, Text: text},
		}
		return &wire.Row{
			RequestID: text, AcceptedAt: *when, FunctionName: text, Engine: text, Provider: text,
			InputTokens: new(n), OutputTokens: new(n), CachedTokens: new(n), ReasoningTokens: new(n),
			Price: new(float64(n)), Latency: new(float64(n)), StartTime: when, EndTime: when,
			Status: []string{"SUCCESS", "WARNING", "ERROR"}[n%3], Tags: []string{text, "x"},
			Metadata:   []wire.MetadataRow{{Key: "k", Value: text}},
			Scores:     []wire.Score{wire.IntegerScore("k", int(n)), tone},
			PromptName: &text, PromptVersion: new(int64(n)),
			PromptLabel: &text, ToolNames: []string{text}, FinishReason: text, ErrorType: text,
			GroupIDs: []string{text}, Sidecar: text, OutputShape: []string{"json", "tool_call", "plain_text"}[n%3],
		}
	}

	all := []query.Subject{
		{Row: row("a", 1, at(1, 10))}, {Row: row("b", 2, at(2, 9))}, {Row: row("ab", 3, at(2, 12))},
		{Row: row("ba", 4, at(20, 0))}, {Row: &wire.Row{RequestID: "z", AcceptedAt: *at(21, 0), Status: "SUCCESS"}},
	}
	for i := range all {
		text := all[i].Row.Engine
		all[i].Body = func() ([]byte, error) {
			return fmt.Appendf(nil, `{"kwargs":{"messages":[{"role":"user","content":"%s how do"}]},`+
				`"prompt_input_variables":{"k":%q},"request_response":{"choices":[{"message":`+
				`{"role":"assistant","content":"{\"k\":\"%[1]s sorry\"}"}}]}}`, text, text), nil
		}
	}

	return all
}

// checkNegation checks that a term and its negation divide the rows.
func checkNegation(t *testing.T, text string) {
	t.Helper()
	s, err := read(text, clock)
	not, errNot := read("-"+text, clock)
	switch {
	case err != nil && errNot != nil:
		return
	case errNot != nil && strings.Contains(faultOf(t, errNot).Reason, "several of score"):
		return // the one thing that a filter cannot say
	case (err == nil) != (errNot == nil):
		t.Errorf("%s: %v; negated: %v", text, err, errNot)
		return
	}
	q, err := query.CompileMatch(s)
	qNot, errNot := query.CompileMatch(not)
	if err != nil || errNot != nil {
		t.Errorf("%s: %v; negated: %v", text, err, errNot)
		return
	}

	for _, row := range rows() {
		if q.Match(&row) == qNot.Match(&row) {
			t.Errorf("%s and its negation both match %s, or both do not", text, row.Row.RequestID)
		}
	}
}
