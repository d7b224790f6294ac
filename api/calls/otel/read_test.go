package otel_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/calls"
	"promptspool/api/calls/otel"
	"promptspool/api/calls/otel/dialect"
	"promptspool/api/wire"
)

// spanWith returns a stored span with these attributes.
func spanWith(attributes map[string]any) map[string]any {
	return map[string]any{
		"resource": map[string]any{}, "scope": map[string]any{},
		"span": map[string]any{
			"traceId": strings.Repeat("ab", 16), "spanId": strings.Repeat("cd", 8), "name": "n",
			"startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000001500000000",
			"attributes": attributes,
		},
	}
}

// Exporters that people write themselves count in other units.
func TestTimesInOtherUnits(t *testing.T) {
	want := time.Date(2023, 11, 14, 22, 13, 20, 0, time.UTC)
	for _, start := range []any{"1700000000", 1700000000000, "1700000000000000", "1700000000000000000"} {
		body := spanWith(nil)
		body["span"].(map[string]any)["startTimeUnixNano"] = start
		if got := otel.Read(encode(t, body)).Start; got != want {
			t.Errorf("%v is %v", start, got)
		}
	}
}

// dialectCase is a span that was not recorded, and what is read of it. An attribute that is
// an object or a list stands for its text.
type dialectCase struct {
	Case        string
	Name, Scope string
	Attributes  texts
	Events      []struct {
		Name       string `json:"name"`
		Attributes texts  `json:"attributes"`
	}
	Want reading
}

// reading is what a test expects of a span.
type reading struct {
	Kind            dialect.Kind
	Provider, Model string
	ID, Finish      string   // compared where they are wanted
	Usage           string   // input/output/cached/written/reasoning
	In, Out         []string // role: text [tool(arguments)] ..., one for each message
}

// texts are the attributes of a span, in which objects and lists are texts.
type texts map[string]any

func (t *texts) UnmarshalJSON(raw []byte) error {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}

	*t = texts{}
	for key, value := range members {
		(*t)[key] = value
		if value[0] == '{' || value[0] == '[' {
			var text bytes.Buffer
			if err := json.Compact(&text, value); err != nil {
				return err
			}
			(*t)[key] = text.String()
		}
	}

	return nil
}

func TestDialectsAreRead(t *testing.T) {
	raw, err := os.ReadFile("testdata/dialects.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []dialectCase
	if err := json.Unmarshal(raw, &cases); err != nil || len(cases) < 27 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}

	for _, c := range cases {
		t.Run(c.Case, func(t *testing.T) {
			body := spanWith(c.Attributes)
			span := body["span"].(map[string]any)
			span["events"] = c.Events
			body["scope"] = map[string]any{"name": c.Scope}
			if c.Name != "" {
				span["name"] = c.Name
			}

			got := readingOf(t, otel.Read(encode(t, body)))
			if c.Want.ID == "" {
				got.ID = ""
			}
			if c.Want.Finish == "" {
				got.Finish = ""
			}
			if diff := cmp.Diff(c.Want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func readingOf(t *testing.T, s otel.Span) reading {
	t.Helper()
	r := reading{Kind: s.Kind}
	if !s.IsCall() {
		return r
	}

	call := readRequest(t, s.Request())
	var request struct {
		Provider string `json:"provider_type"`
	}
	if err := json.Unmarshal(s.Request(), &request); err != nil {
		t.Fatal(err)
	}
	r.Provider, r.Model = request.Provider, call.Model
	r.ID, r.Finish = call.ResponseID, call.FinishReason
	r.In, r.Out = lines(call.Input), lines(call.Output)
	if u := call.Usage; u != (calls.Usage{}) {
		var counts []string
		for _, n := range []*int64{u.Input, u.Output, u.Cached, u.CacheWrite, u.Reasoning} {
			if n == nil {
				counts = append(counts, "-")
			} else {
				counts = append(counts, fmt.Sprint(*n))
			}
		}
		r.Usage = strings.Join(counts, "/")
	}

	return r
}

// lines returns messages for people.
func lines(messages []calls.Message) (all []string) {
	for _, m := range messages {
		words := []string{m.Role + ":"}
		for _, p := range m.Parts {
			words = append(words, p.Text)
		}
		for _, c := range m.ToolCalls {
			words = append(words, c.Name+"("+c.Arguments+")")
		}
		all = append(all, strings.Join(words, " "))
	}

	return all
}

// The goldens have the Python SDK's spans. A span of another library is nobody's but its own.
func TestASpanSaysUnderWhichIDItsCallIsLogged(t *testing.T) {
	const own, other = "00000000000000ab", "00000000000000CD"
	wrapped := map[string]any{"function_input": `[{"model":"m"}]`, "response_status": "success"}
	for name, c := range map[string]struct {
		attributes map[string]any
		want       string
		scope      string
	}{
		"managed": {map[string]any{"promptlayer.request_log.managed": true}, own, ""},
		"managed, by another span": {map[string]any{
			"promptlayer.request_log.managed": "true", "promptlayer.request_log.span_id": other,
		}, strings.ToLower(other), ""},
		"wrapped by the JavaScript SDK": {wrapped, own, ""},
		"with the same words":           {wrapped, "", "some.other.library"},
		"which failed, and is not logged": {
			map[string]any{"function_input": `[{"model":"m"}]`, "response_status": "error"}, "", "",
		},
		"only a function": {map[string]any{"function_input": `["Ann"]`, "function_output": "1"}, "", ""},
		"a call": {map[string]any{
			"gen_ai.request.model": "m", "function_input": `[]`, "response_status": "success",
		}, "", ""},
	} {
		body := spanWith(c.attributes)
		body["span"].(map[string]any)["spanId"] = own
		body["scope"] = map[string]any{"name": c.scope}

		if s := otel.Read(encode(t, body)); s.LoggedAs != c.want || c.want != "" && s.Kind != dialect.Chain {
			t.Errorf("%s: logged as %q, a %s, want %q", name, s.LoggedAs, s.Kind, c.want)
		}
	}
}

func TestWhatIsNotContentBecomesTagsMetadataAndALink(t *testing.T) {
	body := spanWith(map[string]any{
		"gen_ai.operation.name": "chat", "promptlayer.metadata.user_id": "explicit", "user.id": "u1",
		"enduser.id": "u2", "session.id": "s1", "gen_ai.conversation.id": "c1", "langfuse.trace.tags": []any{"b"},
		"tag.tags": `["a","b"]`, "langsmith.span.tags": "c, a", "metadata": `{"tier":"gold","n":{"x":1}}`,
		"promptlayer.prompt.name": "greet", "promptlayer.prompt.version": "3", "promptlayer.prompt.label": "prod",
		"gen_ai.prompt.variable.who": "Ann", "gen_ai.usage.cost": 0.25, "gen_ai.response.time_to_first_chunk": 0.5,
	})
	body["resource"] = map[string]any{"attributes": map[string]any{
		"service.name": "shop", "deployment.environment.name": "prod", "promptlayer.metadata.team": "x",
	}}
	s := otel.Read(encode(t, body))

	want := map[string]string{
		"user_id": "explicit", "session_id": "c1", "tier": "gold", "n": `{"x":1}`, "service": "shop",
		"environment": "prod", "team": "x", "time_to_first_token_ms": "500",
	}
	if fmt.Sprint(s.Metadata) != fmt.Sprint(want) {
		t.Errorf("metadata %v, want %v", s.Metadata, want)
	}
	if !slices.Equal(s.Tags, []string{"a", "b", "c"}) || string(s.Price) != "0.25" {
		t.Errorf("tags %v, price %s", s.Tags, s.Price)
	}
	p := s.Prompt
	if p.Name != "greet" || p.Version != 3 || p.Label != "" || string(p.InputVariables) != `{"who":"Ann"}` {
		t.Errorf("prompt %+v", p)
	}
	readRequest(t, s.Request())
}

// The metadata of an app may name the user and the session in other ways.
func TestAMapOfMetadataNamesUserAndSession(t *testing.T) {
	s := otel.Read(encode(t, spanWith(map[string]any{
		"gen_ai.operation.name": "chat", "metadata": `{"userId":"u1","conversationId":"c1","thread_id":"t1"}`,
	})))
	if s.Metadata["user_id"] != "u1" || s.Metadata["session_id"] != "t1" || s.Metadata["conversationId"] != "c1" {
		t.Errorf("metadata %v", s.Metadata)
	}
}

// Several instrumentations may trace a call, of which LangChain's has the id only in its result.
func TestTheIDOfAResponseIsTakenFromItsOutput(t *testing.T) {
	for output, want := range map[string]string{
		`{"id":"c-1","choices":[]}`: "c-1",
		`{"generations":[[{"message":{"kwargs":{"id":"run-2","response_metadata":{"id":"c-2"}}}}]]}`: "c-2",
		`{"generations":[[{"message":{"kwargs":{"id":"msg_3","response_metadata":{}}}}]]}`:           "msg_3",
		`{"generations":[[{"message":{"kwargs":{"id":"run-4"}}}]]}`:                                  "",
	} {
		span := otel.Read(encode(t, spanWith(map[string]any{
			"openinference.span.kind": "LLM", "llm.model_name": "m", "output.value": output,
		})))
		var request struct {
			Response struct{ ID string } `json:"request_response"`
		}
		if err := json.Unmarshal(span.Request(), &request); err != nil || request.Response.ID != want {
			t.Errorf("%s has the id %q, want %q (%v)", output, request.Response.ID, want, err)
		}
	}
}

func TestASpanWhoseResponseHoldsAnErrorFailed(t *testing.T) {
	for output, want := range map[string]calls.Failure{
		`{"error":{"message":"Overloaded","type":"overloaded_error"}}`: {
			Type: "overloaded_error", Message: "Overloaded",
		},
		`{"promptFeedback":{"blockReason":"SAFETY"}}`: {
			Type: "SAFETY", Message: "The prompt was blocked: SAFETY",
		},
		`{"choices":[{"error":{"message":"Overloaded","code":502}}]}`: {Type: "502", Message: "Overloaded"},
		`{"error":"of a tool"}`: {},
	} {
		call := calls.Read(encode(t, spanWith(map[string]any{
			"openinference.span.kind": "LLM", "llm.model_name": "m", "output.value": output,
		})))
		failed := want != calls.Failure{}
		if failed != (call.Failure != nil && *call.Failure == want) || failed != (call.Status == "ERROR") {
			t.Errorf("%s has the status %s and the failure %+v, want %+v", output, call.Status, call.Failure, want)
		}
	}
}

// Each library has its own names for what an evaluation says, and for who judged.
func TestEvaluationsBecomeScores(t *testing.T) {
	evaluated := func(attributes map[string]any) json.RawMessage {
		return encode(t, map[string]any{
			"resource": map[string]any{}, "scope": map[string]any{}, "index": 0,
			"log": map[string]any{"eventName": "gen_ai.evaluation.result", "attributes": attributes},
		})
	}
	body := spanWith(map[string]any{
		"gen_ai.operation.name":                   "chat",
		"annotations.0.annotation.name":           "toxic",
		"annotations.0.annotation.score":          0.004,
		"annotations.0.annotation.label":          "harmless",
		"annotations.0.annotation.explanation":    "It is polite.",
		"annotations.1.annotation.name":           "tone",
		"annotations.1.annotation.label":          "rude",
		"annotations.1.annotation.identifier":     "ann",
		"annotations.2.annotation.name":           "long",
		"annotations.2.annotation.label":          strings.Repeat("x", wire.ScoreCategoryRunesMax+1),
		"annotations.3.annotation.name":           "huge",
		"annotations.3.annotation.score":          2e9,
		"annotations.4.annotation.name":           "unsaid",
		"annotations.4.annotation.explanation":    "I cannot tell.",
		"annotations.1.annotation.annotator_kind": "HUMAN",
		"annotations.0.annotation.annotator_kind": "LLM",
		"evaluations.0.evaluation.name":           "tone",
		"evaluations.0.evaluation.label":          "neutral",
		"evaluations.0.evaluation.identifier":     "judge-v2",
		"evaluations.0.evaluation.annotator_kind": "CODE",
		"braintrust.scores":                       `{"Levenshtein":0.75,"none":null}`,
		"trace.annotations.0.annotation.name":     "of the trace",
		"trace.annotations.0.annotation.score":    1,
	})
	s := otel.Read(otel.Join(encode(t, body), []json.RawMessage{
		evaluated(map[string]any{ // as Grafana's SDKs write it
			"gen_ai.evaluation.name": "helpful", "gen_ai.evaluation.score.value": 4.5,
			"gen_ai.evaluation.score.label": "yes", "gen_ai.evaluation.explanation": "It answers.",
			"gen_ai.evaluation.evaluator.id": "helpfulness", "gen_ai.evaluation.evaluator.version": "2",
			"gen_ai.evaluation.evaluator.type": "llm_judge",
		}),
		evaluated(map[string]any{ // Pydantic Evals, and an older one
			"gen_ai.evaluation.name": "Correct", "gen_ai.evaluation.score.label": "good",
			"gen_ai.evaluation.evaluator.source": `{"name":"LLMJudge","arguments":null}`,
		}),
		evaluated(map[string]any{
			"gen_ai.evaluation.name": "Correct", "gen_ai.evaluation.score.value": true,
			"logfire.evaluation.evaluator_source":  `{"name":"Equals"}`,
			"logfire.evaluation.evaluator_version": "v3",
		}),
		evaluated(map[string]any{"gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.label": "first"}),
		evaluated(map[string]any{"gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.label": "last"}),
		evaluated(map[string]any{"gen_ai.evaluation.name": "failed", "error.type": "timeout"}),
	}))

	want := []string{
		`{"name":"Correct","value":true,"author":"Equals","author_version":"v3"}`,
		`{"name":"Correct","value":"good","author":"LLMJudge"}`,
		`{"name":"Levenshtein","value":0.75}`,
		`{"name":"helpful","value":4.5,"author":"helpfulness","author_version":"2","source":"model",` +
			`"reason":"It answers."}`,
		`{"name":"tone","value":"last"}`,
		`{"name":"tone","value":"rude","author":"ann","source":"human"}`,
		`{"name":"tone","value":"neutral","author":"judge-v2","source":"code"}`,
		`{"name":"toxic","value":0.004,"source":"model","reason":"It is polite."}`,
	}
	if got := string(encode(t, s.Scores)); got != "["+strings.Join(want, ",")+"]" {
		t.Errorf("the scores are %s", got)
	}
	metadata := map[string]string{
		"evaluation.helpful.label": "yes", "evaluation.toxic.label": "harmless", "evaluation.huge": "2000000000",
		"evaluation.unsaid.explanation": "I cannot tell.",
		"evaluation.long.label":         strings.Repeat("x", wire.ScoreCategoryRunesMax+1),
	}
	if fmt.Sprint(s.Metadata) != fmt.Sprint(metadata) {
		t.Errorf("metadata %v, want %v", s.Metadata, metadata)
	}
}
