package calls

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// readLogRequest reads a call that its caller has put into blueprints. Its counts are the
// caller's own.
func readLogRequest(member func(string) node) Call {
	output := member("output")
	call := Call{
		Input:        readBlueprint(member("input"), "user"),
		Output:       readBlueprint(output, "assistant"),
		Model:        Clip(member("model").text()),
		FinishReason: Clip(member("finish_reason").text()),
		Failure:      newFailure(member, nil),
	}
	call.Status = status(member, call.Failure)
	if output.reading.tooMany() {
		call.Output, call.TooLong = nil, true
	}
	// A call that failed may have an output without messages.
	call.Readable = len(call.Output) > 0 || !call.TooLong && output.isObject() && failed(member)
	if !call.Readable {
		call.keepRaw(output)
	}

	// The contract's default for each count is 0, so a client that fills in defaults does
	// not know them.
	in, out := member("input_tokens").count(), member("output_tokens").count()
	if in != nil && out != nil && *in+*out > 0 {
		call.Usage = Usage{Input: in, Output: out}
	}

	return call
}

// readBlueprint reads a blueprint: a chat's messages, or a completion's content.
func readBlueprint(n node, usual string) []Message {
	// A completion has no messages: its content is one, of the usual role.
	messages := n.at("messages")
	if !messages.isArray() {
		m := Message{Role: usual}
		m.content(n.at("content"))
		if m.empty() {
			return nil
		}
		return []Message{m}
	}

	return readEach(messages, readMessage, usual)
}

// Sent is what a call was sent with, besides its messages and its model.
type Sent struct {
	Parameters []Parameter // in the order of the body
	Tools      []Tool
}

// Parameter is an argument of a call, such as temperature.
type Parameter struct{ Name, Value string }

// Tool is a tool that a model may call. Definition is its JSON as it was sent.
type Tool struct{ Name, Description, Definition string }

// ReadSent reads what a call was sent with. For body see Read.
func ReadSent(body json.RawMessage) (s Sent) {
	object, err := wire.ParseObject(body)
	if err != nil {
		return s
	}

	if wire.IsLog(object) {
		input, _ := object.Get("input")
		eachTool(startReading(context.Background(), input).at("tools"), s.tool)
	}
	s.read(argumentsOf(object), groups)

	return s
}

// argumentsOf returns the arguments of the call in a body.
func argumentsOf(object wire.Object) node {
	name := "kwargs"
	if wire.IsLog(object) {
		name = "parameters"
	}
	raw, _ := object.Get(name)

	return kwargsOf(startReading(context.Background(), raw))
}

// set makes a set of names.
func set(names string) map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		all[name] = true
	}

	return all
}

// contents are the arguments that are read as messages or as the model.
var contents = set("args messages contents history chat_history input message prompt inputText inputs texts " +
	"system instructions systemInstruction system_instruction preamble model engine modelId model_id model_name")

// groups are the arguments that hold others: Google's, Bedrock's and LangChain's.
var groups = set("config generation_config generationConfig inferenceConfig kwargs textGenerationConfig")

// read reads the members of arguments, and of their groups. A group has no groups inside,
// or the bytes of the innermost one would be read once for each around it.
func (s *Sent) read(arguments node, groups map[string]bool) {
	if !arguments.isObject() {
		return
	}

	for m := range jsonscan.Members(arguments.raw) {
		name, value := m.Name, nodeOf(m.Value)
		switch {
		case contents[name] || value.empty():
		case name == "tools" || name == "functions":
			eachTool(value, s.tool)
		case name == "toolConfig" && value.at("tools").isArray():
			eachTool(value.at("tools"), s.tool)
		case groups[name] && value.isObject():
			s.read(value, nil)
		default:
			s.Parameters = append(s.Parameters, Parameter{Clip(name), value.compact()})
		}
	}
}

// eachTool visits the tools of a list; Google has several in one of its elements.
func eachTool(list node, visit func(node)) {
	for e := range list.each {
		declared := e.first("functionDeclarations", "function_declarations")
		if !declared.isArray() {
			visit(e)
		}
		for d := range declared.each {
			visit(d)
		}
	}
}

// toolOf returns what has a tool's name: OpenAI's function, Bedrock's toolSpec, the tool itself.
func toolOf(n node) node { return n.first("function", "toolSpec").or(n) }

func (s *Sent) tool(n node) {
	inner := toolOf(n)
	// The providers' own tools have only a type, such as web_search.
	name := cmp.Or(inner.texts("name"), inner.texts("type"))
	s.Tools = append(s.Tools, Tool{Clip(name), inner.texts("description"), string(n.raw)})
}
