// Package calls reads model calls out of the bodies of requests, whichever provider's API
// they followed.
//
// A call is recognised by the shape of its parts, not by function_name, which callers
// choose as they like. Nothing here fails: what cannot be read is missing, and the body
// itself stays with the record. Bodies come from anybody, so reading one costs time and
// memory in proportion to its bytes.
//
// Read is the way in. Messages, streams, usage, failures and images each have a file; the
// blueprints at the end turn a call into a form that belongs to no provider. A Story finds what
// each call of a session added to those before it.
package calls

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"promptspool/api/calls/otel"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// Call is a model call: what was asked and what came back.
type Call struct {
	Input        []Message // in their order, system messages first
	Output       []Message // one for each choice
	Usage        Usage
	Model        string // that answered, otherwise that was asked for
	ResponseID   string `json:",omitempty"` // the provider's; "" if the call has none
	FinishReason string // in the provider's word
	Tier         string // the service tier charged: "flex", "priority", "batch"; "" for the usual one

	// Asked is set if the response names no model: Model was only asked for.
	Asked bool `json:"-"`

	AskedModel string `json:"-"` // the model that was asked for

	// Price is what the provider itself says that the call cost; 0 if it does not.
	Price Dollars `json:",omitempty"`

	// Readable is false if there is a response of no known shape. It is kept even so.
	Readable bool

	// TooLong is set if the response is not readable because its lists have too many
	// elements, as a stream of more than 131,072 chunks has. Of an input there are as many
	// as are read.
	TooLong bool `json:",omitempty"`

	// Status is how the call ended, one of wire.Statuses: in the caller's word, otherwise by Failure.
	Status string `json:"-"`

	// Failure says what went wrong; nil if neither caller nor provider reports anything.
	Failure *Failure

	// Raw is the response as it came, where neither Output nor Failure shows all of it:
	// one that is not readable, or a provider's error. It aliases the body.
	Raw json.RawMessage
}

// The shapes of an output, in the peer's words.
const (
	ShapeJSON      = "json" // a JSON object or array
	ShapeToolCall  = "tool_call"
	ShapePlainText = "plain_text"
)

// Read reads a call from the body of a request event. It never fails: what cannot be read
// is missing. body must be what wire.ParseObject accepts, as every stored body is; of
// anything else it reads nothing. Apart from Raw, the result does not alias body.
func Read(body json.RawMessage) Call {
	object, err := wire.ParseObject(body)
	if err != nil {
		return Call{}
	}

	return ReadObject(context.Background(), object)
}

// ReadObject is Read of a body that was already parsed. It ends with ctx, which the caller
// has to ask: then parts of the call are missing.
func ReadObject(ctx context.Context, object wire.Object) Call {
	if otel.IsSpan(object) {
		return readSpan(ctx, object)
	}

	if wire.IsLog(object) {
		return readLogRequest(membersOf(ctx, object))
	}

	return readCall(membersOf(ctx, object))
}

// membersOf returns what looks up the members of an object, each for its own reading.
func membersOf(ctx context.Context, object wire.Object) func(name string) node {
	return func(name string) node {
		v, _ := object.Get(name)
		return startReading(ctx, v)
	}
}

// readCall reads a call from the members of a track-request.
func readCall(member func(string) node) Call {
	// Both are asked for many names, by readers of all providers.
	came := member("request_response").indexed()
	response := responseOf(came, wrappersMax).indexed()
	kwargs := kwargsOf(member("kwargs").indexed()).indexed()
	call := Call{
		Input:      readInput(kwargs, member("args")),
		Model:      answeredModel(response),
		ResponseID: Clip(responseID(response)),
	}
	call.AskedModel = askedModel(kwargs)
	if call.Model == "" {
		call.Model = call.AskedModel
		call.Asked = call.Model != ""
	}
	var usage tally
	usage.ask(kwargs, came)
	usage.read(response)

	unread, counted := call, usage
	list := streamText(response)
	isList := list.isArray() && call.readStream(list, &usage)
	if !isList {
		usage = counted
		call.Failure = providerError(response, failed(member))
	}

	provided := call.Failure
	switch {
	case isList:
	case provided != nil && response.isText():
		// The text of an exception is not an answer of the model.
	default:
		call.Readable = call.readResponse(response)
	}
	// An error is an answer that we can show, and so is nothing after a failed call.
	call.Readable = call.Readable || provided != nil || failed(member) && response.empty()
	if response.reading.tooMany() {
		call, call.TooLong, usage = unread, true, counted
	}
	call.settle(&usage, kwargs)

	call.Failure = newFailure(member, provided)
	call.Status = status(member, call.Failure)
	if provided != nil || !call.Readable {
		call.keepRaw(response)
	}

	return call
}

// Texts returns the text that went into the call and the text that came out. Messages, and
// the tools' names and arguments, are on their own lines.
func (c *Call) Texts() (in, out string) { return joined(c.Input), joined(c.Output) }

// Searched returns the texts of both directions in which searches look for words. An error is found by
// its words, and so is the part of an answer that came before it.
func (c *Call) Searched() (in, out string) {
	in, out = c.Texts()
	if c.Failure != nil && c.Failure.Message != "" {
		out = strings.TrimPrefix(out+"\n"+c.Failure.Message, "\n")
	}

	return in, out
}

// joined returns the texts of messages, a line each.
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

// Tools returns the names of the tools that the model called, once for each call.
func (c *Call) Tools() []string {
	var names []string
	for _, m := range c.Output {
		for _, call := range m.ToolCalls {
			names = append(names, call.Name)
		}
	}

	return names
}

// Shape returns the kind of the output, "" if there is none.
func (c *Call) Shape() string {
	// A call beside a text counts as a call: the app acts on it.
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
	// A number or a quoted word would be valid JSON too, but counts as plain text.
	case (text[0] == '{' || text[0] == '[') && json.Valid([]byte(text)):
		return ShapeJSON
	}

	return ShapePlainText
}

// keepRaw keeps the response, unless it is empty or the failure shows all of it.
func (c *Call) keepRaw(response node) {
	if response.empty() {
		return
	}
	if c.Failure == nil || !response.isText() || strings.TrimSpace(response.text()) != c.Failure.Message {
		c.Raw = response.raw
	}
}

// RawText returns Raw as text: the content of a string, otherwise the JSON.
func (c *Call) RawText() string {
	if n := nodeOf(c.Raw); n.isText() {
		return n.text()
	}

	return string(c.Raw)
}

// answeredModel returns the model that a response names, which really answered.
func answeredModel(response node) string {
	// The AI SDK has its own object in the response, as Gemini CLI and batches have the provider's.
	inner := response.first("llm_output", "llmOutput", "response", "response_metadata")

	return Clip(cmp.Or(
		response.texts("model", "modelVersion", "model_version"),
		inner.texts("model_name", "model", "modelId", "modelVersion"),
	))
}

// askedModel returns the model that arguments ask for.
func askedModel(kwargs node) string {
	// Older clients of OpenAI say engine, Bedrock's say modelId, and LangChain nests its
	// own.
	return Clip(cmp.Or(
		kwargs.texts("model", "engine", "modelId", "model_id", "model_name"),
		kwargs.at("kwargs").texts("model", "model_name"),
	))
}

// kwargsOf unwraps arguments: Bedrock's InvokeModel has the provider's own arguments as
// JSON in body.
func kwargsOf(kwargs node) node {
	body := kwargs.at("body").inner()
	if !body.isObject() || !kwargs.first("modelId", "model_id").exists() {
		return kwargs
	}
	// A body may name its model itself; {} has no member to put another in front of.
	if body.at("model").exists() || len(body.raw) < 3 {
		return body
	}

	// The model is outside: make one object with both.
	id := kwargs.first("modelId", "model_id")
	return nodeOf(slices.Concat([]byte(`{"modelId":`), id.raw, []byte{','}, body.raw[1:]))
}

// Provider returns the caller's provider, otherwise the first segment of
// the function's name.
func Provider(w wire.RequestWrite) string {
	if w.ProviderType != "" {
		return w.ProviderType
	}
	first, _, _ := strings.Cut(w.FunctionName, ".")

	return strings.ToLower(first)
}

// readSpan reads a traced call from a stored span. Of a span that is not a call it has
// what went in and came out, so that a search finds it.
func readSpan(ctx context.Context, object wire.Object) Call {
	span := otel.ReadObject(object)
	if span.IsCall() {
		return ReadTraced(ctx, &span)
	}

	call := Call{Readable: true, Status: span.Status}
	if span.Input != "" {
		call.Input = []Message{{Role: "input", Parts: []Part{{Kind: PartText, Text: span.Input}}}}
	}
	if span.Output != "" {
		call.Output = []Message{{Role: "output", Parts: []Part{{Kind: PartText, Text: span.Output}}}}
	}
	if span.Status == "ERROR" {
		call.Failure = &Failure{Type: Clip(span.ErrorType), Message: span.ErrorMessage}
	}

	return call
}

// ReadTraced reads a traced call from its span. The result is that of Read for the span's
// Request, but for its status. It ends with ctx, as ReadObject does.
func ReadTraced(ctx context.Context, span *otel.Span) Call {
	call := ReadObject(ctx, slices.Collect(jsonscan.Members(span.Request())))
	// A span that ended well may have a response that holds an error.
	if call.Status == "SUCCESS" && call.Failure != nil {
		call.Status = "ERROR"
	}

	return call
}

// systemNames are the arguments that are system prompts: of Anthropic, Bedrock, OpenAI, Gemini and Cohere.
var systemNames = []string{"system", "instructions", "systemInstruction", "system_instruction", "preamble"}

// readInput reads what was sent, from the named arguments and, where those say nothing,
// from the first positional one.
func readInput(kwargs, args node) (in []Message) {
	add := func(m Message) {
		if !m.empty() {
			in = append(in, m)
		}
	}

	for _, n := range []node{kwargs, kwargs.first("generation_config", "generationConfig", "config")} {
		for _, name := range systemNames {
			m := readMessage(n.at(name), "system")
			// Gemini writes its system instruction as a user's content.
			m.Role = "system"
			add(m)
		}
	}
	messages := kwargs.first("messages", "contents", "history", "chat_history")
	if messages.isArray() && !isMessages(messages) && kwargs.at("contents").exists() {
		// Gemini accepts a list of parts as one user's content.
		add(readMessage(messages, "user"))
	} else {
		in = append(in, readMessages(messages)...)
	}
	// Calls and their results are their own items in the responses API, beside the messages.
	in = append(in, readEach(kwargs.at("input"), readItem, "user")...)
	// Cohere v1: what follows chat_history.
	add(readMessage(kwargs.at("message"), "user"))
	in = append(in, readMessages(kwargs.first("prompt", "prompts", "inputText", "inputs", "texts"))...)
	// A caller's wrapper may have passed everything by position.
	if len(in) == 0 {
		return readMessages(args)
	}

	return in
}

// isMessages reports whether a list holds messages. One is enough: what else is in it is read as far as it
// can be.
func isMessages(n node) bool {
	for e := range n.each {
		if isMessage(e) {
			return true
		}
	}

	return false
}

// isMessage reports whether an object has a member that messages have, or a role as its type.
func isMessage(n node) bool {
	return n.first("role", "content", "parts", "blocks", "author", "data", "lc").exists() ||
		roles[n.texts("type")] != ""
}

// readMessages reads a list of messages, or a single one.
func readMessages(n node) []Message { return readEach(n, readMessage, "user") }

// readEach reads the elements of a list, or what is in its place. Each has the usual role unless it names one.
func readEach(list node, read func(n node, usual string) Message, usual string) (messages []Message) {
	add := func(n node) {
		if m := read(n, usual); !m.empty() {
			messages = append(messages, m)
		}
	}

	if !list.isArray() {
		add(list)
	}
	for e := range list.each {
		// LangChain sends a list of messages for each prompt.
		if e.isArray() && isMessages(e) {
			messages = append(messages, readEach(e, read, usual)...)
		} else {
			add(e)
		}
	}

	return messages
}
