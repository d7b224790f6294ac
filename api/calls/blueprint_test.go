package calls_test

import (
	"strings"
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

// A blueprint can be published: then it must send what was sent, or ask for what it leaves out.
func TestTheBlueprintOfACallIsATemplateOfWhatWasSent(t *testing.T) {
	text := func(s string) string { return `{"type":"text","text":"` + s + `"}` }

	for _, c := range []struct{ part, want, format string }{
		{`{"text":"Sum up {this}"}`, text("Sum up {this}"), "none"},
		{`{"text":"plain"}`, text("plain"), ""},
		{`{"type":"document","title":"a.pdf",` +
			`"source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}`,
			`{"type":"media_variable","name":"a.pdf"}`, ""},
		{`{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}}`,
			`{"type":"media_variable","name":"input_audio"}`, ""},
		{`{"image":{"format":"png","source":{"bytes":"iVBORw0KGgo="}}},` +
			`{"image":{"format":"png","source":{"bytes":"AAAA"}}}`,
			`{"type":"media_variable","name":"image"},{"type":"media_variable","name":"image 2"}`, ""},
		{`{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`,
			`{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`, ""},
		{`{"fileData":{"fileUri":"gs://bucket/a","mimeType":"video/mp4","displayName":"a film"}}`,
			`{"type":"media","media":{"title":"a film","type":"video/mp4","url":"gs://bucket/a"}}`, ""},
		{`{"document":{"name":"a","source":{"s3Location":{"uri":"s3://bucket/b.pdf"}}}}`,
			`{"type":"media","media":{"title":"a","url":"s3://bucket/b.pdf"}}`, ""},
		{`{"type":"search_result","source":"https://example.com/a","title":"Refunds",` +
			`"content":[{"type":"text","text":"Soon."}]}`,
			text(`Refunds\nhttps://example.com/a`) + "," + text("Soon."), ""},
		{`{"cachePoint":{"type":"default"}},{"text":"plain"}`, text("plain"), ""},
	} {
		call := calls.Read([]byte(`{"kwargs":{"messages":[{"role":"user","content":[` + c.part + `]}]}}`))
		format := ""
		if c.format != "" {
			format = `"template_format":"` + c.format + `",`
		}
		want := `[{"role":"user",` + format + `"content":[` + c.want + `]}]`
		if got := string(calls.Messages(call.Input)); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.part, got, want)
		}
	}
}

// Each provider has its own form of tools and their calls. A blueprint has one, which can be published.
func TestTheBlueprintOfACallHasToolsOfEveryProvider(t *testing.T) {
	function := func(more string) string {
		return `{"function":{` + more + `"name":"find","parameters":{"type":"object"}},"type":"function"}`
	}
	const described = `"description":"Finds.",`

	for _, c := range []struct{ tools, want string }{
		{`"tools":[{"type":"function","function":{"name":"find","description":"Finds.","strict":true,` +
			`"parameters":{"type":"object"}}}]`,
			`{"function":{"description":"Finds.","name":"find","parameters":{"type":"object"},"strict":true},` +
				`"type":"function"}`},
		{`"tools":[{"type":"function","name":"find","parameters":{"type":"object"}}]`, function("")},
		{`"tools":[{"name":"find","description":"Finds.","input_schema":{"type":"object"}}]`, function(described)},
		{`"toolConfig":{"tools":[{"toolSpec":{"name":"find","inputSchema":{"json":{"type":"object"}}}}]}`,
			function("")},
		{`"config":{"tools":[{"functionDeclarations":[{"name":"find","parameters":{"type":"OBJECT"}}]}]}`,
			function("")},
		{`"tools":[{"type":"web_search_1","name":"web_search"}]`,
			`{"config":{"type":"web_search_1","name":"web_search"},"name":"web_search","provider":"p",` +
				`"type":"web_search_1"}`},
		{`"tools":[{"googleSearch":{}}]`,
			`{"config":{"googleSearch":{}},"name":"googleSearch","provider":"p","type":"googleSearch"}`},
		{`"tools":[7,"a",{}]`, ""},
	} {
		got := string(calls.ReplyBlueprint([]byte(
			`{"function_name":"f","provider_type":"p","kwargs":{"model":"m",` + c.tools + `}}`)))
		if want := `"tools":[` + c.want + `],`; !strings.Contains(got, want) {
			t.Errorf("%s:\ngot  %s\nwant %s", c.tools, got, want)
		}
	}
}

func TestCallsWithoutIdsGetSomeInABlueprint(t *testing.T) {
	call := calls.Read([]byte(`{"kwargs":{"contents":[
		{"role":"model","parts":[{"functionCall":{"name":"find","args":{}}}]},
		{"role":"function","parts":[{"functionResponse":{"name":"find","response":{"a":1}}}]},
		{"role":"model","parts":[{"functionCall":{"name":"find","args":{}}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"find","response":{"a":2}}}]}]}}`))
	got := string(calls.Messages(call.Input))

	for _, id := range []string{"call_1", "call_2"} {
		if !strings.Contains(got, `"id":"`+id+`"`) || !strings.Contains(got, `"tool_call_id":"`+id+`"`) {
			t.Errorf("%s has no call %s, or no result of it", got, id)
		}
	}
}
