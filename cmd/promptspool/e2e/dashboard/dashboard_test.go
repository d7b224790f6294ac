//go:build linux

package dashboard

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/metrics/partstest"
)

// founded starts a server whose first owner has just signed up, and opens a window with her session.
func founded(t *testing.T) (*harness.Node, *browser) {
	t.Helper()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")

	return server, openSignedIn(t, server, signUp(t, server))
}

// The first five minutes: from the link that the server prints to calls on the overview, by what is
// copied from the page of a new key.
func TestAFirstCallIsLoggedByWhatAPageOffers(t *testing.T) {
	partstest.Need(t, "python3", "node", "curl")
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	b := openBrowser(t, server)
	b.visit("/")
	b.holds("a fresh server leads to sign-up", `location.pathname === "/sign-up"`)
	b.visit("/sign-up?code=" + harness.SetupCode(server)) // the link that the server printed
	b.fill("[name=email]", "ann@example.com")
	b.fill("[name=password]", "correct horse battery")
	b.press("main .primary")
	b.allowClipboard()
	b.shows("main", "Log your first call", "ps_", "Python", "JavaScript", "curl", "OpenTelemetry",
		"Waiting for your first call")
	b.visit("/") // the key is still there
	b.screenshots("first-key")

	node := filepath.Join(t.TempDir(), "first.mjs")
	for id, program := range map[string][]string{
		"curl":       {"sh", "-c"},
		"python":     {"python3", "-c"},
		"javascript": {"node", node},
	} {
		b.do("choose", chromedp.Click("[for=way-"+id+"]"))
		b.do("copy", chromedp.Click("[data-copy=first-"+id+"]"))
		text := b.copied()
		if id == "javascript" {
			if err := os.WriteFile(node, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			text = ""
		}
		out, err := exec.Command(program[0], append(program[1:], text)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), `"success":true`) {
			t.Errorf("%s: %v %s", id, err, out)
		}
	}

	// The page has not been loaded again.
	b.do("choose", chromedp.Click("[for=way-otel]"))
	b.shows("#first-otel", "OTEL_EXPORTER_OTLP_ENDPOINT=http://", "X-API-KEY=ps_")
	b.waitsFor(".waiting", "Open your first call")
	b.press(".waiting a")
	b.shows("main", "Say hello.")
	b.visit("/requests")
	b.shows("main", "3 requests")

	// Another key comes with the same examples.
	b.visit("/keys")
	b.do("open the form", chromedp.Click(".new > summary"))
	b.fill("[name=name]", "second")
	b.press(".new-key .primary")
	b.shows("main", "Your new key", "Log a first call with it", "X-API-KEY")
}

func TestRequestsAreFoundByAFilterThatStandsInTheAddress(t *testing.T) {
	server, b := founded(t)
	b.visit("/")
	b.shows("main", "Log your first call", server.Addr[strings.Index(server.Addr, ":"):],
		"Waiting for your first call")
	for _, tag := range []string{"demo", "other"} {
		server.Track("/rest/track-request", harness.AdminKey, map[string]any{
			"function_name":      "openai.ChatCompletion.create",
			"kwargs":             map[string]any{"model": "gpt-" + tag, "messages": []any{}},
			"request_response":   map[string]any{},
			"request_start_time": 1, "request_end_time": 2.5, "tags": []string{tag},
		})
	}

	b.visit("/requests?col=model&col=latency")
	b.shows("main", "2 requests", "gpt-demo", "gpt-other", "1.50 s")
	b.fill("#line", `Tag:"demo" status:(success or warning or error)`)
	b.press(".line button")
	b.shows("main", "1 request,", "gpt-demo", "tag:demo")
	b.holds("the line is in the address",
		`new URL(location).searchParams.get("filter") === 'Tag:"demo" status:(success or warning or error)'`)
	b.screenshots("requests")
	if strings.Contains(b.text("table"), "gpt-other") {
		t.Error("the filter finds what it should not")
	}

	b.do("edit the chip", chromedp.Click(".chips .edit"))
	b.holds("its condition is selected", `document.activeElement.id === "line" &&
		document.getSelection().toString() === "tag:demo"`)
	b.press(".chips a:last-child")
	b.shows("main", "2 requests")
	b.filteredBy("status:(success or warning or error)")
	b.holds("one condition stands in the line only", `document.querySelector(".chips") === null`)
	b.do("unfold", chromedp.Click(".times summary"))
	b.press(".times a[href*=today]")
	b.shows(".chips", "since:today")
	b.shows("main", "2 requests")
	b.visit("/requests?filter=status:success+tag:demo")
	b.holds("a line that is seen whole has no chips",
		`getComputedStyle(document.querySelector(".chips")).display === "none"`)

	// A mistake is shown at its place.
	b.visit("/requests?filter=tag:demo+latency:fast")
	b.shows(".fault mark", "fast")
	b.shows(".fault", "tag:demo latency:fast", "latency takes a time with its unit")
	b.screenshots("requests-fault")

	b.visit("/requests?col=model")
	b.do("follow", chromedp.Click("[data-live]"))
	server.Track("/rest/track-request", harness.AdminKey, map[string]any{
		"function_name":      "openai.ChatCompletion.create",
		"kwargs":             map[string]any{"model": "gpt-later", "messages": []any{}},
		"request_response":   map[string]any{},
		"request_start_time": 1, "request_end_time": 2,
	})
	b.waitsFor("#list", "gpt-later")
	b.shows("#count", "3 requests, newest first")
}

func TestARequestReadsAsAConversationAndIsScored(t *testing.T) {
	server, b := founded(t)
	hostile := `<script>document.title = "owned"</script><img src=x onerror=alert(1)>`
	id := server.Track("/rest/track-request", harness.AdminKey, map[string]any{
		"function_name": "openai.ChatCompletion.create",
		"kwargs": map[string]any{"model": "gpt-4o-mini", "messages": []any{
			map[string]any{"role": "system", "content": "You answer in one word. " + hostile},
			map[string]any{"role": "user", "content": "What is the weather in Oslo?"},
			map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"id": "call_1", "type": "function",
				"function": map[string]any{"name": "weather", "arguments": `{"city":"Oslo"}`}}}},
			map[string]any{"role": "tool", "tool_call_id": "call_1", "content": `{"sky":"clear"}`},
			map[string]any{"role": "user", "content": strings.Repeat("long ", 200_000)},
		}},
		"request_response": map[string]any{
			"model": "gpt-4o-mini",
			"choices": []any{map[string]any{
				"index":         0,
				"finish_reason": "stop",
				"message":       map[string]any{"role": "assistant", "content": "Clear."},
			}},
			"usage": map[string]any{"prompt_tokens": 1200, "completion_tokens": 3},
		},
		"request_start_time": 1, "request_end_time": 2.5,
		"tags": []string{"demo"}, "metadata": map[string]string{"user_id": "ann"},
		"prompt_id": "weather", "prompt_input_variables": map[string]string{"city": "Oslo"},
	})

	b.visit("/requests/" + id)
	b.shows(".talk", "system", hostile, "Calls weather", `"city": "Oslo"`, "answers call_1", `"sky": "clear"`,
		"Show all 977 KiB, 1 line", "response", "Clear.")
	b.shows(".facts", "1.50 s", "1,200", "stop", "ann", "demo")
	b.shows("mark", "Oslo")

	b.do("stay", chromedp.Evaluate[chromedp.Void](`window.stays = true`))
	b.fill(".facts [name=name]", "taste")
	b.key("\t")
	b.do("leave the field", chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`))
	b.strikes("s")
	b.key("87\r")
	b.waitsFor("#scores", "taste\n87")
	b.holds("the next score can be typed", `window.stays && document.activeElement.name === "score" &&
		document.activeElement.value === "" &&
		document.querySelector("#said").textContent === "The score is set."`)
	b.holds("the name stays", `document.querySelector("#scores [name=name]").value === "taste"`)
	b.holds("names are offered",
		`[...document.querySelectorAll("#score-names option")].some((o) => o.value === "taste")`)
	b.do("say no", chromedp.Evaluate[chromedp.Void](`window.confirm = (question) => { window.asked = question; }`))
	b.fill(".facts [name=name]", "tast")
	b.key("\r")
	b.fill(".facts [name=score]", "9")
	b.key("\r")
	if err := b.poll(`window.asked?.includes("tast yet. Existing: taste.")`); err != nil {
		t.Errorf("a name that is not complete is not asked about: %v", err)
	}
	b.fill(".facts [name=name]", "taste")
	b.fill(".facts [name=score]", "50")
	b.key("\r")
	b.waitsFor("#scores", "taste\n50")
	b.screenshots("request")
	if record := server.Record(id, harness.Events(3)); record.Scores[0].Number != 50 ||
		record.Scores[0].Name != "taste" || !strings.Contains(record.Scores[0].Author, "@") {
		t.Errorf("scores are %+v", record.Scores)
	}

	// An older request under the same id takes the record over, and the page says that there is
	// a newer one.
	older := wire.Event{
		ID:         wire.NewID(),
		Kind:       wire.KindRequest,
		RequestID:  id,
		AcceptedAt: time.Now().Add(-time.Hour),
		Sidecar:    "pod-7",
		Body: json.RawMessage(`{"function_name":"f","kwargs":{"model":"gpt-4o",` +
			`"messages":[{"role":"user","content":"Is it raining in Bergen?"}]},"request_response":` +
			`{"choices":[{"index":0,"message":{"role":"assistant","content":"Always."}}]}}`),
	}
	r := server.Call("POST", "/sync/events", older.AppendLine(nil), "X-API-KEY", harness.AdminKey)
	if r.Status != http.StatusOK {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	b.visit("/requests/" + id)
	b.shows("main > .notice", "Another request with different content arrived under this ID")
	b.shows(".talk", "Is it raining in Bergen?", "Always.")
	b.screenshots("conflict")
}

func TestTheOverviewCountsAndLeadsToTheRequestsBehind(t *testing.T) {
	server, b := founded(t)
	for n := range 40 {
		status := "SUCCESS"
		if n%10 == 0 {
			status = "ERROR"
		}
		id := server.Track("/rest/track-request", harness.AdminKey, map[string]any{
			"function_name": "openai.ChatCompletion.create",
			"kwargs":        map[string]any{"messages": []any{}},
			"status":        status,
			"request_response": map[string]any{
				"model": []string{"gpt-4o-mini", "gpt-4o"}[n%2],
				"usage": map[string]any{"prompt_tokens": 100 + n, "completion_tokens": 20},
			},
			"request_start_time": 1,
			"request_end_time":   1.2 + float64(n)/20,
			"tags":               []string{"demo"},
			"metadata":           map[string]string{"user_id": []string{"ann", "bob", "cat"}[n%3]},
		})
		server.Track("/rest/track-score", harness.AdminKey, map[string]any{"request_id": id, "score": 50 + n})
	}
	b.visit("/?filter=&bucket=second")
	b.shows(".tiles", "40", "10.0%")
	b.shows("main", "69.5", "40 scores")
	b.shows(".groups", "gpt-4o-mini")
	b.press(".groups tr[data-href] a")
	b.shows("main", "20 requests")
	b.filteredBy("model:gpt-4o")
	b.press("tbody tr:nth-child(3) a")
	b.holds("the tab says what it shows", `document.title === "succeeded · gpt-4o · promptspool"`)

	// A status is found in any case.
	b.visit("/requests?filter=status:error")
	b.shows("main", "4 requests")
	for _, page := range []string{"/", "/requests"} {
		b.visit(page + "?filter=model:gpt4o")
		b.shows(".empty", "No requests match these filters. Clear filters")
		b.screenshots("unmatched" + strings.ReplaceAll(page, "/", "-"))
		b.press(".empty a")
		b.shows("main", "40")
	}
	b.reviews(server)
}
