package calls

import (
	"encoding/json"
	"strings"

	"promptspool/api/wire"
)

// Call is a model call: what was asked and what came back, read from the body of a request event, whichever provider's
// API it followed. It is read by the shape of its parts and not by function_name, which callers choose as they like.
type Call struct {
	Input        []Message // in their order, what the system is told first
	Output       []Message // one for each choice
	Usage        Usage
	Model        string // that answered, else that was asked for
	FinishReason string // as the provider calls it
	Tier         string // the service tier that was charged: "flex", "priority", "batch"; "" for the usual one
	// Readable is false if there is a response, but of no shape that is known here. It is kept all the same.
	Readable bool
	// Failure says what went wrong; nil if neither the caller nor the provider says that anything did.
	Failure *Failure
	// Raw is the response as it came, where neither Output nor Failure shows all of it: one that is not readable,
	// or a provider's error. It aliases the body.
	Raw json.RawMessage
}

// The shapes of an output, in the peer's words.
const (
	ShapeJSON      = "json" // a JSON object or array
	ShapeToolCall  = "tool_call"
	ShapePlainText = "plain_text"
)

// ReadCall reads a call from the body of a request event. It never fails: what cannot be read is missing. body must be
// what wire.ParseObject accepts, as every stored body is; of anything else it reads nothing. But for Raw the
// result does not alias body.
func Read(body json.RawMessage) Call {
	object, err := wire.ParseObject(body)
	if err != nil {
		return Call{}
	}
	return ReadObject(object)
}

// Texts are the text that went into a call and the text that came out: messages, and the tools' names and arguments,
// each on lines of its own. For body see ReadCall.
func Texts(body json.RawMessage) (in, out string) {
	call := Read(body)
	return call.Texts()
}

// Texts is Texts of a call that was read.
func (c *Call) Texts() (in, out string) { return joined(c.Input), joined(c.Output) }

func joined(messages []Message) string {
	var lines []string
	for _, m := range messages {
		if text := m.Text(); text != "" {
			lines = append(lines, text)
		}
		for _, c := range m.ToolCalls {
			lines = append(lines, strings.TrimSpace(c.Name+" "+c.Arguments))
		}
	}
	return strings.Join(lines, "\n")
}

// Tools are the names of the tools that the model called, once for each call.
func (c *Call) Tools() []string {
	var names []string
	for _, m := range c.Output {
		for _, call := range m.ToolCalls {
			names = append(names, call.Name)
		}
	}
	return names
}

// Shape says of which kind the output is; "" if nothing came out.
func (c *Call) Shape() string {
	if len(c.Tools()) > 0 {
		return ShapeToolCall
	}

	var whole strings.Builder
	for _, m := range c.Output {
		for _, p := range m.Parts {
			if p.Kind == PartText {
				whole.WriteString(p.Text)
			}
		}
	}

	switch text := strings.TrimSpace(whole.String()); {
	case text == "":
		return ""
	case (text[0] == '{' || text[0] == '[') && json.Valid([]byte(text)):
		return ShapeJSON
	}
	return ShapePlainText
}

func ReadObject(object wire.Object) Call {
	member := func(name string) node {
		v, _ := object.Get(name)
		return node(v)
	}
	if wire.IsLog(object) {
		return readLogRequest(member)
	}
	response := responseOf(member("request_response"))
	kwargs := kwargsOf(member("kwargs"))
	call := Call{Input: readInput(kwargs, member("args")), Usage: readUsage(response), Model: readModel(response, kwargs)}
	call.Tier = tier(response.texts("service_tier"), response.at("usage").texts("service_tier"))

	told := providerError(response, failed(member))
	call.Failure = newFailure(member, told)
	switch {
	case isStream(response):
		call.readStream(response)
	case told != nil && response.isText():
		// The text of an exception is no answer of the model.
	default:
		call.Readable = call.readResponse(response)
	}
	call.Readable = call.Readable || told != nil || failed(member) && response.empty()

	if told != nil || !call.Readable {
		call.raw(response)
	}

	return call
}

// raw keeps the response, unless there is nothing in it or the failure shows all of it.
func (c *Call) raw(response node) {
	if response.empty() {
		return
	}
	if c.Failure == nil || !response.isText() || strings.TrimSpace(response.text()) != c.Failure.Message {
		c.Raw = json.RawMessage(response)
	}
}

// RawText is Raw as text: what is in a string, else its JSON.
func (c *Call) RawText() string {
	if n := node(c.Raw); n.isText() {
		return n.text()
	}
	return string(c.Raw)
}

// empty says whether there is nothing: null, {}, [] or "".
func (n node) empty() bool {
	switch n.compact() {
	case "", "{}", "[]":
		return true
	}
	return false
}

// tier leaves out the names of the usual tier.
func tier(names ...string) string {
	for _, name := range names {
		switch name = strings.ToLower(name); name {
		case "", "auto", "default", "standard", "on_demand":
		default:
			return Clip(name)
		}
	}
	return ""
}

// readModel is the response's, which knows what really answered, else what was asked for.
func readModel(response, kwargs node) string {
	if m := response.texts("model", "modelVersion", "model_version"); m != "" {
		return Clip(m)
	}
	if m := response.first("llm_output", "llmOutput").texts("model_name", "model"); m != "" {
		return Clip(m)
	}
	m := kwargs.texts("model", "engine", "modelId", "model_id", "model_name")
	if m == "" {
		m = kwargs.at("kwargs").texts("model", "model_name")
	}
	return Clip(m)
}

// kwargsOf unwraps arguments: Bedrock's InvokeModel has the provider's own arguments as JSON in body.
func kwargsOf(kwargs node) node {
	body := kwargs.at("body").inner()
	if !body.isObject() || kwargs.first("modelId", "model_id") == nil {
		return kwargs
	}
	if body.at("model") != nil || len(body) < 3 {
		return body
	}
	// The model stands outside; one object with both is what is read.
	id := kwargs.first("modelId", "model_id")
	return append(append(append(node(`{"modelId":`), id...), ','), body[1:]...)
}

// provider is what the caller said, else the first segment of the function's name.
func Provider(w wire.RequestWrite) string {
	if w.ProviderType != "" {
		return w.ProviderType
	}
	first, _, _ := strings.Cut(w.FunctionName, ".")
	return strings.ToLower(first)
}
