//go:build linux

package releases

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
)

// began is when the calls of a fixture were made.
var began = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// Where a fixture's calls are.
const (
	trace, agentSpan, chatSpan = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174", "00f067aa0ba902b7"

	greeted   = 1 // a call with everything that a call can have
	failed    = 2
	cluttered = 3 // a large record, to which more came later
	forgotten = 4 // a call that was deleted
	scored    = 5 // a call that has not come, only its score
	plain     = 100

	owner, password = "ann@example.com", "correct horse battery"
)

// id returns the id of a call.
func id(n int) string {
	at := began.Add(time.Duration(n) * time.Second).UnixMilli()
	return fmt.Sprintf("%08x-%04x-7000-8000-%012x", at>>16, at&0xffff, n)
}

// sender sends events to a server as a sidecar does.
type sender struct {
	server *harness.Node
	events int
	lines  []byte
}

// add adds an event of a call.
func (s *sender) add(kind wire.Kind, call int, body string) {
	s.events++
	event := wire.Event{
		ID:         id(1_000_000 + s.events),
		Kind:       kind,
		RequestID:  id(call),
		AcceptedAt: began.Add(time.Duration(s.events) * time.Second),
		Sidecar:    "pod-1",
		Body:       json.RawMessage(body),
	}
	s.lines = event.AppendLine(s.lines)
}

// send sends what was added.
func (s *sender) send() {
	s.server.T.Helper()
	r := s.server.Call("POST", "/sync/events", s.lines, "X-API-KEY", harness.AdminKey)
	if r.Status != 200 || fmt.Sprint(r.JSON["refused"]) != "[]" {
		s.server.T.Fatalf("events: %d %s", r.Status, r.Body)
	}
	s.lines = nil
}

// call returns the body of a call.
func call(n int, question, answer, more string) string {
	at := began.Add(time.Duration(n) * time.Second).Unix()
	return fmt.Sprintf(`{"function_name":"openai.ChatCompletion.create","provider_type":"openai","kwargs":{"model":`+
		`"gpt-4o-mini","messages":[{"role":"user","content":%q}]},`+
		`"request_response":{"model":"gpt-4o-mini-2024-07-18",`+
		`"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%q}}],"usage":`+
		`{"prompt_tokens":12,"completion_tokens":%d,"total_tokens":%d}},"request_start_time":%d.25,`+
		`"request_end_time":%d.75%s}`, question, answer, n%50, 12+n%50, at, at, more)
}

// answers fails unless a server took a write.
func answers(server *harness.Node, method, path string, body any) harness.Reply {
	server.T.Helper()
	r := server.Call(method, path, body, "X-API-KEY", harness.AdminKey)
	if r.Status >= 300 {
		server.T.Fatalf("%s %s: %d %s", method, path, r.Status, r.Body)
	}
	return r
}

// fill gives a server everything that it can hold.
func fill(t *testing.T, server *harness.Node) {
	t.Helper()
	b := newBrowser(t, server)
	b.sends("/sign-up", url.Values{"code": {harness.SetupCode(server)}, "email": {owner}, "password": {password}})
	invite := harness.LinkPath(t, harness.PeopleSay(t, server, "invite", "--role", "reviewer"))
	_, code, _ := strings.Cut(invite, "code=")
	newBrowser(t, server).
		sends("/sign-up", url.Values{"code": {code}, "email": {"rob@example.com"}, "password": {password}})
	harness.Run(t, 0, "projects", "create", "shop", "--data", server.Data)

	answers(server, "POST", "/rest/prompt-templates", map[string]any{
		"prompt_template": map[string]any{"prompt_name": "tone"},
		"prompt_version": map[string]any{
			"prompt_template": map[string]any{"type": "completion", "content": "Be brief."},
		},
	})
	answers(server, "POST", "/rest/prompt-templates", harness.Greeting("@@@tone@@@ Greet {name}.", "prod"))
	answers(server, "POST", "/rest/prompt-templates", harness.Greeting("@@@tone@@@ Greet {name} by name.", "next"))
	answers(server, "PUT", "/api/public/v2/score-definitions/tone",
		`{"kind":"category","categories":["polite","curt","rude"]}`)
	answers(server, "PUT", "/api/public/v2/score-definitions/faithful",
		`{"kind":"number","min":0,"max":1,"better":"higher"}`)
	token := csrf.FindStringSubmatch(b.page("/scores"))
	b.sends("/queues", url.Values{
		"csrf": token[1:], "name": {"greetings"}, "filter": {"tag:weather"},
		"score": {"faithful", "tone"}, "reviewers": {"2"},
	})

	log := sender{server: server}
	log.add(wire.KindRequest, greeted, call(greeted, "Is it raining in Boston?", "A purple elephant says: no rain.",
		`,"tags":["weather","prod"],"metadata":{"plan":"gold"},"session_id":"s-1","user_id":"ann","environment":`+
			`"production","time_to_first_token_ms":120,"group_id":"g-1","prompt_id":"team/greet","prompt_version":1,`+
			`"prompt_input_variables":{"name":"Ann"},"an_unknown_field":{"kept":[1,2.50,1e400]}`))
	log.add(wire.KindMetadata, greeted, `{"metadata":{"region":"eu","plan":"silver"}}`)
	log.add(wire.KindScore, greeted, `{"score":80}`)
	log.add(wire.KindScore, greeted, `{"name":"faithful","value":0.83,"author":"judge","author_version":"2",`+
		`"source":"model","reason":"All but the date is in the sources."}`)
	log.add(wire.KindScore, greeted, `{"name":"solved","value":true,"author":"a test","source":"code"}`)
	log.add(wire.KindScore, greeted, `{"name":"tone","value":"polite","author":"ann@example.com","source":"human"}`)
	log.add(wire.KindRequest, failed, call(failed, "And in Paris?", "",
		`,"status":"ERROR","error_type":"Timeout","error_message":"no answer in 30 s","session_id":"s-1"`))
	log.add(wire.KindPrompt, failed,
		`{"prompt_name":"team/greet","label":"next","prompt_input_variables":{"name":"Bo"}}`)
	log.add(wire.KindGroup, failed, `{"group_id":"g-2"}`)
	log.add(wire.KindRequest, cluttered, call(cluttered, "Sum it up.", "Done.", ""))
	log.add(wire.KindRequest, forgotten, call(forgotten, "Forget me.", "Forgotten.", `,"user_id":"gone"`))
	log.add(wire.KindScore, scored, `{"score":5}`)
	log.send()

	for step := range 100 { // its state is large from some of them on
		log.add(wire.KindMetadata, cluttered,
			fmt.Sprintf(`{"metadata":{"step":"%d","key-%d":"%0400d"}}`, step, step, step))
	}
	log.send()
	log.add(wire.KindScore, cluttered, `{"score":60}`)
	log.send()
	for n := range 40 {
		log.add(wire.KindRequest, plain+n, call(plain+n, fmt.Sprint("What is ", n, " squared?"), fmt.Sprint(n*n),
			fmt.Sprintf(`,"tags":["sums"],"metadata":{"digit":"%d"}`, n%10)))
	}
	log.send()

	answers(server, "POST", "/v1/traces", otlp)
	answers(server, "POST", "/rest/track-score", fmt.Sprintf(`{"trace_id":%q,"score":70}`, trace))
	answers(server, "POST", "/rest/track-score",
		fmt.Sprintf(`{"trace_id":%q,"span_id":%q,"name":"useful","value":false}`, trace, agentSpan))
	answers(server, "POST", "/rest/track-score", `{"session_id":"s-1","name":"csat","value":4.5}`)
	answers(server, "DELETE", "/api/public/v2/requests/"+id(forgotten), nil)
}

// pack sends so many small calls that rows are packed into blocks, with their words and sums.
func pack(server *harness.Node) {
	server.T.Helper()
	log := sender{server: server, events: 10_000}
	for n := range 1600 {
		at := began.Add(-time.Duration(n) * time.Minute).Unix()
		prompt := "bulk"
		if n%400 == 399 {
			prompt = "a rare word"
		}
		log.add(wire.KindRequest, 10_000+n, fmt.Sprintf(`{"function_name":"f","kwargs":{"prompt":%q},`+
			`"request_response":{},"request_start_time":%d,"request_end_time":%d,"tags":["bulk"]}`, prompt, at, at+1))
		if n == 900 {
			log.send()
		}
	}
	log.send()
	log.add(wire.KindScore, 10_000+1500, `{"score":55}`) // of a row in a block
	log.send()
}

// otlp is the trace of an agent with one model call.
var otlp = json.RawMessage(fmt.Sprintf(`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name",`+
	`"value":{"stringValue":"weather-bot"}}]},"scopeSpans":[{"spans":[`+
	`{"traceId":%[1]q,"spanId":%[2]q,"name":"invoke_agent","startTimeUnixNano":"%[4]d","endTimeUnixNano":"%[5]d",`+
	`"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"invoke_agent"}}]},`+
	`{"traceId":%[1]q,"spanId":%[3]q,"parentSpanId":%[2]q,"name":"chat","startTimeUnixNano":"%[4]d",`+
	`"endTimeUnixNano":"%[5]d","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},`+
	`{"key":"gen_ai.provider.name","value":{"stringValue":"openai"}},`+
	`{"key":"gen_ai.request.model","value":{"stringValue":"gpt-4o-mini"}},`+
	`{"key":"gen_ai.usage.input_tokens","value":{"intValue":"20"}}]}]}]}]}`,
	trace, agentSpan, chatSpan, began.UnixNano(), began.Add(2*time.Second).UnixNano()))

// browser is a person's browser, without its scripts.
type browser struct {
	t      *testing.T
	server *harness.Node
	client *http.Client
}

func newBrowser(t *testing.T, server *harness.Node) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t, server, &http.Client{Jar: jar}}
}

// sends fills in a form and sends it.
func (b *browser) sends(path string, form url.Values) {
	b.t.Helper()
	res, err := b.client.PostForm("http://"+b.server.Addr+path, form)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 { // of the page that follows it
		text, _ := io.ReadAll(res.Body)
		b.t.Fatalf("%s: %s %.500s", path, res.Status, text)
	}
}

// csrf is what proves that a form came from the dashboard.
var csrf = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// page returns a page.
func (b *browser) page(path string) string {
	b.t.Helper()
	res, err := b.client.Get("http://" + b.server.Addr + path)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 {
		b.t.Fatalf("%s: %s (%v) %.500s", path, res.Status, err, page)
	}
	return string(page)
}

// shows fails unless a page has all texts.
func (b *browser) shows(path string, texts ...string) {
	b.t.Helper()
	page := b.page(path)
	for _, text := range texts {
		if !strings.Contains(page, text) {
			b.t.Errorf("%s is without %q", path, text)
		}
	}
}
