//go:build linux

package releases

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

// answered is a question, and what a release answered.
type answered struct {
	Question string          `json:"question"`
	Answer   json.RawMessage `json:"answer"`
}

// ask asks a server a question. One of a release says what this version does not describe.
func ask(t *testing.T, server *harness.Node, question string) json.RawMessage {
	t.Helper()
	client, answer := http.DefaultTransport, func(text json.RawMessage) json.RawMessage { return text }
	if server.Cmd.Path != harness.Program(t) {
		client = direct
	} else if strings.Contains(question, "/template-statistics ") {
		question, answer = strings.Replace(question, "/template-", "/", 1), asVersions
	} else if strings.Contains(question, "/template-comparison ") {
		question, answer = comparisonOfToday.Replace(question), asComparison
	}
	method, rest, _ := strings.Cut(question, " ")
	if method != strings.ToUpper(method) {
		args := append(strings.Fields(question), "-o", "json", "--data", server.Data)
		return json.RawMessage(says(t, server.Cmd.Path, args...))
	}

	path, body, _ := strings.Cut(rest, " ")
	req, err := http.NewRequest(method, "http://"+server.Addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-API-KEY", harness.AdminKey)
	res, err := client.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s: %v", question, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: %v", question, err)
	}
	return answer(asJSON(t, res.Header.Get("Content-Type"), text))
}

// comparisonOfToday spells a comparison of version 0.1.0 as statistics.
var comparisonOfToday = strings.NewReplacer(
	"/template-comparison", "/statistics", `"version_a":`, `"compare":[`, `"version_b":`, "", "}", "]}")

// asComparison returns the comparison of statistics as version 0.1.0 answered it.
func asComparison(text json.RawMessage) json.RawMessage {
	var statistics struct{ Comparison map[string]any }
	if json.Unmarshal(text, &statistics) != nil || statistics.Comparison == nil {
		return text
	}
	statistics.Comparison["success"] = true
	comparison, _ := json.Marshal(statistics.Comparison) // maps of JSON always encode
	return comparison
}

// asVersions returns statistics with the names that version 0.1.0 had for what it summed up.
func asVersions(text json.RawMessage) json.RawMessage {
	var statistics map[string]any
	if json.Unmarshal(text, &statistics) != nil {
		return text
	}
	items, _ := statistics["items"].([]any)
	for _, v := range items {
		version := v.(map[string]any)
		version["template"] = version["value"]
		delete(version, "value")
	}
	statistics["versions"] = items
	delete(statistics, "items")
	renamed, _ := json.Marshal(statistics) // maps of JSON always encode
	return renamed
}

// asJSON returns an answer as one value: lines as a list, and those of CSV by the names of their columns.
func asJSON(t *testing.T, kind string, text []byte) json.RawMessage {
	t.Helper()
	var list any
	switch {
	case strings.Contains(kind, "ndjson"):
		list = slices.Collect(func(yield func(json.RawMessage) bool) {
			for line := range bytes.Lines(text) {
				if !yield(line) {
					return
				}
			}
		})
	case strings.Contains(kind, "csv"):
		lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		if err != nil || len(lines) == 0 {
			t.Fatalf("%v: %s", err, text)
		}
		records := []map[string]string{}
		for _, line := range lines[1:] {
			record := map[string]string{}
			for i, name := range lines[0] {
				record[name] = line[i]
			}
			records = append(records, record)
		}
		list = records
	default:
		return text
	}

	joined, err := json.Marshal(list)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return joined
}

func askAll(t *testing.T, server *harness.Node, questions []string) (all []answered) {
	t.Helper()
	for _, question := range questions {
		all = append(all, answered{question, ask(t, server, question)})
	}
	return all
}

// still fails unless a server answers as the release did. It may say more.
func (a answered) still(t *testing.T, server *harness.Node, less ...string) {
	t.Helper()
	now := ask(t, server, a.Question)
	less = append(slices.Clip(less), "account", "account_id") // 0.1.0 named a project so, too
	if what := missing(decoded(t, a.Answer), decoded(t, now), less); what != "" {
		t.Errorf("%s: the release answered\n%s\nand now it is\n%s\nat %s", a.Question, a.Answer, now, what)
	}
}

func decoded(t *testing.T, text json.RawMessage) (value any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

// missing returns where a value has not all that another has, apart from fields of some names.
func missing(want, got any, less []string) (where string) {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			return "an object"
		}
		for name, value := range want {
			if where := missing(value, got[name], less); where != "" && !slices.Contains(less, name) {
				return name + "." + where
			}
		}
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			return "a list"
		}
		for i, value := range want {
			if where := missing(value, got[i], less); where != "" {
				return fmt.Sprint(i, ".", where)
			}
		}
	default:
		if got != want {
			return fmt.Sprintf("%v, not %v", got, want)
		}
	}
	return ""
}

func TestAnAnswerMaySayMoreAndNothingElse(t *testing.T) {
	t.Parallel()
	released := decoded(t, json.RawMessage(`{"items":[{"id":"a","at":1},{"id":"b","at":2}],"next":null}`))
	for now, at := range map[string]string{
		`{"items":[{"id":"a","at":1,"more":0},{"id":"b","at":7}],"next":null,"more":[]}`: "",
		`{"items":[{"id":"a","at":1},{"at":2}],"next":null}`:                             "items.1.id.<nil>, not b",
		`{"items":[{"id":"a","at":1}],"next":null}`:                                      "items.a list",
		`{"items":{},"next":null}`:                                                       "items.a list",
		`{"items":[{"id":"a","at":1},{"id":"b","at":2}],"next":3}`:                       "next.3, not <nil>",
		`[]`: "an object",
	} {
		if got := missing(released, decoded(t, json.RawMessage(now)), []string{"at"}); got != at {
			t.Errorf("%s: it is missing at %q, want %q", now, got, at)
		}
	}
}
