package otel

import (
	"encoding/json"
	"slices"

	"promptspool/api/calls/otel/dialect"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// turn is a message: JSON, or one of a lone text, which is long and only written where it
// belongs.
type turn struct {
	value
	lone *message
}

// json returns the message as JSON.
func (t turn) json() value {
	if t.lone != nil {
		return appendObject(nil, t.lone)
	}

	return t.value
}

// Turn is a message of a call. It is JSON in a form that package calls reads, or has members
// if its content is a text.
type Turn struct {
	JSON json.RawMessage

	Role, Name, ToolCallID, Refusal string
	Text                            json.RawMessage // a JSON string

	Finish string // of an answer: why it ended
}

func (t turn) exported(finish string) Turn {
	m := t.lone
	if m == nil {
		return Turn{JSON: json.RawMessage(t.value), Finish: finish}
	}

	return Turn{
		Role:       m.Role,
		Name:       m.Name,
		ToolCallID: m.ToolCallID,
		Refusal:    m.Refusal,
		Text:       json.RawMessage(m.Content.(value)),
		Finish:     finish,
	}
}

// Call returns what Request returns about the call itself, with its messages apart. To
// write these and to read them again would take several times as long. in is nil if
// kwargs has what went in, and out if the response has what came out.
func (s *Span) Call() (object wire.Object, in, out []Turn) {
	add := func(name string, v value) {
		object = append(object, jsonscan.Member{Name: name, Value: json.RawMessage(v)})
	}

	// Bedrock has the request in its body. Where there are contents, messages may be those.
	messages, _ := s.kwargs["messages"].([]turn)
	if s.kwargs["contents"] != nil || s.kwargs["body"] != nil {
		messages = nil
	}
	for _, m := range messages {
		in = append(in, m.exported(""))
	}
	answers, _ := s.response["choices"].([]choice)
	for _, c := range answers {
		out = append(out, c.Message.exported(c.Finish))
	}

	object = make(wire.Object, 0, 5)
	add("kwargs", without(s.kwargs, "messages", in != nil))
	add("request_response", without(s.response, "choices", out != nil))
	for _, m := range []struct{ name, text string }{
		{"status", s.Status}, {"error_type", s.ErrorType}, {"error_message", s.ErrorMessage},
	} {
		if m.text != "" {
			add(m.name, quoted(m.text))
		}
	}

	return object, in, out
}

// without returns an object as JSON, perhaps without a member.
func without(members map[string]any, name string, leaveOut bool) value {
	o := object{empty: true}
	for _, member := range sortedNames(members) {
		if member != name || !leaveOut {
			o.add(member, members[member])
		}
	}

	return o.close()
}

// tools returns the definitions of the tools that a call could use, in OpenAI's form.
func (s *span) tools() []value {
	var list []value
	for _, t := range s.own.items("llm.tools.") {
		list = append(list, tool(t.get("tool.json_schema")))
	}
	for _, f := range s.own.items("llm.request.functions.") {
		list = append(list, definition(f.text("name"), f.text("description"), f.get("parameters").inner()))
	}
	if len(list) == 0 {
		for _, t := range s.find(dialect.Tools).inner().elements() {
			list = append(list, tool(t))
		}
	}
	if len(list) == 0 {
		for _, t := range s.rawResponse().at("tools").elements() {
			list = append(list, tool(t))
		}
	}
	for _, t := range s.own.get("model_request_parameters").inner().at("function_tools").elements() {
		if len(list) == 0 || s.find(dialect.Tools) == nil {
			list = append(list, tool(t))
		}
	}

	return slices.DeleteFunc(list, func(t value) bool { return t == nil || !shallow(t) })
}

// tool returns one definition. The conventions and the AI SDK have no function member.
func tool(t value) value {
	t = t.inner()
	switch {
	case !t.isObject():
		return nil
	case t.at("name").isText() && !t.has("function", "input_schema"):
		return definition(t.texts("name"), t.texts("description"),
			t.first("parameters", "inputSchema", "parameters_json_schema", "input_schema"))
	}

	return t
}

func definition(name, description string, schema value) value {
	if name == "" {
		return nil
	}
	function := map[string]any{"name": name}
	if description != "" {
		function["description"] = description
	}
	if schema.isObject() {
		function["parameters"] = schema
	}

	return encoded(map[string]any{"type": "function", "function": function})
}
