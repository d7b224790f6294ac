package provider

import (
	"encoding/json"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// builtIn returns the config of a tool that the provider runs.
func (c *call) builtIn(t prompt.Tool) wire.Object {
	by := rawjson.Text(rawjson.Member(t.Raw, "provider"))
	// Providers name their own tools alike, but their configs differ.
	if by != "" && family(by, "") != family(c.provider, "") && family(by, "") != c.family {
		c.reject(t.At, "is the tool %q of %s, which %s does not have; take it out",
			language.Shorten(t.Kind), language.Shorten(by), c.provider)
	}

	return rawjson.Object(rawjson.Member(t.Raw, "config"))
}

// schemaOf returns the schema of a function's parameters. A function without one takes
// none.
func schemaOf(t *prompt.Tool) json.RawMessage {
	if t.Parameters == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}

	return t.Parameters
}

// declare writes a function's name, description and schema, as most providers want them.
func declare(t *prompt.Tool, schemaName string, schema json.RawMessage) json.RawMessage {
	out := rawjson.NewObject().Str("name", t.Name)
	if t.Description != "" {
		out = out.Str("description", t.Description)
	}
	out = out.Raw(schemaName, schema)
	if strict := rawjson.Member(t.Raw, "strict"); string(strict) == "true" {
		out = out.Raw("strict", strict)
	}

	return out.End()
}

// withTools adds a list of what convert makes of each tool; none without tools, which
// providers reject.
func (c *call) withTools(
	kwargs wire.Object, convert func(t prompt.Tool) json.RawMessage,
) wire.Object {
	if len(c.Tools) == 0 {
		return kwargs
	}

	tools := make([]json.RawMessage, len(c.Tools))
	for i, t := range c.Tools {
		tools[i] = convert(t)
	}

	return append(kwargs, rawjson.MemberOf("tools", rawjson.Array(tools)))
}

// functionTools adds tools, and the choice among them, in the form that several providers
// took over from OpenAI.
func (c *call) functionTools(kwargs wire.Object, forms choices) wire.Object {
	kwargs = c.withTools(kwargs, func(t prompt.Tool) json.RawMessage {
		if t.Kind != "function" {
			return c.reject(t.At, "is %q, and %s takes functions only; take it out",
				language.Shorten(t.Kind), c.provider)
		}
		function := declare(&t, "parameters", schemaOf(&t))
		return rawjson.Form(`{"type":"function","function":$}`, function)
	})

	return c.withChoice(kwargs, forms)
}

// input returns the arguments of a tool call as an object.
func (c *call) input(at string, call prompt.ToolCall) json.RawMessage {
	if strings.TrimSpace(call.Arguments) == "" {
		return json.RawMessage("{}")
	}

	// Models write arguments, so they may be anything.
	o, err := wire.ParseObject([]byte(call.Arguments))
	if err != nil {
		return c.reject(at,
			"calls %q with arguments that are not a JSON object, as %s requires",
			language.Shorten(call.Name), c.provider)
	}

	return rawjson.Encode(o)
}

// calledName returns the name of the function whose call a message answers; the message's
// own name if no message makes that call.
func (c *call) calledName(m *prompt.Message) string {
	for i := range c.Messages {
		for _, call := range c.Messages[i].Calls {
			if call.ID == m.ToolCallID {
				return call.Name
			}
		}
	}

	return m.Name
}

// choices are the forms in which a provider's client takes tool_choice, by its mode, with a place for
// the function's name; an empty form adds nothing.
type choices map[string]string

// choice writes the published tool_choice in one of the forms; nil if there is nothing to add.
func (c *call) choice(forms choices) json.RawMessage {
	if len(c.Tools) == 0 || c.Choice.Mode == "" {
		return nil
	}
	form, ok := forms[c.Choice.Mode]
	if !ok {
		return c.reject("prompt_template.tool_choice",
			"is %s, which %s does not have; use auto, none, required or a function",
			language.Shorten(c.Choice.Mode), c.provider)
	}

	return rawjson.Form(form, c.Choice.Name)
}

// withChoice adds a tool_choice in one of the forms.
func (c *call) withChoice(kwargs wire.Object, forms choices) wire.Object {
	if choice := c.choice(forms); len(choice) > 0 {
		kwargs = append(kwargs, rawjson.MemberOf("tool_choice", choice))
	}

	return kwargs
}
