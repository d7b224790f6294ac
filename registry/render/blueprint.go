package render

import (
	"encoding/json"
	"fmt"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// Bounds of a blueprint.
const (
	messagesMax = 1000 // messages of a chat
	blocksMax   = 1000 // content blocks of a message or a completion
)

// Check validates a blueprint before it is published, and returns it in its normal form.
//
// In the normal form type is set, a content that was a plain string is a list of one text
// block, and text and image blocks have their type. input_variables, of the whole and of
// each message, are computed from the texts if they were absent or empty. There is no
// whitespace between tokens. Unknown members are kept.
//
// With faults the blueprint is nil. A fault's Field is a path within the blueprint, ""
// for the whole.
func Check(blueprint json.RawMessage) (json.RawMessage, []wire.FieldError) {
	c := &checker{}
	o, ok := c.object("", blueprint)
	if !ok {
		return nil, c.faults
	}
	o = c.langchain(o)

	switch kind := c.kind(o); kind {
	case "chat":
		o = c.chat(rawjson.Set(o, "type", rawjson.Quote(kind)))
	case "completion":
		o = c.completion(rawjson.Set(o, "type", rawjson.Quote(kind)))
	}
	if len(c.faults) > 0 {
		return nil, c.faults
	}

	return rawjson.Compact(rawjson.Encode(o)), nil
}

// langchain converts a prompt in the form that LangChain serialises, which older clients
// publish, to a completion:
//
//	{"_type":"prompt","template":"...","input_variables":[...],"template_format":"f-string"}
func (c *checker) langchain(o wire.Object) wire.Object {
	kind := c.text("_type", o, "_type", false)
	if kind != "" && kind != "prompt" {
		c.fault("_type", "must be prompt; publish a chat as {\"type\": \"chat\", \"messages\": [...]}")
	}
	if o.Has("type") || o.Has("messages") || o.Has("content") || kind == "" && !o.Has("template") {
		return o
	}

	source := c.text("template", o, "template", true)
	block := rawjson.NewObject().Str("type", "text").Str("text", source).End()
	o = rawjson.Set(rawjson.Without(o, "template"), "type", rawjson.Quote("completion"))

	return rawjson.Set(o, "content", rawjson.Array([]json.RawMessage{block}))
}

// kind returns the blueprint's type: what it says, or else what its members show.
func (c *checker) kind(o wire.Object) string {
	switch kind := c.text("type", o, "type", false); {
	case kind == "chat", kind == "completion":
		return kind
	case kind != "":
		c.fault("type", "must be chat or completion")
	case o.Has("messages"):
		return "chat"
	case o.Has("content"):
		return "completion"
	case len(c.faults) == 0:
		c.fault("type", "is missing; a chat has messages, a completion has content")
	}

	return ""
}

func (c *checker) chat(o wire.Object) wire.Object {
	raw, ok := o.Get("messages")
	if !ok {
		c.fault("messages", "is missing")
		return o
	}

	var all language.Names
	messages := c.list("messages", raw, messagesMax)
	for i, m := range messages {
		var used []string
		messages[i], used = c.message(fmt.Sprintf("messages[%d]", i), m)
		all.Add(used...)
	}
	c.templateFormat("template_format", o)
	c.tools(o)
	o = rawjson.Set(o, "messages", rawjson.Array(messages))

	return c.inputVariables("", o, all.List)
}

func (c *checker) completion(o wire.Object) wire.Object {
	raw, ok := o.Get("content")
	if !ok {
		c.fault("content", "is missing")
		return o
	}

	c.templateFormat("template_format", o)
	content, used := c.content("content", prompt.FormatOf(o), raw)

	return c.inputVariables("", rawjson.Set(o, "content", content), used)
}

// tools checks the form of what the model may call.
func (c *checker) tools(o wire.Object) {
	for _, name := range []string{"tools", "functions"} {
		raw, ok := o.Get(name)
		if !ok {
			continue
		}
		for i, e := range c.list(name, raw, blocksMax) {
			c.tool(fmt.Sprintf("%s[%d]", name, i), e, name == "functions")
		}
	}

	for _, name := range []string{"tool_choice", "function_call"} {
		if raw, ok := o.Get(name); ok && raw[0] != '"' && raw[0] != '{' {
			c.fault(name, "must be a string or an object")
		}
	}
}

func (c *checker) tool(path string, raw json.RawMessage, isFunction bool) {
	tool, ok := c.object(path, raw)
	if !ok {
		return
	}

	// A tool of the type function has its name one level deeper.
	kind := c.text(path+".type", tool, "type", false)
	if !isFunction && (kind == "" || kind == "function") {
		path += ".function"
		function, _ := tool.Get("function")
		tool, ok = c.object(path, function)
		if !ok {
			return
		}
	}
	c.text(path+".name", tool, "name", true)
}

func (c *checker) templateFormat(path string, o wire.Object) {
	if c.isData {
		return
	}

	switch format := c.text(path, o, "template_format", false); format {
	case "", "f-string", "jinja2", "none":
	default:
		c.fault(path, "must be f-string, jinja2 or none")
	}
}

// inputVariables sets input_variables to what the texts use, unless the publisher listed
// some.
func (c *checker) inputVariables(path string, o wire.Object, used []string) wire.Object {
	if c.isData {
		return o
	}
	// A list that the publisher wrote may hold more than the texts use, and stays.
	path = join(path, "input_variables")
	if raw, ok := o.Get("input_variables"); ok {
		listed := c.list(path, raw, language.VariablesMax)
		for i, e := range listed {
			if e[0] != '"' {
				c.fault(fmt.Sprintf("%s[%d]", path, i), "must be a string")
			}
		}
		if len(listed) > 0 {
			return o
		}
	}

	// Such a template could be published and never filled in.
	if len(used) > language.VariablesMax {
		c.fault(path, "would be more than %d; a fetch cannot give so many", language.VariablesMax)
		return o
	}

	return rawjson.Set(o, "input_variables", quotedList(used))
}

func quotedList(names []string) json.RawMessage {
	list := make([]json.RawMessage, len(names))
	for i, name := range names {
		list[i] = rawjson.Quote(name)
	}
	return rawjson.Array(list)
}
