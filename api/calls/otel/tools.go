package otel

import (
	"slices"

	"promptspool/api/calls/otel/dialect"
)

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
