//go:build linux

package releases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

// questions are what a server is asked: calls of the API, and commands beside it.
var questions = []string{
	`POST /api/public/v2/requests/search {"q":"purple elephant"}`,
	`POST /api/public/v2/requests/search {"filter":"-tag:bulk","per_page":100}`,
	`POST /api/public/v2/requests/search {"filter":"tag:sums digit:7","sort_by":"output_tokens"}`,
	`POST /api/public/v2/requests/search {"filter":"status:error template:team/greet"}`,
	`GET /api/public/v2/requests/` + id(greeted),
	`GET /api/public/v2/requests/` + id(failed),
	`GET /api/public/v2/requests/` + id(cluttered),
	`GET /api/public/v2/requests/` + id(forgotten),
	`GET /api/public/v2/requests/` + id(plain+7),
	`GET /api/public/v2/requests/orphans`,
	`POST /api/public/v2/requests/analytics {"bucket":"day","filter":"-tag:bulk"}`,
	`POST /api/public/v2/requests/template-statistics {"bucket":"day","filter":"-tag:bulk"}`,
	`GET /api/public/v2/requests/suggestions?field=prompt_name`,
	`POST /api/public/v2/sessions/search {}`,
	`GET /api/public/v2/sessions/s-1`,
	`POST /api/public/v2/users/search {}`,
	`POST /api/public/v2/traces/search {}`,
	`GET /api/public/v2/traces/` + trace,
	`POST /api/public/v2/spans/search {}`,
	`GET /api/public/v2/score-definitions`,
	`GET /prompt-templates`,
	`POST /prompt-templates/team%2Fgreet {"label":"prod","input_variables":{"name":"Ann"}}`,
	`GET /prompt-templates/team%2Fgreet?version=2`,
	`GET /prompt-templates/team%2Fgreet/labels`,
	`keys list`,
	`people list`,
	`projects list`,
}

// packedQuestions are what a server is asked of rows in blocks.
var packedQuestions = []string{
	`POST /api/public/v2/requests/search {"q":"rare"}`,
	`POST /api/public/v2/requests/search {"filter":"tag:bulk","per_page":3,"page":400}`,
	`POST /api/public/v2/requests/analytics {"bucket":"day"}`,
	`GET /api/public/v2/requests/suggestions?field=tags`,
}

// answered is a question, and what a release answered.
type answered struct {
	Question string          `json:"question"`
	Answer   json.RawMessage `json:"answer"`
}

// ask asks a server a question.
func ask(t *testing.T, server *harness.Node, question string) json.RawMessage {
	t.Helper()
	method, rest, _ := strings.Cut(question, " ")
	if method != "GET" && method != "POST" {
		out, _ := harness.Run(t, 0, append(strings.Fields(question), "-o", "json", "--data", server.Data)...)
		return json.RawMessage(out)
	}
	path, body, _ := strings.Cut(rest, " ")
	return server.Call(method, path, body, "X-API-KEY", harness.AdminKey).Body
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
