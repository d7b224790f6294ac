//go:build linux

package releases

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
)

// unknown is the name of a key that the server does not know.
const unknown = "unknown"

// talk is a sidecar of one version that speaks to a server, of another or as it is recorded.
type talk struct {
	*testing.T
	program string // of the sidecar
	between *between
	sidecar *harness.Node
	sent    map[string]int // events by the ids of their records, without those that are refused
	waiting string         // the record of an event of newKind
}

// startOf starts a server or a sidecar of some version.
func startOf(t *testing.T, program, data, address, role string, args ...string) *harness.Node {
	t.Helper()
	n := harness.Begin(t, program, nil, data, address, append([]string{role}, args...)...)
	if !n.Takes() {
		t.Fatalf("the %s does not start:\n%s", role, n.Logged())
	}
	return n
}

// keysAt makes keys at a server, one of each right and one of an app, and returns their secrets by
// their scopes.
func keysAt(t *testing.T, program string, server *harness.Node) map[string]string {
	t.Helper()
	keys := map[string]string{"full": harness.AdminKey, unknown: unknownKey}
	for _, scope := range append([]string{"app"}, wire.ScopeNames...) {
		made := says(t, program, "keys", "create", "--scope", scope, "--data", server.Data, "-o", "json")
		keys[scope] = harness.Decode(made)["key"].(string)
	}
	return keys
}

// says runs a command of some version.
func says(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// begin starts the sidecar.
func (k *talk) begin(data string) {
	k.Helper()
	k.sidecar = startOf(k.T, k.program, data, "127.0.0.1:0", "sidecar",
		"--name", "pod-1", "--upstream", k.between.URL, "--drain", "10ms")
}

// converse has apps call the sidecar in every way, first while the server is away. At its end one
// event waits, of newKind, one is dead and one held.
func (k *talk) converse(data string) {
	k.Helper()
	k.operate("POST", "/rest/prompt-templates", harness.Greeting("Hello {name}.", "prod"))
	k.between.away.Store(true)
	k.begin(data)
	k.writes()
	k.calls("score", "/rest/track-request", harness.Chat(), 200) // it may not, as the server will say
	k.calls(unknown, "/rest/track-request", harness.Chat(), 200)
	if n := k.sidecar.Waiting(); n != 12 {
		k.Fatalf("%d events wait for a server that is away", n)
	}
	k.between.away.Store(false)
	k.delivered()
	k.sidecar.Emptied()

	for name := range k.between.keys {
		k.known(name)
	}
	k.fetches("fetch", "Hello Ann.")
	k.operate("POST", "/rest/prompt-templates", harness.Greeting("Welcome {name}.", "prod"))
	k.fetches("app", "Welcome Ann.")
	k.calls("publish", "/rest/prompt-templates", harness.Greeting("Hey {name}.", "next"), 201)
	for scope, path := range map[string]string{
		"read":    "/prompt-templates",
		"fetch":   "/prompt-templates/team%2Fgreet",
		"manage":  "/sync/fleet",
		"publish": "/prompt-templates/team%2Fgreet/labels",
	} {
		if r := k.sidecar.Call("GET", path, nil, "X-API-KEY", k.between.keys[scope]); r.Status != 200 {
			k.Errorf("%s: %d %s", path, r.Status, r.Body)
		}
	}
	k.calls("score", "/rest/track-request", harness.Chat(), 403)
	k.calls("log", "/rest/track-score", harness.Score(wire.NewID(), 1), 403)
	k.calls("read", "/prompt-templates/team%2Fgreet", map[string]any{"label": "none"}, 404)

	k.waiting = k.calls("app", "/rest/track-request", harness.Chat(), 200)
	event := wire.Event{
		ID: wire.NewID(), Kind: newKind, RequestID: k.waiting, AcceptedAt: time.Now(), Sidecar: "pod-0",
		Body: json.RawMessage(`{"metadata":{"new":"yes"}}`),
	}
	r := k.sidecar.Call("POST", "/sync/events", event.AppendLine(nil), "X-API-KEY", k.between.keys["app"])
	if r.Status != 200 || fmt.Sprint(r.JSON["accepted"]) != "1" {
		k.Errorf("a sidecar takes no event of a kind that it does not know: %d %s", r.Status, r.Body)
	}
	k.writes()
	k.delivered()
}

// writes logs calls in every way.
func (k *talk) writes() {
	k.Helper()
	call := k.calls("app", "/rest/track-request", harness.With(harness.Chat(), "prompt_id", "team/greet"), 200)
	k.calls("score", "/rest/track-score", harness.Score(call, 70), 200)
	k.calls("app", "/rest/track-metadata",
		map[string]any{"request_id": call, "metadata": map[string]string{"plan": "gold"}}, 200)
	k.calls("log", "/rest/track-prompt", map[string]any{
		"request_id": call, "prompt_name": "team/greet", "label": "prod",
		"prompt_input_variables": map[string]string{"name": "Ann"},
	}, 200)
	made := k.sidecar.Call("POST", "/rest/create-group", map[string]any{}, "X-API-KEY", k.between.keys["app"])
	k.calls("app", "/rest/track-group",
		map[string]any{"request_id": call, "group_id": made.JSON["id"]}, 200)
	k.calls("full", "/log-request", json.RawMessage(blueprint), 201)
	k.calls("log", "/v1/traces", otlp, 200)
	k.calls("log", "/v1/logs", otlpLog, 200)
}

// blueprint is a call as blueprints, with its score.
const blueprint = `{"provider":"openai","model":"gpt-4o","score":90,"request_start_time":"2026-01-02T03:04:05Z",` +
	`"request_end_time":"2026-01-02T03:04:06Z","input":{"type":"chat","messages":[{"role":"user","content":[` +
	`{"type":"text","text":"hi"}]}]},"output":{"type":"chat","messages":[]}}`

// otlpLog is a message of the model call in otlp.
var otlpLog = json.RawMessage(fmt.Sprintf(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":%q,"spanId":%q,`+
	`"eventName":"gen_ai.user.message","timeUnixNano":"%d","body":{"kvlistValue":{"values":[{"key":"content",`+
	`"value":{"stringValue":"Will it rain?"}}]}}}]}]}]}`, trace, chatSpan, began.UnixNano()))

// calls posts to the sidecar with the key of a name, and returns the id of the record. It expects
// a status.
func (k *talk) calls(key, path string, body any, status int) (record string) {
	k.Helper()
	r := k.sidecar.Call("POST", path, body, "X-API-KEY", k.between.keys[key])
	if r.Status != status {
		k.Fatalf("%s with the key %s: %d %s", path, key, r.Status, r.Body)
	}
	record, _ = r.JSON["request_id"].(string)
	if refused := key == unknown || key == "score" && path == "/rest/track-request"; record != "" && !refused {
		k.sent[record]++
	}
	if path == "/log-request" {
		k.sent[record]++ // its score
	}
	return record
}

// operate changes something at the server.
func (k *talk) operate(method, path string, body any) {
	k.Helper()
	n := harness.Node{T: k.T, Addr: k.between.Listener.Addr().String()}
	r := n.Call(method, path, body, "X-API-KEY", harness.AdminKey)
	if r.Status >= 300 {
		k.Fatalf("%s %s: %d %s", method, path, r.Status, r.Body)
	}
}

// fetches waits until the sidecar serves a text under a label.
func (k *talk) fetches(key, text string) {
	k.Helper()
	var last harness.Reply
	k.sidecar.Eventually(func() bool {
		last = k.sidecar.Call("POST", "/prompt-templates/team%2Fgreet",
			map[string]any{"label": "prod", "input_variables": map[string]string{"name": "Ann"}},
			"X-API-KEY", k.between.keys[key])
		return last.Status == 200 && strings.Contains(string(last.Body), text)
	}, func() string { return fmt.Sprintf("%q is not served: %d %s", text, last.Status, last.Body) })
}

// known waits until the sidecar has heard from the server what the key of a name may.
func (k *talk) known(name string) {
	k.Helper()
	var last harness.Reply
	k.sidecar.Eventually(func() bool {
		const path = "/prompt-templates/team%2Fgreet?label=prod"
		last = k.sidecar.Call("GET", path, nil, "X-API-KEY", k.between.keys[name])
		return last.Status != 503
	}, func() string { return fmt.Sprintf("the key %s: %d %s", name, last.Status, last.Body) })
}

// delivered waits until the server has every event, and no event twice.
func (k *talk) delivered() {
	k.Helper()
	var missing string
	k.sidecar.Eventually(func() bool {
		missing = ""
		for id, events := range k.sent {
			if n := k.between.taken(id); n != events {
				missing += fmt.Sprintf("\n%s has %d events of %d", id, n, events)
			}
		}
		return missing == ""
	}, func() string { return "not all arrives:" + missing })
}

// setAside fails unless one event is dead, and one held. The first that waits, if any, is the one of a
// kind that the server does not know.
func (k *talk) setAside(waits bool) {
	k.Helper()
	var lanes struct {
		Items []struct{ Lane, Kind, Reason string }
	}
	listed := says(k.T, k.program, "dead", "list", "-o", "json", "--data", k.sidecar.Data)
	if err := json.Unmarshal([]byte(listed), &lanes); err != nil {
		k.Fatal(err)
	}

	found := map[string]string{}
	for _, l := range lanes.Items {
		found[l.Lane] += l.Kind + ": " + l.Reason
	}
	isForbidden := strings.Contains(found["dead"], "may not log")
	if len(lanes.Items) != 2 || !isForbidden || !strings.HasPrefix(found["held"], "request: ") {
		k.Errorf("aside are %s", listed)
	}

	status := says(k.T, k.program, "spool", "status", "-o", "json", "--data", k.sidecar.Data)
	left := says(k.T, k.program, "spool", "export", "--data", k.sidecar.Data)
	if first, _, _ := strings.Cut(left, "\n"); waits != strings.Contains(first, newKind) || waits == (left == "") {
		k.Errorf("what waits is %q\n%s", first, status)
	}
}
