package calls_test

import (
	"testing"

	"promptspool/api/calls"
)

// The run method of an SDK returns what the reply to its track-request shows: the input
// messages, then the answer.
func TestTheBlueprintOfAReplyHasTheAnswer(t *testing.T) {
	const rest = `"functions":[],"tools":[],"function_call":null,"tool_choice":null,"input_variables":[]},` +
		`"commit_message":null,`
	const end = `},"provider_base_url_name":null,"report_id":null,"inference_client_name":null}`

	for _, c := range []struct{ what, body, want string }{
		{
			"a chat",
			`{"function_name":"openai.chat.completions.create","provider_type":"openai",
			"kwargs":{"model":"gpt-4o","temperature":0.5,"messages":[{"role":"user","content":"Hi <b>"}]},
			"request_response":{"choices":[{"message":{"role":"assistant","content":"Hey"}}]}}`,
			`{"prompt_template":{"type":"chat","messages":[{"role":"user","content":[{"type":"text",` +
				`"text":"Hi <b>"}]},{"role":"assistant","content":[{"type":"text","text":"Hey"}]}],` +
				rest + `"metadata":{"model":{"provider":"openai","name":"gpt-4o",` +
				`"parameters":{"temperature":0.5}}` + end,
		},
		{
			"a failed call",
			`{"function_name":"f","kwargs":{"model":"m","prompt":"Once"},"request_response":{},"status":"ERROR"}`,
			`{"prompt_template":{"type":"chat","messages":[{"role":"user","content":[{"type":"text",` +
				`"text":"Once"}]}],` + rest +
				`"metadata":{"model":{"provider":"f","name":"m","parameters":{}}` + end,
		},
		{"no object", `[]`, ""},
	} {
		if got := string(calls.ReplyBlueprint([]byte(c.body))); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.what, got, c.want)
		}
	}
}
