package frame

import (
	"cmp"
	"strings"
	"time"

	"promptspool/api/wire"
)

// The first key of a project is made when its founder signs up. For a while their browser keeps it, so
// that the page that waits for a first call shows it even after it is loaded again.
const firstKeyKept = time.Hour

// firstKeyCookie names the cookie with the key of the project that is open. Its prefix is a session's.
func (c *Exchange) firstKeyCookie() string { return c.frame.cookie.Name + "-key-" + c.User.AccountID }

func (c *Exchange) makeFirstKey() error {
	secret, k, err := c.frame.Keys.CreateKey(c.Context(), wire.NewKey{
		Account: c.User.AccountName, Name: "first key", Scope: wire.ScopeApp,
	})
	if err != nil {
		return err
	}
	c.Remember(c.firstKeyCookie(), string(secret), firstKeyKept)

	return c.Note(c.Context(), "create key", k.ID, k.AuditDetail())
}

// firstCall is a way to log a first call, to be pasted.
type firstCall struct{ ID, Name, Text string }

// FirstCalls returns ways to log a first call to this server. key is what they send; without
// one, they say where it belongs.
func (v view) FirstCalls(key string) []firstCall {
	fill := strings.NewReplacer("{base}", v.Base, "{key}", cmp.Or(key, "YOUR KEY"))
	calls := []firstCall{
		{"python", "Python", pythonCall},
		{"javascript", "JavaScript", javaScriptCall},
		{"curl", "curl", curlCall},
		{"otel", "OpenTelemetry", openTelemetryCall},
	}
	for i := range calls {
		calls[i].Text = fill.Replace(calls[i].Text)
	}

	return calls
}

const curlCall = `curl {base}/rest/track-request -H 'Content-Type: application/json' -d '{
  "api_key": "{key}", "function_name": "openai.ChatCompletion.create",
  "kwargs": {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Say hello."}]},
  "request_response": {"model": "gpt-4o-mini", "choices": [{"index": 0, "finish_reason": "stop",
    "message": {"role": "assistant", "content": "Hello!"}}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 2}},
  "request_start_time": '$(date +%s)', "request_end_time": '$(date +%s)'}'`

const pythonCall = `import json, time, urllib.request

now = time.time()
call = {
    "api_key": "{key}", "function_name": "openai.ChatCompletion.create",
    "kwargs": {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Say hello."}]},
    "request_response": {"model": "gpt-4o-mini", "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "Hello!"}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2}},
    "request_start_time": now, "request_end_time": now,
}
request = urllib.request.Request("{base}/rest/track-request",
    json.dumps(call).encode(), {"Content-Type": "application/json"})
print(urllib.request.urlopen(request).read().decode())`

const javaScriptCall = `const now = Date.now() / 1000;
const answer = await fetch("{base}/rest/track-request", {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({
    api_key: "{key}", function_name: "openai.ChatCompletion.create",
    kwargs: { model: "gpt-4o-mini", messages: [{ role: "user", content: "Say hello." }] },
    request_response: { model: "gpt-4o-mini", choices: [{ index: 0, finish_reason: "stop",
      message: { role: "assistant", content: "Hello!" } }],
      usage: { prompt_tokens: 10, completion_tokens: 2 } },
    request_start_time: now, request_end_time: now,
  }),
});
console.log(await answer.text());`

const openTelemetryCall = `# for an app that is instrumented with OpenTelemetry already
export OTEL_EXPORTER_OTLP_ENDPOINT={base}
export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
export OTEL_EXPORTER_OTLP_HEADERS="X-API-KEY={key}"
export OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY`
